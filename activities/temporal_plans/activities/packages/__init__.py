"""The tasks of packages, executed by a worker that has the credentials of their cluster."""
