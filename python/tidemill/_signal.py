"""What to do now: what a strategy holds and wants after the last closed bar."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from . import _tidemill
from ._argument import names
from ._bars import Source, bars_of
from ._strategy import Setting, Strategy, strategy
from ._time import Time, time_text

if TYPE_CHECKING:
    from ._study import Study, Trial


class Signal:
    """What one parameter set holds and wants, symbol by symbol."""

    def __init__(self, document: dict[str, Any], words: str) -> None:
        self._document = document
        self._words = words

    @property
    def actions(self) -> dict[str, list[str]]:
        """What to do with each symbol: `enter`, `exit`, `hold` or `nothing`; on a reversal `exit` and `enter`."""
        return {each["symbol"]: list(each["actions"]) for each in self._document["symbols"]}

    @property
    def params(self) -> dict[str, Any]:
        """The parameters; those that are not active are None."""
        return dict(self._document["params"])

    @property
    def notes(self) -> list[str]:
        """Which bars were left out because they had not closed."""
        return list(self._document["notes"])

    def __getitem__(self, symbol: str) -> dict[str, Any]:
        """The state of one symbol, as `to_dict` has it."""
        for each in self._document["symbols"]:
            if each["symbol"] == symbol:
                return dict(each)
        raise KeyError(f"{symbol}; there is {', '.join(self.actions)}")

    def to_dict(self) -> dict[str, Any]:
        """Everything, as `tidemill signal --json` prints it."""
        return self._document

    def records(self) -> list[dict[str, Any]]:
        """A row for each symbol and action, for a frame or a database.

        `stop`, `target`, `trail` and `breakeven` are the levels of the next bar, of each kind the one that comes first; `provisional`
        says that one of them depends on the fill. `closes_in` counts the closes to a time exit.
        """
        rows: list[dict[str, Any]] = []
        for each in self._document["symbols"]:
            for action in each["actions"]:
                position = each.get(action) or {}
                levels = position.get("levels", [])
                rows.append(
                    {
                        "symbol": each["symbol"],
                        "close_time": each["close_time"],
                        "close": each["close"],
                        "action": action,
                        "side": position.get("side"),
                        "entry_time": position.get("entry_time"),
                        "entry": position.get("entry"),
                        "risk": position.get("risk"),
                        **{
                            kind: next((level["price"] for level in levels if level["kind"] == kind), None)
                            for kind in ("stop", "target", "trail", "breakeven")
                        },
                        "provisional": any(level["provisional"] for level in levels),
                        "closes_in": position.get("closes_in"),
                        "reason": position.get("reason"),
                    }
                )
        return rows

    def __repr__(self) -> str:
        return "\n".join([f"Signal({self._document['strategy']}):", *self._words.splitlines()])

    def _repr_html_(self) -> str:
        rows = self.records()
        names = [name for name in (rows[0] if rows else ()) if any(row[name] not in (None, False) for row in rows)]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        cells = ("".join(f"<td>{_shown(row[name])}</td>" for name in names) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p>{escape(self._document['strategy'])}</p>{table}" + (f"<ul>{notes}</ul>" if notes else "")


def _shown(value: object) -> str:
    if value is None or value is False:
        return ""
    return escape(f"{value:.8g}" if isinstance(value, float) else "yes" if value is True else str(value))


def signal(
    of: Strategy | Study | str | os.PathLike[str],
    data: Source | None = None,
    /,
    *,
    at: Time | None = None,
    trial: int | Trial | None = None,
    trade: Sequence[str] | None = None,
    profile: str | None = None,
    set: Mapping[str, Setting] | None = None,  # noqa: A002
    **params: Setting | None,
) -> Signal:
    """Says what to do now: enter, exit, hold or nothing after the last bar that has closed by `at` (now), with the levels of the next one.

    A strategy has its defaults, changed by `profile`, `set` and the parameters given by name. A study has those of a `trial`, the best one
    if none is named, and its own data if none is given; paths are loaded as those of the study were. `trade` names the symbols to say it
    of; strategies read the others all the same.
    """
    from ._study import Study

    if isinstance(of, Study):
        if profile is not None or set or params:
            raise TypeError("a trial of a study has its parameters; give a strategy to choose others: tm.signal(study.strategy, data, …)")
        return of.signal(trial, data, at=at, trade=trade)
    if trial is not None:
        raise TypeError("trial needs a study: tm.signal(tm.open(folder), data, trial=…)")
    if data is None:
        raise TypeError("a signal needs data")
    settings = dict(set or {})
    settings.update({name: value for name, value in params.items() if value is not None})
    raw = strategy(of)._with(settings, profile, ())
    return signal_of(_tidemill.signal(raw, bars_of(data, None)._raw, names("trade", trade), time_text(at)))


def signal_of(said: tuple[str, str]) -> Signal:
    """The object of what the native half says."""
    document, words = said
    return Signal(json.loads(document), words)
