"""Strategies: a text in one language, whether it is written as TOML or put together in Python."""

from __future__ import annotations

import builtins
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from . import _tidemill

Setting = bool | builtins.int | builtins.float | str | Mapping[str, builtins.float]
"""A value of a parameter or of an execution key, such as `{"fraction": 0.3}` of `sizing`."""

_PYTHON_SIGNAL = (
    "a Python function cannot be a signal: a study must not depend on Python code\n"
    "  hint: compute its values once and pass them as a further column, see Bars.join"
)


@dataclass(frozen=True)
class Range:
    """The values that a search may give a parameter, as a strategy file has them."""

    text: str

    def __str__(self) -> str:
        return self.text


def _range(kind: str, body: str, options: Mapping[str, Any]) -> Range:
    given = [f"{key} = {value_text(value)}" for key, value in options.items() if value is not None]
    return Range("{ " + ", ".join([f"{kind} = {body}", *given]) + " }")


def int(  # noqa: A001
    low: builtins.int,
    high: builtins.int,
    *,
    step: builtins.int | None = None,
    log: bool = False,
    default: builtins.int | None = None,
    when: str | None = None,
) -> Range:
    """A whole number from `low` to `high`, both included."""
    options = {"step": step, "log": log or None, "default": default, "when": when}
    return _range("int", f"[{value_text(low)}, {value_text(high)}]", options)


def float(  # noqa: A001
    low: builtins.float,
    high: builtins.float,
    *,
    step: builtins.float | None = None,
    log: bool = False,
    default: builtins.float | None = None,
    when: str | None = None,
) -> Range:
    """A number from `low` to `high`, both included."""

    def number(value: builtins.float | None) -> builtins.float | None:
        return None if value is None else builtins.float(value)

    options = {"step": number(step), "log": log or None, "default": number(default), "when": when}
    return _range("float", f"[{value_text(number(low))}, {value_text(number(high))}]", options)


def choice(
    *options: str | builtins.float, default: str | builtins.float | None = None, when: str | None = None
) -> Range:
    """One of several words or numbers."""
    body = "[" + ", ".join(value_text(option) for option in options) + "]"
    return _range("choice", body, {"default": default, "when": when})


def bool_(*, default: bool | None = None, when: str | None = None) -> Range:
    """A switch."""
    return _range("bool", "true", {"default": default, "when": when})


def value_text(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, Range):
        return value.text
    if callable(value):
        raise TypeError(_PYTHON_SIGNAL)
    if hasattr(value, "item"):
        value = value.item()  # a number of numpy
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, builtins.int):
        return str(value)
    if isinstance(value, builtins.float):
        if math.isnan(value):
            return "nan"
        return repr(value) if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {value_text(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(value_text(item) for item in value) + "]"
    raise TypeError(f"{value!r} cannot stand in a strategy")


def _key(key: str) -> str:
    is_plain = key.replace("_", "").replace("-", "").isalnum() and key.isascii()
    return key if is_plain else json.dumps(key)


def _section(name: str, entries: Mapping[str, Any] | None) -> str:
    if not entries:
        return ""
    lines = [f"{_key(key)} = {value_text(value)}" for key, value in entries.items()]
    return "\n".join([f"\n[{name}]", *lines]) + "\n"


class Strategy:
    """A strategy. Its text is the whole of it: what a study stores, and what the command line would read.

    `params` are ranges (`tm.int`, `tm.float`, `tm.choice`, `tm.bool_`) or fixed values, `let` names series, `long` and `short` are the
    rules of the two sides, all by the keys of a strategy file.
    """

    def __init__(
        self,
        *,
        name: str = "strategy",
        params: Mapping[str, Range | Setting] | None = None,
        let: Mapping[str, str] | None = None,
        long: Mapping[str, Any] | None = None,
        short: Mapping[str, Any] | None = None,
        execution: Mapping[str, Any] | None = None,
        maximize: str | None = None,
        require: str | None = None,
        reduce: str | None = None,
        description: str | None = None,
    ) -> None:
        objective = {"maximize": maximize, "require": require, "reduce": reduce}
        text = f"name = {value_text(name)}\n"
        if description is not None:
            text += f"description = {value_text(description)}\n"
        text += _section("params", params) + _section("let", let)
        text += _section("long", long) + _section("short", short) + _section("execution", execution)
        text += _section("objective", {key: value for key, value in objective.items() if value is not None})
        self._raw = _tidemill.RawStrategy(f"{name}.toml", text, _options({}, None, ()))

    @classmethod
    def _of(cls, raw: _tidemill.RawStrategy) -> Strategy:
        strategy = cls.__new__(cls)
        strategy._raw = raw
        return strategy

    @property
    def name(self) -> str:
        """Its name."""
        return self._raw.name

    @property
    def text(self) -> str:
        """The text as a strategy file has it."""
        return self._raw.source

    @property
    def profiles(self) -> list[str]:
        """Names of its profiles."""
        return self._raw.profiles

    @property
    def objectives(self) -> list[str]:
        """What a search maximises."""
        return self._raw.objectives

    @property
    def params(self) -> dict[str, dict[str, Any]]:
        """Its parameters by name: `domain`, `default`, and `fixed` where it is not searched."""
        return {param.pop("name"): param for param in json.loads(self._raw.params())}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the text as a strategy file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        free = [name for name, param in self.params.items() if param["fixed"] is None]
        return f"Strategy({self.name!r}, searches {', '.join(free) or 'nothing'})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"

    def __reduce__(self) -> tuple[Any, ...]:
        """The text and what is laid over it, for another process."""
        return _again, (self._raw.file, self.text, self._raw.laid_over)

    def _with(
        self, settings: Mapping[str, Setting], profile: str | None, objective: Sequence[str]
    ) -> _tidemill.RawStrategy:
        """The same text with something laid over it."""
        if not settings and profile is None and not objective:
            return self._raw
        return _tidemill.RawStrategy(self._raw.file, self.text, _options(settings, profile, objective))


def _again(file: str, text: str, options: dict[str, Any]) -> Strategy:
    return Strategy._of(_tidemill.RawStrategy(file, text, options))


def _options(
    settings: Mapping[str, Setting], profile: str | None, objective: Sequence[str]
) -> dict[str, Any]:
    pairs = [(name, value_text(value)) for name, value in settings.items()]
    return {"profile": profile, "set": pairs, "objective": list(objective)}


def strategy(source: str | os.PathLike[str] | Strategy) -> Strategy:
    """Opens a strategy file by its path, a shipped strategy by its name, or reads a text of several lines."""
    if isinstance(source, Strategy):
        return source
    if callable(source):
        raise TypeError(_PYTHON_SIGNAL)
    if isinstance(source, str) and "\n" in source:
        return Strategy._of(_tidemill.RawStrategy("strategy.toml", source, _options({}, None, ())))
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"{type(source).__name__} is no strategy\n  hint: the strategy comes first, then the data")
    return Strategy._of(_tidemill.open_strategy(os.fspath(source), _options({}, None, ())))


def strategies() -> dict[str, str]:
    """The shipped strategies: name and text."""
    return dict(_tidemill.shipped())
