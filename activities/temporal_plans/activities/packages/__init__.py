"""Packages in a cluster: their tasks and all of their objects, by a worker that has its credentials."""
