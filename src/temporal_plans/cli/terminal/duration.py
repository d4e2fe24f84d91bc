"""Durations as short texts."""

from datetime import timedelta


def duration(length: timedelta) -> str:
    """Return ``0.4s``, ``42s``, ``3m 05s``, ``2h 03m``, ``4d 02h``."""
    seconds = max(length.total_seconds(), 0.0)
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, seconds_left = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {seconds_left:02}s"
    hours, minutes_left = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes_left:02}m"
    days, hours_left = divmod(hours, 24)
    return f"{days}d {hours_left:02}h"


def about(length: timedelta) -> str:
    """Return an estimate: ``about 5s``, ``about 40s``, ``about 3m``, ``about 2h``."""
    seconds = length.total_seconds()
    if seconds < 10:
        return f"about {max(round(seconds), 1)}s"
    if seconds < 57:
        return f"about {round(seconds / 5) * 5}s"
    minutes = max(round(seconds / 60), 1)
    if minutes < 100:
        return f"about {minutes}m"
    hours = round(minutes / 60)
    return f"about {hours}h" if hours < 48 else f"about {round(hours / 24)}d"
