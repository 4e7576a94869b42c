"""Bars: clean data, made once and used by many runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from . import _frame, _tidemill
from ._argument import checked, names
from ._progress import LoadProgress
from ._table import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Path = str | os.PathLike[str]
Source = Any
"""A path or a list of paths, a frame, a dict of symbols and frames, or `Bars`."""

Stamp = Literal["open", "close"]


class Bars:
    """The bars of one or more symbols after cleaning. Made by `load` and `generate`."""

    def __init__(self, raw: _tidemill.RawBars) -> None:
        self._raw = raw
        self._fingerprint: str | None = None

    @property
    def symbols(self) -> list[str]:
        """Names of the symbols, in order."""
        return self._raw.symbols

    @property
    def report(self) -> dict[str, Any]:
        """What loading found, dropped, repaired and refused: the document of `tidemill data inspect --json`."""
        report: dict[str, Any] = json.loads(self._raw.report())
        return report

    @property
    def notes(self) -> list[str]:
        """What a person should know before trusting a result."""
        return self._raw.notes

    @property
    def fingerprint(self) -> str:
        """A hash of all names and columns; equal data has equal fingerprints, wherever it came from."""
        if self._fingerprint is None:
            self._fingerprint = self._raw.fingerprint()
        return self._fingerprint

    def __len__(self) -> int:
        return len(self._raw)

    def join(
        self,
        frame: Source,
        *,
        by: Sequence[str] | None = None,
        as_of: Stamp = "close",
        max_age: str | None = None,
        prefix: str = "",
        timezone: str | None = None,
    ) -> Bars:
        """The same bars with the numeric columns of `frame` as further series, such as the output of a model.

        A row stamped t is first read on the bar whose close is at or after t (`as_of="open"`: whose open is), and stays until a later one
        is there or it is older than `max_age`. `by` names the columns of symbol and time, or that of time alone; without it they are found
        by their names. What did not match is counted in `report["features"]`.
        """
        if isinstance(frame, (str, os.PathLike)):
            raise TypeError("join takes a frame; a file is joined by load(..., join=path)")
        if by is not None:
            by = (by,) if isinstance(by, str) else tuple(by)
            if not 1 <= len(by) <= 2:
                raise ValueError(f"by={by!r}: expected (symbol, time) or (time,)")
            frame = _frame.renamed(frame, by)
        raw = self._raw.join(_frame.streamed(frame), as_of, max_age, prefix, timezone)
        return Bars(raw)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._raw.table().__arrow_c_stream__(requested_schema)

    def to_polars(self) -> polars.DataFrame:
        """All bars as a polars frame."""
        return Table(self._raw.table()).to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """All bars as a pandas frame."""
        return Table(self._raw.table()).to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """All bars as a pyarrow table."""
        return Table(self._raw.table()).to_arrow()

    def save(self, path: Path) -> None:
        """Writes .parquet or .csv, which `load` reads back bit for bit."""
        self._raw.save(os.fspath(path))

    def __repr__(self) -> str:
        shown = ", ".join(self.symbols[:4]) + (", …" if len(self.symbols) > 4 else "")
        return f"Bars({shown}: {self._raw.origin})"

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<p><code>{escape(repr(self))}</code></p>" + (f"<ul>{notes}</ul>" if notes else "")


def load(
    source: Source,
    *,
    symbols: Sequence[str] | None = None,
    timezone: str | None = None,
    stamp: Stamp = "open",
    resample: str | None = None,
    name: str | None = None,
    name_from: str | None = None,
    strict: bool = False,
    join: Path | None = None,
    as_of: Stamp = "close",
    max_age: str | None = None,
    prefix: str = "",
    progress: bool | None = None,
) -> Bars:
    """Loads and cleans data: files and folders by path, a polars or pandas frame, a pyarrow table, or `{symbol: frame}`.

    The arguments are the flags of the command line; files that take longer than a second show their progress, unless it is `False`. The index of a pandas frame is a column like any other. A frame without a column of
    symbols is called `name`, or `data`.
    """
    texts = {
        "timezone": timezone,
        "stamp": stamp,
        "resample": resample,
        "name": name,
        "name_from": name_from,
        "strict": strict,
        "as_of": as_of,
        "max_age": max_age,
        "prefix": prefix,
    }
    files = None if join is None else os.fspath(join)
    options = {"symbols": names("symbols", symbols), "join": files, **checked(texts)}
    paths = paths_of(source)
    if paths:
        with LoadProgress(progress) as told:
            return Bars(_tidemill.load_paths(paths, options, told))
    if isinstance(source, Mapping):
        frames = [(symbol, f"frame {symbol}", _frame.streamed(frame)) for symbol, frame in source.items()]
        if not frames:
            raise ValueError("there is no frame in the dict")
        return Bars(_tidemill.load_frames(frames, options))
    if isinstance(source, Bars):
        raise TypeError("these are bars already; load them from their source with other options")
    return Bars(_tidemill.load_frames([("data", "frame", _frame.streamed(source))], options))


def generate(
    kind: Literal["regime", "walk", "clustered", "lcg"] = "regime",
    *,
    bars: int = 50_000,
    symbols: int | None = None,
    timeframe: str | None = None,
    seed: int | None = None,
    edge: float | None = None,
    drift: float | None = None,
) -> Bars:
    """Generates a market, as `tidemill data generate` does: the same bars for the same arguments, everywhere."""
    numbers = checked({"bars": bars, "symbols": symbols, "timeframe": timeframe, "seed": seed, "edge": edge, "drift": drift})
    return Bars(_tidemill.generate(kind, **numbers))


def paths_of(source: Source | None) -> list[str]:
    """The paths that a source names; none if it is something else."""
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if isinstance(source, (list, tuple)):
        if not source:
            raise ValueError("there is no path in the list")
        if not all(isinstance(path, (str, os.PathLike)) for path in source):
            raise TypeError("a list holds paths\n  hint: name the symbols of several frames: {\"BTC\": frame, \"ETH\": other}")
        return [os.fspath(path) for path in source]
    return []


def bars_of(source: Source | None, benchmark: str | None, progress: bool | None = None) -> Bars:
    """What runs take as data: bars as they are, anything else loaded, nothing the generated market of the command line."""
    if source is None:
        bars = Bars(_tidemill.generated())
    else:
        bars = source if isinstance(source, Bars) else load(source, progress=progress)
    return bars if benchmark is None else Bars(bars._raw.with_benchmark(benchmark))
