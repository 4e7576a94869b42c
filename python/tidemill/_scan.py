"""The trend of many symbols, ranked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _tidemill
from ._argument import checked
from ._bars import Bars, Source, generate, load
from ._strategy import Setting
from ._table import Table


@dataclass(frozen=True, repr=False)
class Scan:
    """Symbols with a signal, strongest first, and what became of the others."""

    rows: Table
    """The long list, then the short list: symbol, signal from -1 to 1, trend, class, price, bars, times."""
    history: Table | None
    """The average of every bar of each row, if it was asked for."""
    filtered: list[dict[str, Any]]
    """Symbols whose signal is too weak."""
    skipped: list[dict[str, Any]]
    """Symbols without a signal, and why."""

    def __repr__(self) -> str:
        found = (len(self.rows), len(self.filtered), len(self.skipped))
        return "Scan({} signals, {} too weak, {} skipped)".format(*found)


def scan(
    data: Source | None = None,
    /,
    *,
    preset: str = "v2",
    set: Mapping[str, Setting] | None = None,  # noqa: A002
    min_signal: float = 0.01,
    bars: int | None = None,
    history: bool = False,
    device: str = "auto",
) -> Scan:
    """Classifies the trend of many symbols at once, as `tidemill scan` does; without data, of a generated universe."""
    if data is None:
        given = generate(bars=1_500, symbols=100, edge=0.0)
    else:
        given = data if isinstance(data, Bars) else load(data)
    settings = [(name, str(value)) for name, value in (set or {}).items()]
    options = checked({"min_signal": min_signal, "bars": bars, "history": history, "device": device})
    rows, averages, others = _tidemill.scan(given._raw, preset, settings, *options.values())
    document = json.loads(others)
    return Scan(
        Table(rows),
        None if averages is None else Table(averages),
        document["filtered"],
        document["skipped"],
    )
