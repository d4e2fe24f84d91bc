"""How fast plans run, beside bare Temporal on the same server in the same minutes.

``python -m bench steps`` from the root of the repository; ``make bench`` calls it.
"""
