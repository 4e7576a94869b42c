"""Arguments as the native half takes them; what does not fit is refused by its name."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

# The least value of each whole number.
_COUNTS = {
    "trials": 1,
    "plan_trials": 1,
    "batch": 1,
    "lag": 0,
    "seed": 0,
    "top": 0,
    "folds": 0,
    "windows": 1,
    "bars": 1,
    "symbols": 1,
    "trial": 0,
    "target": 1,
    "iterations": 1,
    "passes": 1,
    "patience": 1,
    "min_delta": 0,
    "n": 1,
}
_NUMBERS = {"split", "edge", "drift", "min_signal", "time"}
_SWITCHES = {"strict", "verdict", "anchored", "history"}
_LISTS = {"trade", "enqueue", "objective", "phases"}


def count(name: str, value: Any) -> int:
    """A whole number; 1e6 is one too."""
    try:
        whole = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected a whole number") from None
    least = _COUNTS[name]
    if whole < least:
        raise ValueError(f"{name} must be at least {least}, found {whole}")
    return whole


def names(name: str, value: Sequence[str] | None) -> list[str] | None:
    """A list of names; one alone may stand without a list."""
    if value is None:
        return None
    found = [value] if isinstance(value, str) else list(value)
    if not all(isinstance(each, str) for each in found):
        raise TypeError(f"{name}={value!r}: expected names")
    return found


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names that users write; None stays None."""
    return {name: None if value is None else _checked(name, value) for name, value in options.items()}


def _checked(name: str, value: Any) -> Any:
    if name in _COUNTS:
        return count(name, value)
    if name in _NUMBERS:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise TypeError(f"{name}={value!r}: expected a number") from None
    if name in _SWITCHES:
        if not isinstance(value, bool):
            raise TypeError(f"{name}={value!r}: expected True or False")
        return value
    if name in _LISTS:
        return names(name, value)
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}: expected a text")
    return value
