"""``temporal-plan``: the command, and the processes that it starts."""

import gc

# Loading the SDK makes very many objects, which all stay: to look for garbage among them again and
# again is some seven percent of what a command takes. Said here, before anything is loaded.
gc.set_threshold(50_000, 20, 20)
