"""Data in and out of frames."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import tidemill as tm


def test_equal_data_has_one_fingerprint(market: tm.Bars, file: Path) -> None:
    of_pandas = pandas.read_parquet(file)
    sources: dict[str, Any] = {
        "path": file,
        "paths": [file],
        "polars": polars.read_parquet(file),
        "lazy": polars.scan_parquet(file),
        "pandas": of_pandas,
        "pandas with an index": of_pandas.set_index("timestamp"),
        "pyarrow": pyarrow.parquet.read_table(file),
        "symbols": {
            symbol: rows.drop("symbol")
            for (symbol,), rows in polars.read_parquet(file).group_by("symbol")
        },
    }
    prints = {name: tm.load(source).fingerprint for name, source in sources.items()}
    assert prints == dict.fromkeys(sources, market.fingerprint)


def test_bars_come_back_as_they_are(market: tm.Bars) -> None:
    frames: list[Any] = [market, market.to_polars(), market.to_pandas(), market.to_arrow()]
    for frame in frames[1:]:
        assert len(frame) == len(market) == 8_000
        assert tm.load(frame).fingerprint == market.fingerprint
    assert market.symbols == ["SYN0", "SYN1"]
    assert polars.DataFrame(market).equals(market.to_polars())


def test_pandas_needs_no_pyarrow(market: tm.Bars, file: Path, tmp_path: Path) -> None:
    """Where pyarrow cannot be imported, numpy's buffers take its place, both ways."""
    script = f"""
import sys
sys.modules["pyarrow"] = None
import tidemill as tm
bars = tm.load({str(file)!r})
frame = bars.to_pandas()
assert str(frame["timestamp"].dtype).startswith("datetime64"), frame.dtypes
for each in (frame, frame.set_index("timestamp")):
    assert tm.load(each).fingerprint == bars.fingerprint
print(bars.fingerprint)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == market.fingerprint, found.stderr


def test_pandas_is_the_same_with_and_without_pyarrow(market: tm.Bars, tmp_path: Path) -> None:
    """Types and values, of every kind of column and with gaps; and the frame can be written to."""
    rule = tm.Strategy(
        name="kinds",
        params={
            "window": tm.int(20, 200),
            "k": tm.float(0.5, 4.0),
            "mode": tm.choice("tight", "wide"),
            "any_bar": tm.bool_(),
            "depth": tm.int(20, 80, when="mode == 'tight'"),
        },
        long={
            "enter": "zscore(close, window) < -k and (any_bar or close > open) and (mode == 'wide' or rsi(close, 14) < depth)",
            "max_hold": 12,
        },
        require="trades >= 200",
    )
    study = tm.sweep(rule, market, trials=400, sampler="random", verdict=False, device="cpu", progress=False)
    best = study.backtest()
    for table in (tm.Table(market._raw.table()), study.trials, best.trades, best.equity):
        by_arrow, by_numpy = table.to_pandas(), table._by_numpy()
        frame: Any
        assert by_arrow.dtypes.to_dict() == by_numpy.dtypes.to_dict()
        pandas.testing.assert_frame_equal(by_arrow, by_numpy, check_exact=True)
        for frame in (by_arrow, by_numpy):
            for name in frame.columns:
                frame.loc[0, name] = frame.loc[len(frame) - 1, name]
    assert study.trials.to_pandas()["objective"].isna().any()


def test_a_row_number_is_no_column(market: tm.Bars) -> None:
    """Selecting rows leaves pandas with an index that says nothing."""
    frame = market.to_pandas()
    chosen = frame[frame["symbol"] == "SYN1"]
    assert chosen.index[0] == 4_000
    assert tm.load(chosen).to_polars().columns == market.to_polars().columns


def test_options_are_those_of_the_command_line(file: Path) -> None:
    bars = tm.load(file, symbols=["SYN1"], resample="1h")
    assert bars.symbols == ["SYN1"] and len(bars) == 1_000
    frame = polars.read_parquet(file)
    assert tm.load(frame, symbols=["SYN1"], resample="1h").fingerprint == bars.fingerprint
    one = frame.filter(polars.col("symbol") == "SYN1").drop("symbol")
    assert tm.load(one, name="SYN1", resample="1h").fingerprint == bars.fingerprint
    assert tm.load(one).symbols == ["data"]
    ends = one.with_columns(polars.col("timestamp") + datetime.timedelta(minutes=15))
    assert tm.load(ends, name="SYN1", stamp="close", resample="1h").fingerprint == bars.fingerprint


def test_closes_alone_are_a_series(market: tm.Bars) -> None:
    frame = market.to_pandas()
    closes = frame[frame["symbol"] == "SYN0"].set_index("timestamp")["close"]
    bars = tm.load(closes, name="SYN0")
    assert bars.symbols == ["SYN0"] and len(bars) == 4_000
    assert tm.load(frame, symbols="SYN1").symbols == ["SYN1"]
    with pytest.raises(TypeError, match="name the symbols of several frames"):
        tm.load([frame, frame])


def test_dirt_is_reported(file: Path) -> None:
    frame = polars.read_parquet(file)
    bars = tm.load(polars.concat([frame, frame.head(3)]))
    kinds = {issue["kind"]: issue["count"] for issue in bars.report["issues"]}
    assert kinds["duplicate"] == 3
    assert any("duplicate" in note or "same time" in note for note in bars.notes), bars.notes


def test_what_is_no_data_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="pass a polars or pandas frame"):
        tm.load(object())
    with pytest.raises(FileNotFoundError, match="no such file"):
        tm.load(tmp_path / "none.csv")
    with pytest.raises(tm.DataError, match="no column for"):
        tm.load(polars.DataFrame({"timestamp": [1], "open": [1.0]}))
    with pytest.raises(ValueError, match="stamp"):
        tm.load(file, stamp="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="resample"):
        tm.load(file, resample="soon")


@pytest.mark.parametrize("max_age", [None, "2h"])
def test_join_is_merge_asof(market: tm.Bars, max_age: str | None) -> None:
    """A bar reads the last row stamped at or before its close, and none that came a microsecond later."""
    draw = numpy.random.default_rng(5)
    bars = market.to_pandas().sort_values("timestamp", kind="stable").reset_index(drop=True)
    close = bars["timestamp"] + pandas.Timedelta(minutes=15)
    close = close.astype("datetime64[us, UTC]")
    # Times are kept in milliseconds, rounded up; a microsecond too old is therefore not seen.
    near = draw.integers(-2, 3, 300) * (1 if max_age is None else 1_000)
    moments = draw.choice(close.astype("int64").unique(), 300, replace=False)
    features = pandas.DataFrame(
        {
            "coin": draw.choice(market.symbols, 300),
            "made_at": pandas.to_datetime(moments + near, unit="us", utc=True),
            "score": draw.normal(size=300),
        }
    ).sort_values("made_at")
    bars["close_time"] = close
    expected = pandas.merge_asof(
        bars,
        features,
        left_on="close_time",
        right_on="made_at",
        left_by="symbol",
        right_by="coin",
        tolerance=None if max_age is None else pandas.Timedelta(max_age),
    ).sort_values(["symbol", "timestamp"])
    for frame in (features, polars.from_pandas(features), pyarrow.Table.from_pandas(features, preserve_index=False)):
        joined = market.join(frame, by=("coin", "made_at"), max_age=max_age, prefix="ml_")
        found = joined.to_pandas()["ml_score"]
        numpy.testing.assert_array_equal(found.to_numpy(), expected["score"].to_numpy())
        report = joined.report["features"]
        assert report["rows"] == 300 and report["columns"] == ["ml_score"]
        stale = 0 if max_age is None else report["bars_stale"]
        assert report["bars_without"] + stale == int(expected["score"].isna().sum())


def test_joined_columns_are_series(market: tm.Bars) -> None:
    times = market.to_polars().filter(polars.col("symbol") == "SYN0")["timestamp"]
    features = polars.DataFrame({"timestamp": times, "up": [float(n % 7 == 0) for n in range(len(times))]})
    bars = market.join(features, prefix="ml_")
    rule = tm.Strategy(name="model", long={"enter": "ml_up > 0.5", "max_hold": 3})
    trades = tm.backtest(rule, bars).trades.to_polars()
    assert len(trades) > 500
    # The row stamped with a bar's open is read at its close, and the entry follows on the next bar.
    late = trades.filter(polars.col("symbol") == "SYN0")["signal_idx"]
    assert all(index % 7 == 6 for index in late.head(5).to_list()) or all(
        index % 7 == 0 for index in late.head(5).to_list()
    )
    with pytest.raises(ValueError, match="has no column when"):
        market.join(features, by=("when",))
    with pytest.raises(tm.DataError, match="no row meets a bar"):
        market.join(polars.DataFrame({"timestamp": ["1999-01-01"], "up": [1.0]}), max_age="1h")
