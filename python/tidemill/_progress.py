"""The progress of a search and of a load, drawn from the calling thread only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

Told = Callable[[int, int, float | None, bool], None]
LoadTold = Callable[[int, int | None, str], None]

PATIENCE_S = 1.0
"""A load that is over by then shows nothing."""


class _Bar:
    """A bar: that of tqdm where it is installed, else a line on a terminal, else nothing."""

    def __init__(self, wanted: bool | None, **options: Any) -> None:
        self._bar: Any = None
        self._line = 0
        self._tqdm: Any = None
        self._options = options
        self.draws = wanted is not False
        if self.draws:
            try:
                from tqdm.auto import tqdm

                self._tqdm = tqdm
            except ImportError:
                self.draws = bool(wanted) or sys.stderr.isatty()

    def show(self, done: int, total: int | None, note: str, line: str) -> None:
        """Shows how much is done; `line` is what a terminal shows without tqdm."""
        if not self.draws:
            return
        if self._tqdm is not None:
            if self._bar is None:
                self._bar = self._tqdm(total=total, leave=False, **self._options)
            if done < self._bar.n:
                self._bar.reset()
            self._bar.total = total
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(done - self._bar.n)
            return
        sys.stderr.write("\r" + line.ljust(self._line))
        sys.stderr.flush()
        self._line = max(self._line, len(line))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._line:
            sys.stderr.write("\r" + " " * self._line + "\r")
            sys.stderr.flush()


class Progress:
    """How far a search is."""

    def __init__(self, wanted: bool | None) -> None:
        self._bar = _Bar(wanted, unit="trial")

    def __enter__(self) -> Told | None:
        return self._tell if self._bar.draws else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def _tell(self, done: int, total: int, best: float | None, is_judging: bool) -> None:
        note = "judging the winners" if is_judging else "" if best is None else f"best {best:.4g}"
        self._bar.show(done, total, note, f"{done:,}/{total:,} trials  {note}")


class LoadProgress:
    """How far a load is, once it takes longer than a second."""

    def __init__(self, wanted: bool | None) -> None:
        self._wanted = wanted
        self._began = time.monotonic()
        self._bar: _Bar | None = None

    def __enter__(self) -> LoadTold | None:
        return None if self._wanted is False else self._tell

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def _tell(self, done: int, total: int | None, doing: str) -> None:
        if time.monotonic() - self._began < PATIENCE_S:
            return
        if self._bar is None:
            # Not before: a short load has no time for the import.
            self._bar = _Bar(self._wanted, unit="B", unit_scale=True)
        of_all = "" if total is None else f"/{total / 1e6:,.1f}"
        read = "" if total is None and done == 0 else f"{done / 1e6:,.1f}{of_all} MB  "
        self._bar.show(done, total, doing, f"loading {read}{doing}".rstrip())
