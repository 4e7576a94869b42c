"""What to do now, beside what the command line says and what the back-test does."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

import tidemill as tm
from conftest import CommandLine


def test_a_signal_is_that_of_the_command_line(
    file: Path, dip: tm.Strategy, tidemill: CommandLine, tmp_path: Path
) -> None:
    dip.save(tmp_path / "dip.toml")
    trades = tm.backtest(dip, file, window=60, k=2.0).trades.to_pandas()
    trade = trades[(trades["symbol"] == "SYN0") & (trades["bars"] > 3)].iloc[0]
    seen = set()
    for at in (trade["entry_time"], trade["exit_time"], trade["exit_time"] + pandas.Timedelta(hours=1)):
        found = tm.signal(dip, file, at=at, window=60, k=2.0)
        flags = ["--set", "window=60", "--set", "k=2", "--at", at.isoformat(), "--json"]
        done = tidemill("signal", tmp_path / "dip.toml", "--data", file, *flags)
        assert json.loads(done.stdout) == found.to_dict(), done.stderr
        seen.update(found.actions["SYN0"])
    assert {"enter", "hold"} <= seen
    # The bar of the signal closes when that of the fill opens.
    before = tm.signal(dip, file, at=trade["entry_time"], window=60, k=2.0)
    assert before.actions["SYN0"] == ["enter"] and before["SYN0"]["enter"]["side"] == "long"
    held = tm.signal(dip, file, at=trade["exit_time"], window=60, k=2.0)["SYN0"]["hold"]
    assert held["entry"] == trade["entry"]
    assert pandas.Timestamp(held["entry_time"]) == trade["entry_time"]


def test_a_trial_says_it_of_its_own_data_and_of_newer_bars(
    file: Path, market: tm.Bars, dip: tm.Strategy, tidemill: CommandLine, tmp_path: Path
) -> None:
    study = tm.sweep(dip, file, trials=40, out=tmp_path / "s", trade=["SYN1"], progress=False)
    best = study.best_trial.number
    done = tidemill("signal", "--trial", f"{tmp_path / 's'}:{best}", "--json")
    opened = tm.open(tmp_path / "s")
    for found in (study.signal(), opened.signal(), tm.signal(opened), tm.signal(opened, file, trial=best), study.signal(best, market)):
        assert found.to_dict() == json.loads(done.stdout), done.stderr
        assert list(found.actions) == ["SYN1"], "what the study trades"
    assert list(study.signal(trade=["SYN*"]).actions) == ["SYN0", "SYN1"]
    assert study.signal(3).params == tm.signal(study, trial=3).params
    newer = market.to_polars().head(3_000)
    assert study.signal(data=newer, trade="SYN0")["SYN0"]["bar_time"] != study.signal(trade="SYN0")["SYN0"]["bar_time"]


def test_moments_are_written_in_many_ways(market: tm.Bars, dip: tm.Strategy) -> None:
    last = market.to_pandas()["timestamp"].max()
    moment = last - pandas.Timedelta(hours=5)
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    ways: list[Any] = [
        moment,
        moment.tz_localize(None),
        moment.isoformat(),
        moment.to_pydatetime(),
        moment.to_pydatetime().astimezone(berlin),
        numpy.datetime64(moment.tz_localize(None)),
    ]
    said = [tm.signal(dip, market, at=at).to_dict() for at in ways]
    assert all(each == said[0] for each in said)
    assert pandas.Timestamp(said[0]["symbols"][0]["close_time"]) == moment
    day = moment.date()
    assert tm.signal(dip, market, at=day).to_dict() == tm.signal(dip, market, at=str(day)).to_dict()
    # The same moments cut the data of a back-test.
    cuts = [tm.backtest(dip, market, from_=at).document["segments"] for at in (day, str(day), pandas.Timestamp(day))]
    assert cuts[0] == cuts[1] == cuts[2]


def test_a_signal_shows_itself(market: tm.Bars) -> None:
    rule = tm.Strategy(name="up <&> down", long={"enter": "close > sma(close, 20)", "exit": "close < sma(close, 20)", "stop": "entry * 0.5"})
    found = tm.signal(rule, market)
    shown = repr(found)
    assert shown.startswith("Signal(up <&> down):\nSYN0  ") and "SYN1  " in shown
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + len(found.records()) and "up &lt;&amp;&gt; down" in html
    frame = pandas.DataFrame(found.records())
    assert set(frame["symbol"]) == {"SYN0", "SYN1"}
    assert {(row["symbol"], row["action"]) for row in found.records()} == {
        (symbol, action) for symbol, actions in found.actions.items() for action in actions
    }
    held = next(row for row in found.records() if row["action"] in ("hold", "enter"))
    assert held["stop"] == pytest.approx(held["entry"] * 0.5)


def test_what_cannot_be_answered_is_refused(market: tm.Bars, dip: tm.Strategy) -> None:
    study = tm.sweep(dip, market, trials=20, progress=False)
    with pytest.raises(TypeError, match="a signal needs data"):
        tm.signal(dip)
    with pytest.raises(TypeError, match="trial needs a study"):
        tm.signal(dip, market, trial=3)
    with pytest.raises(TypeError, match="has its parameters"):
        tm.signal(study, market, window=30)
    with pytest.raises(TypeError, match="is no time"):
        tm.signal(dip, market, at=17)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a time"):
        tm.signal(dip, market, at="soon")
    with pytest.raises(ValueError, match="no bar has closed by 1999"):
        tm.signal(dip, market, at="1999-01-01")
    with pytest.raises(ValueError, match="no symbol of the data fits"):
        tm.signal(dip, market, trade=["BTC"])
    with pytest.raises(KeyError, match="there is SYN0, SYN1"):
        tm.signal(dip, market)["BTC"]
    with pytest.raises(tm.StrategyError, match="did you mean `window`"):
        tm.signal(dip, market, wndow=3)
    with pytest.raises(tm.StudyError, match="has no trial 99"):
        study.signal(99)
