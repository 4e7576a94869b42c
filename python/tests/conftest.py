"""What the tests share: a small market, a small strategy, the command line of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tidemill as tm


@pytest.fixture(scope="session")
def market() -> tm.Bars:
    return tm.generate(bars=4_000, symbols=2, seed=3)


@pytest.fixture(scope="session")
def file(market: tm.Bars, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "market.parquet"
    market.save(path)
    return path


@pytest.fixture
def dip() -> tm.Strategy:
    return tm.Strategy(
        name="dip",
        params={"window": tm.int(20, 200), "k": tm.float(0.5, 4.0)},
        long={"enter": "zscore(close, window) < -k", "max_hold": 12},
        maximize="sharpe",
        require="trades >= 5",
    )


CommandLine = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tidemill() -> CommandLine:
    """Runs `tidemill ARGS` as the script of the package does."""

    def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tidemill", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)

    return run
