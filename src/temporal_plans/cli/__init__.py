"""``temporal-plan``: the command, and the processes that it starts."""

import gc

# Loading the SDK creates very many objects that all stay: collecting garbage among them takes some
# seven percent of the time of a command. So the thresholds are set before anything is loaded.
gc.set_threshold(50_000, 20, 20)
