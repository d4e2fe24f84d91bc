"""Activities on the objects of installed packages, each on the worker of its cluster."""
