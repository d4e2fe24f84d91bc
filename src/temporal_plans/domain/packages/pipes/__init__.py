"""Pipe tasks: the pod that makes files, what it is waited for, and the objects that keep them."""
