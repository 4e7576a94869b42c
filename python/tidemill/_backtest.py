"""One parameter set in full."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _page, _tidemill
from ._argument import checked
from ._bars import Path, Source, bars_of
from ._strategy import Setting, Strategy, strategy
from ._table import Table
from ._time import Time, time_text


class Backtest:
    """What one parameter set made of the data."""

    def __init__(self, raw: _tidemill.RawBacktest) -> None:
        self._raw = raw
        self._document: dict[str, Any] = json.loads(raw.document())

    @property
    def params(self) -> dict[str, Any]:
        """The parameters; those that were not active are None."""
        return dict(self._document["parameters"])

    @property
    def metrics(self) -> dict[str, float | None]:
        """The metrics in sample, which is all of the data where it is not split; None where one is not defined."""
        return dict(self._document["metrics"])

    @property
    def out_of_sample(self) -> dict[str, float | None] | None:
        """The metrics of the part that a split keeps out of sample."""
        metrics = self._document["out_of_sample"]
        return None if metrics is None else dict(metrics)

    @property
    def value(self) -> float | None:
        """The objective; None where it is not defined or a requirement is not met."""
        value: float | None = self._document["objective"]["value"]
        return value

    @property
    def notes(self) -> list[str]:
        """What limits how far the result can be trusted."""
        return list(self._document["notes"])

    @property
    def document(self) -> dict[str, Any]:
        """Everything but the trades, as `tidemill backtest --json` prints it."""
        return self._document

    @property
    def trades(self) -> Table:
        """All trades."""
        return Table(self._raw.trades())

    @property
    def equity(self) -> Table:
        """Equity, return, exposure and benchmark of each day."""
        return Table(self._raw.equity())

    def html(self) -> str:
        """The report as one self-contained page."""
        return self._raw.html(False)

    def save(self, path: Path) -> None:
        """Writes the report as .html, or everything but the trades as .json."""
        if os.fspath(path).endswith(".json"):
            text = json.dumps(self._document, indent=2, ensure_ascii=False) + "\n"
        elif os.fspath(path).endswith((".html", ".htm")):
            text = self.html()
        else:
            raise ValueError(f"{os.fspath(path)}: a back-test is saved as .html or .json; its trades and its equity are tables")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value}" for name, value in self.params.items() if value is not None)
        names = ("total_return", "sharpe", "max_drawdown", "trades")
        found = [(name, self.metrics.get(name)) for name in names]
        figures = ", ".join(f"{name} {value:.4g}" for name, value in found if value is not None)
        return f"Backtest({self._document['strategy']}: {params}; {figures})"

    def _repr_html_(self) -> str:
        return _page.framed(self._raw.html(True))


def backtest(
    of: Strategy | str | os.PathLike[str],
    data: Source | None = None,
    /,
    *,
    from_: Time | None = None,
    to: Time | None = None,
    split: float | None = None,
    folds: int | None = None,
    holdout: Time | None = None,
    embargo: str | None = None,
    trade: Sequence[str] | None = None,
    benchmark: str | None = None,
    profile: str | None = None,
    objective: str | None = None,
    set: Mapping[str, Setting] | None = None,  # noqa: A002
    **params: Setting | None,
) -> Backtest:
    """Evaluates one parameter set: the defaults of the strategy, changed by `profile`, `set` and the parameters given by name.

    `tm.backtest(dip, bars, **study.best_params)` repeats the best trial of a study; parameters that are None were not active.
    """
    settings = dict(set or {})
    settings.update({name: value for name, value in params.items() if value is not None})
    raw = strategy(of)._with(settings, profile, [] if objective is None else [objective])
    cut = cut_options(from_, to, split, folds, holdout, embargo, trade)
    return Backtest(_tidemill.backtest(raw, bars_of(data, benchmark)._raw, cut))


def cut_options(
    from_: Time | None,
    to: Time | None,
    split: float | None,
    folds: int | None,
    holdout: Time | None,
    embargo: str | None,
    trade: Sequence[str] | None,
) -> dict[str, Any]:
    """How data is cut, for the native half."""
    return {
        "start": time_text(from_),
        "end": time_text(to),
        "holdout": time_text(holdout),
        **checked({"split": split, "folds": folds, "embargo": embargo, "trade": trade}),
    }
