"""The runners of the kinds that work on pods: one file a kind, with a function ``run``."""
