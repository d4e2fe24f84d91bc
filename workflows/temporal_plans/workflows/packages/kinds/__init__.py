"""The runner of steps of packages."""
