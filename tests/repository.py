"""Where the repository is, for the tests of files that it has."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
