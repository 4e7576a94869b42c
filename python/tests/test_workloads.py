"""Walk-forward, scan, colouring, and the way to Optuna."""

from __future__ import annotations

import json
from pathlib import Path

import optuna
import polars
import pytest

import tidemill as tm
from conftest import CommandLine


def test_a_walk_forward_is_that_of_the_command_line(
    file: Path, dip: tm.Strategy, tidemill: CommandLine, tmp_path: Path
) -> None:
    walk = tm.walkforward(dip, file, train="15d", test="5d", trials=64, out=tmp_path / "walk", progress=False)
    dip.save(tmp_path / "dip.toml")
    flags = ["--train", "15d", "--test", "5d", "--trials", "64", "--json"]
    done = tidemill("walkforward", tmp_path / "dip.toml", "--data", file, *flags)
    assert json.loads(done.stdout) == walk.document, done.stderr
    assert json.loads((tmp_path / "walk/walkforward.json").read_text()) == walk.document
    assert len(walk.windows) > 2 and "efficiency" in walk.metrics
    assert list(walk.equity.values())[-1] == pytest.approx(1 + walk.metrics["total_return"])
    assert f"{len(walk.windows)} windows" in repr(walk)
    walk.save(tmp_path / "walk.html")
    assert walk._repr_html_().startswith("<iframe srcdoc=")
    again = tm.walkforward(dip, file, train="15d", test="5d", trials=64, out=tmp_path / "walk", progress=False)
    assert again.document == walk.document
    with pytest.raises(ValueError, match="train"):
        tm.walkforward(dip, file, train="soon", test="5d")
    with pytest.raises(ValueError, match="shorter than one --train"):
        tm.walkforward(dip, file, train="400d", test="5d", progress=False)


def test_a_scan_is_that_of_the_command_line(file: Path, tidemill: CommandLine, tmp_path: Path) -> None:
    found = tm.scan(file, bars=1_500, history=True, min_signal=0.0)
    done = tidemill("scan", file, "--bars", "1500", "--min-signal", "0", "--out", tmp_path / "scan.parquet")
    assert done.returncode == 0, done.stderr
    stored = polars.read_parquet(tmp_path / "scan.parquet").sort("symbol")
    rows = found.rows.to_polars().sort("symbol")
    assert rows["signal"].to_list() == stored["signal"].to_list() and rows.height == 2
    assert rows["class"].to_list() == stored["class"].to_list()
    assert rows["last_time"].to_list() == stored["last_time"].to_list()
    assert found.history is not None and len(found.history) == 3_000
    assert tm.scan(file, bars=10_000).skipped[0]["symbol"] == "SYN0"
    with pytest.raises(ValueError, match="lenght"):
        tm.scan(file, set={"lenght": 3})


def test_a_colouring_is_checked_and_repeats(tidemill: CommandLine, tmp_path: Path) -> None:
    graph = tmp_path / "queen6.col"
    made = tidemill("color", "generate", "queen", "--side", "6", "--out", graph)
    assert made.returncode == 0, made.stderr
    found = tm.color(graph, iterations=200_000, seed=3, device="cpu")
    assert found.k == 7 and len(found.colors) == 36
    edges = [line.split()[1:] for line in graph.read_text().splitlines() if line.startswith("e ")]
    assert all(found.colors[int(a) - 1] != found.colors[int(b) - 1] for a, b in edges)
    assert tm.color(graph, iterations=200_000, seed=3, device="cpu").colors == found.colors
    with pytest.raises(ValueError, match="there is no phase"):
        tm.color(graph, phases=["simplex"])
    with pytest.raises(FileNotFoundError):
        tm.color(tmp_path / "none.col", iterations=1)


def test_optuna_takes_a_study(market: tm.Bars) -> None:
    rule = tm.Strategy(
        name="many",
        params={
            "window": tm.int(20, 200, step=10),
            "k": tm.float(0.5, 4.0, log=True),
            "style": tm.choice("dip", "rip"),
            "rips": tm.bool_(default=False),
            # The name of a metric, which makes the column of the parameter take another name.
            "trades": tm.int(4, 20),
        },
        let={"z": "zscore(close, window)"},
        long={"enter": "(z < -k and style == 'dip') or (z > k and style == 'rip' and rips)", "max_hold": "trades"},
        maximize="sharpe",
    )
    study = tm.sweep(rule, market, trials=400, progress=False)
    made = study.to_optuna(n=150)
    assert len(made.trials) == 150
    assert made.best_value == study.best_value
    best = study.best_trial
    assert made.best_params == best.params
    assert made.best_trial.user_attrs["trial"] == best.number
    assert made.best_trial.user_attrs["trades"] == best.metrics["trades"]
    shares = optuna.importance.get_param_importances(made)
    assert set(shares) <= set(rule.params)
    two = tm.sweep(rule, market, trials=100, objective=["sharpe", "-max_drawdown"], progress=False).to_optuna()
    assert len(two.directions) == 2 and len(two.best_trials) >= 1
