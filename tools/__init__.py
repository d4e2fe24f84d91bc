"""Programs for the development of this project; not installed."""
