"""Moments as users have them: texts, and what datetime, numpy and pandas make."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

Time = str | date
"""A text such as `2024-03-01T12:00Z`, a date, or a datetime (that of pandas too); what has no zone is UTC."""


def time_text(time: Time | Any | None) -> str | None:
    """A moment as the command line writes it."""
    if time is None or isinstance(time, str):
        return time
    if hasattr(time, "item"):
        time = time.item()  # a moment of numpy
    if isinstance(time, datetime):
        aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        return aware.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(time, date):
        return time.isoformat()
    raise TypeError(f"{time!r} is no time\n  hint: write \"2024-03-01T12:00Z\", or pass a datetime")
