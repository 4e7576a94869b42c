"""Searches, back-tests and the studies on disk."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pytest

import tidemill as tm
from conftest import CommandLine


def test_python_and_the_command_line_make_the_same_study(
    file: Path, dip: tm.Strategy, tidemill: CommandLine, tmp_path: Path
) -> None:
    dip.save(tmp_path / "dip.toml")
    by_python = tm.sweep(dip, file, trials=600, split=0.7, seed=5, out=tmp_path / "python", progress=False)
    flags = ["--trials", "600", "--split", "0.7", "--seed", "5", "--out", tmp_path / "program"]
    made = tidemill("sweep", tmp_path / "dip.toml", "--data", file, *flags)
    assert made.returncode == 0, made.stderr
    for form in ("csv", "parquet", "json"):
        by_python.save(tmp_path / f"python.{form}")
        out = ["--format", form, "--out", tmp_path / f"program.{form}"]
        assert tidemill("study", "export", tmp_path / "program", *out).returncode == 0
        exported = [(tmp_path / f"{name}.{form}").read_bytes() for name in ("python", "program")]
        assert exported[0] == exported[1] and len(exported[0]) > 10_000
    # Either side opens what the other made.
    opened = tm.open(tmp_path / "program")
    assert opened.best_params == by_python.best_params and opened.best_value == by_python.best_value
    shown = tidemill("study", "show", tmp_path / "python", "--json")
    assert json.loads(shown.stdout)["best"][0]["objective"] == by_python.best_value
    assert opened.verdict == by_python.verdict and opened.verdict is not None


def test_a_study_has_the_names_of_optuna(market: tm.Bars, dip: tm.Strategy) -> None:
    study = tm.sweep(dip, market, trials=500, split=0.7, progress=False)
    assert len(study) == 500 and study.state == "complete"
    trials = study.trials.to_polars()
    assert trials.height == 500 and trials["trial"].to_list() == list(range(500))
    assert trials["objective"].max() == study.best_value == study.best_trial.value
    best = study.best_trial
    row = trials.row(best.number, named=True)
    assert {name: row[name] for name in best.params} == best.params == study.best_params
    assert row["sharpe"] == best.metrics["sharpe"]
    shares = study.importance()
    assert set(shares) == {"window", "k"} and abs(sum(shares.values()) - 1) < 1e-9
    verdict = study.verdict
    assert verdict is not None and verdict.trial == best.number
    assert verdict.holds_up == (verdict.grade == "good")
    assert len(verdict.checks) >= 5 and str(best.number) in repr(study)


def test_a_back_test_repeats_the_best_trial(market: tm.Bars, dip: tm.Strategy) -> None:
    study = tm.sweep(dip, market, trials=300, split=0.7, progress=False)
    test = tm.backtest(dip, market, split=0.7, **study.best_params)
    assert test.value == study.best_value
    assert test.metrics == study.backtest().metrics
    assert test.metrics["sharpe"] == study.best_trial.metrics["sharpe"]
    assert test.params == study.best_params
    trades = test.trades.to_polars()
    assert trades.height == test.document["parts"]["whole"]["metrics"]["trades"]
    assert set(trades["side"]) == {"long"}
    equity = test.equity.to_polars()
    whole = test.document["parts"]["whole"]["metrics"]["total_return"]
    assert equity["equity"][-1] == pytest.approx(1 + whole, abs=1e-12)
    assert "total_return" in repr(test)


@pytest.mark.parametrize("sizing", ["all_in", {"fraction": 0.3}])
def test_independent_figures_agree_with_the_equity(file: Path, dip: tm.Strategy, sizing: str | dict[str, float]) -> None:
    """The script that compares figures with empyrical and quantstats, fed with the tables of a back-test."""
    script = runpy.run_path(str(Path(__file__).parents[2] / "benches/peers/figures.py"))
    test = tm.backtest(dip, file, window=60, k=2.0, set={"sizing": sizing})
    equity = test.equity.to_pandas().set_index("date")
    daily, whole = equity["return"], test.document["parts"]["whole"]
    # Once more from trades and bars alone, by the rules of docs/semantics.md.
    trades = test.trades.to_pandas().to_dict("records")
    made = script["pooled"](file, {**test.document, "trades": trades})
    numpy.testing.assert_allclose(daily.to_numpy(), made.to_numpy(), rtol=1e-9, atol=1e-12)
    numpy.testing.assert_allclose(equity["equity"].to_numpy(), (1 + daily).cumprod().to_numpy(), rtol=1e-9)
    n_compared = 0
    for name, (ours, *theirs) in script["figures"](daily, whole["year_days"], whole["metrics"], whole).items():
        for value in filter(lambda value: value is not None, theirs):
            n_compared += 1
            assert script["apart"](ours, float(value)) <= script["TOLERANCE"], (name, ours, value)
    assert n_compared == 15


def test_the_command_line_gives_the_same_back_test(
    file: Path, dip: tm.Strategy, tidemill: CommandLine, tmp_path: Path
) -> None:
    dip.save(tmp_path / "dip.toml")
    args: list[Any] = ["backtest", tmp_path / "dip.toml", "--data", file, "--set", "window=60", "--set", "k=2"]
    done = tidemill(*args, "--json")
    program = json.loads(done.stdout)
    test = tm.backtest(dip, file, window=60, k=2.0)
    assert test.metrics == program["metrics"] and test.document["segments"] == program["segments"]
    trades = test.trades.to_polars()
    assert trades["return"].to_list() == [trade["ret"] for trade in program["trades"]]
    assert trades["exit_idx"].to_list() == [trade["exit_idx"] for trade in program["trades"]]


def test_more_trials_go_on_with_the_study(market: tm.Bars, dip: tm.Strategy, tmp_path: Path) -> None:
    study = tm.sweep(dip, market, trials=200, out=tmp_path / "s", progress=False)
    study.run(trials=300, progress=False)
    assert len(study) == 300
    again = tm.sweep(dip, market, trials=300, out=tmp_path / "s", progress=False)
    assert again.trials.to_polars().equals(study.trials.to_polars())
    with pytest.raises(tm.StudyError, match="another configuration"):
        tm.sweep(dip, market, trials=300, seed=2, out=tmp_path / "s", progress=False)


def test_an_opened_study_goes_on(file: Path, dip: tm.Strategy, tmp_path: Path) -> None:
    whole = tm.sweep(dip, file, trials=300, enqueue=[{"window": 77, "k": 1.5}], progress=False)
    tm.sweep(dip, file, trials=200, enqueue=[{"window": 77, "k": 1.5}], out=tmp_path / "s", progress=False)
    opened = tm.open(tmp_path / "s").run(trials=300, progress=False)
    assert len(opened) == 300
    assert opened.trials.to_polars()["window"][0] == 77
    assert opened.trials.to_polars().columns == whole.trials.to_polars().columns


def test_a_study_of_a_frame_needs_its_data(market: tm.Bars, dip: tm.Strategy, tmp_path: Path) -> None:
    tm.sweep(dip, market.to_polars(), trials=100, out=tmp_path / "s", progress=False)
    opened = tm.open(tmp_path / "s")
    with pytest.raises(tm.StudyError, match="does not record where its data came from"):
        opened.backtest()
    assert opened.backtest(data=market).value == opened.best_value
    with pytest.raises(tm.StudyError, match="not that of the study"):
        opened.backtest(data=tm.generate(bars=500))


def test_a_study_without_verdict_is_judged_later(market: tm.Bars, dip: tm.Strategy) -> None:
    plain = tm.sweep(dip, market, trials=300, verdict=False, progress=False)
    assert plain.verdict is None
    judged = tm.sweep(dip, market, trials=300, progress=False)
    assert plain.judge() == judged.verdict is not None


def test_several_objectives_give_a_front(market: tm.Bars, dip: tm.Strategy) -> None:
    study = tm.sweep(dip, market, trials=200, objective=["sharpe", "-trades"], progress=False)
    assert len(study.best_trial.values) == 2
    assert "objective_2" in study.trials.columns


def test_wrong_arguments_are_named(market: tm.Bars, dip: tm.Strategy, tmp_path: Path) -> None:
    def sweep(**options: Any) -> tm.Study:
        return tm.sweep(dip, market, progress=False, **options)

    with pytest.raises(ValueError, match="sampler"):
        sweep(sampler="guess")
    with pytest.raises(ValueError, match="trials must be at least 1"):
        sweep(trials=0)
    with pytest.raises(ValueError, match="trials must be at least 1, found -5"):
        sweep(trials=-5)
    with pytest.raises(TypeError, match="trials='10k': expected a whole number"):
        sweep(trials="10k")
    with pytest.raises(TypeError, match="trials=1.5: expected a whole number"):
        sweep(trials=1.5)
    with pytest.raises(TypeError, match="verdict='no': expected True or False"):
        sweep(verdict="no")
    with pytest.raises(TypeError, match="split='half': expected a number"):
        sweep(split="half")
    with pytest.raises(TypeError, match="sampler=3: expected a text"):
        sweep(sampler=3)
    with pytest.raises(TypeError, match="the strategy comes first"):
        tm.backtest(market, dip)  # type: ignore[arg-type]
    assert len(sweep(trials=1e2)) == 100
    with pytest.raises(ValueError, match="split"):
        sweep(split=7.0)
    with pytest.raises(ValueError, match="--holdout"):
        sweep(holdout="2024")
    with pytest.raises(ValueError, match="device"):
        sweep(device="abacus")
    with pytest.raises(tm.StrategyError, match="did you mean `window`"):
        tm.backtest(dip, market, wndow=3)
    with pytest.raises(tm.StrategyError, match="nothing to sweep"):
        sweep(set={"window": 50, "k": 2.0})
    with pytest.raises(FileNotFoundError):
        tm.open(tmp_path / "none")
    (tmp_path / "other").mkdir()
    with pytest.raises(tm.StudyError, match="is not a study"):
        tm.open(tmp_path / "other")
    with pytest.raises(tm.DataError, match="neither a symbol"):
        sweep(benchmark="GOLD")
    study = sweep(trials=50)
    with pytest.raises(ValueError, match="is saved as"):
        study.save(tmp_path / "study.xlsx")
    with pytest.raises(tm.StudyError, match="has no trial 999"):
        study.backtest(999)
    with pytest.raises(ValueError, match="trial must be at least 0"):
        study.backtest(-1)
    assert study.backtest(study.best_trial).params == study.best_params


def test_no_valid_trial_is_explained(market: tm.Bars) -> None:
    never = tm.Strategy(params={"k": tm.float(1, 2)}, long={"enter": "close < -k"}, maximize="sharpe")
    study = tm.sweep(never, market, trials=20, progress=False)
    assert study.best() == [] and len(study) == 20
    with pytest.raises(tm.StudyError, match="[Nn]o trial"):
        _ = study.best_params


def test_pages_are_framed_and_whole(market: tm.Bars, dip: tm.Strategy, tmp_path: Path) -> None:
    study = tm.sweep(dip, market, trials=200, split=0.7, progress=False)
    for result, name in ((study, "study"), (study.backtest(), "backtest")):
        shown = result._repr_html_()
        assert shown.startswith('<iframe srcdoc="') and "<script" not in shown
        result.save(tmp_path / f"{name}.html")
        assert (tmp_path / f"{name}.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    long = tm.backtest(dip, tm.generate(bars=100_000, symbols=2), window=60, k=2.0)
    assert len(long._repr_html_()) < 600_000 < len(long.html())
    with pytest.raises(ValueError, match="its trades and its equity are tables"):
        study.backtest().save(tmp_path / "x.csv")


def test_tables_are_taken_by_any_library(market: tm.Bars, dip: tm.Strategy) -> None:
    trades = tm.backtest(dip, market, window=60, k=2.0).trades
    of_polars, of_pandas, of_arrow = trades.to_polars(), trades.to_pandas(), trades.to_arrow()
    assert len(trades) == of_polars.height == len(of_pandas) == of_arrow.num_rows
    assert polars.DataFrame(of_arrow).equals(of_polars)
    assert str(of_pandas["entry_time"].dtype) == "datetime64[ms, UTC]"
    assert of_pandas["return"].to_list() == of_polars["return"].to_list()
    assert "rows: symbol" in repr(trades)


def test_pandas_gets_what_pyarrow_would_make(market: tm.Bars) -> None:
    """Types and values, also of columns in which something is missing."""
    rule = tm.Strategy(
        params={
            "style": tm.choice("dip", "rip"),
            "odd": tm.bool_(),
            "hold": tm.int(3, 9),
            "patience": tm.int(1, 5, when="style == 'rip'"),
        },
        long={"enter": "style == 'dip' and close < close[patience] or odd", "max_hold": "hold"},
        maximize="sharpe",
    )
    study = tm.sweep(rule, market, trials=50, sampler="random", progress=False)
    test = study.backtest()
    for table in (study.trials, test.trades, test.equity):
        made = table.to_pandas()
        pandas.testing.assert_frame_equal(made, table.to_arrow().to_pandas())
        number = made.select_dtypes("float64").columns[0]
        made.loc[0, number] = 7.0  # the frame belongs to the caller
        assert table.to_pandas()[number][0] != 7.0
    assert study.trials.to_pandas()["patience"].isna().any()
    shown = test.trades._repr_html_()
    assert shown.count("<tr>") == 11 and f"{len(test.trades):,} rows" in shown
    assert str(test.trades.to_pandas()["entry_time"][0].tz_localize(None)) in shown
