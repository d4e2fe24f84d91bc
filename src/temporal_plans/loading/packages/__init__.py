"""Reads operator packages from folders, archives and the web, and verifies them."""
