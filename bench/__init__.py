"""Measures the speed of plans against bare Temporal on the same server at the same time.

``python -m bench steps`` from the root of the repository; ``make bench`` calls it.
"""
