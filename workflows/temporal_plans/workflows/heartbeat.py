"""How soon it is noticed that whoever runs an activity is gone."""

from datetime import timedelta

HEARTBEAT = timedelta(seconds=10)
"""An activity that shows no life for this long is given to the next worker: without, a worker or
agent that was killed would hold its step, and whoever waits for that, to the end of its timeout."""
