"""Launches on record that no agent speaks of: they were called off before one had them."""

from datetime import timedelta

HEARD_WITHIN = timedelta(seconds=60)
"""How long a launch may be silent. Its agent reports it at once, also when it comes back, or is
given up after about that time."""

NEVER_HEARD = "nobody ever heard of this launch"
"""What is said of such a task."""
