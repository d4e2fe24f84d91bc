"""Packages in a cluster: the tasks of their steps, and all of their objects."""
