"""The runners of the kinds that need only Temporal: one file a kind, with a function ``run``."""
