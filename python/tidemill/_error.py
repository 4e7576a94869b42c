"""What can go wrong. The native half raises these by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Error(Exception):
    """Base of all exceptions of Tidemill that have no kind of Python's own."""


@dataclass(frozen=True)
class Problem:
    """One problem of a strategy text."""

    line: int
    column: int
    message: str
    hint: str | None


class StrategyError(Error):
    """A strategy cannot be read or searched; `problems` lists all that is wrong with its text."""

    def __init__(
        self, message: str, problems: Sequence[tuple[int, int, str, str | None]] = ()
    ) -> None:
        super().__init__(message)
        self.problems: list[Problem] = [Problem(*problem) for problem in problems]


class DataError(Error):
    """Data cannot be loaded, joined or compared with."""


class DeviceError(Error):
    """There is no such device, or it cannot be used."""


class StudyError(Error):
    """A study cannot be made, gone on with or read."""
