"""Strategies made in Python are texts of the one language."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidemill as tm


def test_python_makes_the_text_of_a_file(dip: tm.Strategy, tmp_path: Path) -> None:
    assert dip.text == (
        'name = "dip"\n'
        "\n[params]\nwindow = { int = [20, 200] }\nk = { float = [0.5, 4.0] }\n"
        '\n[long]\nenter = "zscore(close, window) < -k"\nmax_hold = 12\n'
        '\n[objective]\nmaximize = "sharpe"\nrequire = "trades >= 5"\n'
    )
    assert str(tm.strategy(dip.text)) == dip.text
    dip.save(tmp_path / "dip.toml")
    again = tm.strategy(tmp_path / "dip.toml")
    assert again.name == "dip" and again.params == dip.params
    assert dip.params["window"]["domain"] == {"int": [20, 200], "step": 1, "log": False}
    assert "searches window, k" in repr(dip)


def test_all_kinds_of_parameters() -> None:
    made = tm.Strategy(
        params={
            "fast": tm.int(5, 60, step=5, default=20),
            "scale": tm.float(0.1, 10, log=True),
            "style": tm.choice("target", "trail", default="trail"),
            "shorts": tm.bool_(default=False),
            "reward": tm.float(1, 6, when="style == 'target'"),
            "fixed": 3,
        },
        let={"quick": "ema(close, fast)"},
        long={"enter": "close > quick * scale + reward * fixed and shorts"},
        execution={"fee_bps": 2.5},
    )
    params = made.params
    assert params["style"] == {"domain": {"choice": ["target", "trail"]}, "default": "trail", "fixed": None}
    assert params["shorts"]["default"] is False
    assert params["fixed"]["fixed"] == 3
    assert params["scale"]["domain"]["log"] is True


def test_shipped_strategies_have_names() -> None:
    assert "ema-cross" in tm.strategies()
    assert tm.strategy("ema-cross").text == tm.strategies()["ema-cross"]
    with pytest.raises(tm.StrategyError, match="did you mean `ema-cross`"):
        tm.strategy("ema-crss")
    with pytest.raises(FileNotFoundError):
        tm.strategy("none/at-all.toml")


def test_problems_have_places_and_hints() -> None:
    with pytest.raises(tm.StrategyError) as raised:
        tm.strategy('[params]\nw = { int = [9, 1] }\n[long]\nentr = "close > 1"\n')
    problems = raised.value.problems
    assert [problem.line for problem in problems] == sorted(problem.line for problem in problems)
    typo = next(problem for problem in problems if "entr" in problem.message)
    assert typo.line == 4 and typo.column == 1
    assert isinstance(raised.value, tm.Error)


def test_unknown_names_are_found_when_it_runs(market: tm.Bars) -> None:
    with pytest.raises(tm.StrategyError) as raised:
        tm.backtest(tm.Strategy(long={"enter": "close > cloze"}), market)
    (problem,) = raised.value.problems
    assert problem.line == 4 and "cloze" in problem.message and "close" in (problem.hint or problem.message)


def test_python_code_is_no_signal() -> None:
    with pytest.raises(TypeError, match="pass them as a further column"):
        tm.Strategy(long={"enter": lambda bar: bar.close > 1})
    with pytest.raises(TypeError, match="pass them as a further column"):
        tm.strategy(lambda bar: True)  # type: ignore[arg-type]
