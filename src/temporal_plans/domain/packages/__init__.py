"""Operator packages: what a package is, its parameters' values, its tasks, and its verification."""
