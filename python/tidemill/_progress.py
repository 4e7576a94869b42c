"""The progress of a sweep, drawn from the calling thread only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

Told = Callable[[int, int, float | None, bool], None]


class Progress:
    """A bar: that of tqdm where it is installed, else a line on a terminal, else nothing."""

    def __init__(self, wanted: bool | None) -> None:
        self._bar: Any = None
        self._line = 0
        self._tqdm: Any = None
        self._draws = wanted is not False
        if self._draws:
            try:
                from tqdm.auto import tqdm

                self._tqdm = tqdm
            except ImportError:
                self._draws = bool(wanted) or sys.stderr.isatty()

    def __enter__(self) -> Told | None:
        return self._tell if self._draws else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._line:
            sys.stderr.write("\r" + " " * self._line + "\r")
            sys.stderr.flush()

    def _tell(self, done: int, total: int, best: float | None, is_judging: bool) -> None:
        note = "judging the winners" if is_judging else "" if best is None else f"best {best:.4g}"
        if self._tqdm is not None:
            if self._bar is None:
                self._bar = self._tqdm(total=total, unit="trial", leave=False)
            self._bar.total = total
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(done - self._bar.n)
            return
        line = f"{done:,}/{total:,} trials  {note}"
        sys.stderr.write("\r" + line.ljust(self._line))
        sys.stderr.flush()
        self._line = max(self._line, len(line))
