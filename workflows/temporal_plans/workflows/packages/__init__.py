"""Instances of operator packages, and the steps of their plans."""
