"""Walk-forwards: the honest answer to whether searching again and again would have paid."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from . import _page, _tidemill
from ._argument import checked
from ._backtest import cut_options
from ._bars import Path, Source, bars_of
from ._cluster import Cluster, reached
from ._progress import Progress
from ._strategy import Setting, Strategy, strategy
from ._time import Time


class WalkForward:
    """What a strategy would have made if it had been searched again and again, each winner traded on the period that follows."""

    def __init__(self, document: dict[str, Any], page: str) -> None:
        self._document = document
        self._page = page

    @property
    def document(self) -> dict[str, Any]:
        """Everything, as `tidemill walkforward --json` prints it."""
        return self._document

    @property
    def metrics(self) -> dict[str, Any]:
        """The figures of the stitched equity, among them `sharpe`, `total_return`, `max_drawdown` and `efficiency`."""
        summary = self._document["walk_forward"]
        return {name: value for name, value in summary.items() if not isinstance(value, list)}

    @property
    def windows(self) -> list[dict[str, Any]]:
        """What each window chose and what that made."""
        return list(self._document["walk_forward"]["windows"])

    @property
    def equity(self) -> dict[date, float]:
        """Equity at the end of each day that was traded."""
        days = self._document["walk_forward"]["equity"]
        return {date(1970, 1, 1) + timedelta(days=day): value for day, value in days}

    def html(self) -> str:
        """The page."""
        return self._page

    def save(self, path: Path) -> None:
        """Writes the page as .html, or everything as .json."""
        ending = os.path.splitext(os.fspath(path))[1]
        if ending not in (".html", ".htm", ".json"):
            raise ValueError(f"{os.fspath(path)}: a walk-forward is saved as .html or .json")
        text = json.dumps(self._document, indent=2) + "\n" if ending == ".json" else self._page
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def __repr__(self) -> str:
        found = [(name, self.metrics[name]) for name in ("total_return", "sharpe", "max_drawdown", "efficiency")]
        figures = ", ".join(f"{name} {value:.4g}" for name, value in found if value is not None)
        return f"WalkForward({self._document['strategy']}: {len(self.windows)} windows, {figures})"

    def _repr_html_(self) -> str:
        return _page.framed(self._page)


def walkforward(
    of: Strategy | str | os.PathLike[str],
    data: Source | None = None,
    /,
    *,
    train: str,
    test: str,
    anchored: bool = False,
    trials: int = 2_000,
    sampler: str = "auto",
    batch: int | None = None,
    lag: int | None = None,
    seed: int = 1,
    windows: int = 2,
    from_: Time | None = None,
    to: Time | None = None,
    embargo: str | None = None,
    trade: Sequence[str] | None = None,
    benchmark: str | None = None,
    profile: str | None = None,
    objective: str | None = None,
    set: Mapping[str, Setting] | None = None,  # noqa: A002
    device: str = "auto",
    cluster: Cluster | None = None,
    out: Path | None = None,
    progress: bool | None = None,
) -> WalkForward:
    """Searches `train` (such as "180d"), trades the winner for `test`, moves on, to the end of the data.

    The arguments are the flags of `tidemill walkforward`. With `out` the studies of all windows are kept there, and the same line goes on
    with what an interrupt left. With a `cluster` its workers search one window after the other, with the same bits.
    """
    raw = strategy(of)._with(set or {}, profile, [] if objective is None else [objective])
    options: dict[str, Any] = {
        "trials": trials,
        "plan_trials": None,
        "sampler": sampler,
        "batch": batch,
        "lag": lag,
        "seed": seed,
        "top": 1,
        "enqueue": [],
        "verdict": False,
        "hypertune": "off",
        "device": device,
    }
    pace = checked({"train": train, "test": test, "anchored": anchored, "windows": windows})
    cut = cut_options(from_, to, None, None, None, embargo, trade)
    bars = bars_of(data, benchmark, progress)
    folder = None if out is None else os.fspath(out)
    sent = bars._raw if bars._raw.is_in_memory else None
    with reached(cluster, device, sent) as transport, Progress(progress) as told:
        document, page = _tidemill.walkforward(raw, bars._raw, folder, cut, pace, checked(options), transport, told)
    return WalkForward(json.loads(document), page)
