"""Makes the tables that tests/elsewhere.rs compares series from elsewhere with.

Longer bars come from pandas `resample().agg`, what a bar knows of them and of other symbols from `merge_asof`, places among symbols from
`rank(axis=1)`, recursions from `ewm`. Columns `pine_…` are `request.security` of PyneCore, which runs `security.py` with the semantics of Pine
(without lookahead, the last bar that is closed). Nothing of the program is used. Made with pandas 3.1.1, NumPy 2.4.6 and pynesys-pynecore
6.11.0. Run it in this folder:

    pip install numpy pandas pynesys-pynecore && python make_table.py

It writes `bars.csv` (bars of one hour of three symbols, some of them missing) and `expected.csv`: a row for each bar, a column for each
series. The second line of that file names the tolerance of each column: 0 where the arithmetic is the same, else a relative one. An empty
cell is "not available".
"""

import pathlib
import shutil
import tempfile

import numpy as np
import pandas as pd
from pynecore.core.ohlcv import OHLCVWriter
from pynecore.core.script_runner import ScriptRunner
from pynecore.core.syminfo import SymInfo
from pynecore.types.ohlcv import OHLCV

HOUR = pd.Timedelta("1h")
START = pd.Timestamp("2024-01-05T03:00", tz="UTC")  # a Friday, so that weeks are cut


def bars_of(seed, n_hours, missing):
    """A walk in whole cents from a linear congruential generator; every few hours a bar is missing."""
    state = seed
    price, rows = 10_000, []
    for hour in range(n_hours):
        draws = []
        for _ in range(5):
            state = (state * 1_103_515_245 + 12_345) % 2**31
            draws.append(state >> 8)
        open_ = price
        price = max(100, price + draws[0] % 161 - 80)
        high, low = max(open_, price) + draws[1] % 40, min(open_, price) - draws[2] % 40
        if draws[3] % missing != 0:
            rows.append((START + hour * HOUR, open_ / 100, high / 100, low / 100, price / 100, float(draws[4] % 900)))
    return pd.DataFrame(rows, columns=["time", "open", "high", "low", "close", "volume"]).set_index("time")


symbols = {"A": bars_of(1, 220, 9), "B": bars_of(2, 200, 5), "C": bars_of(3, 220, 40)}
# Nothing of B for a week: what it said last grows old.
symbols["B"] = symbols["B"][(symbols["B"].index < START + 60 * HOUR) | (symbols["B"].index > START + 175 * HOUR)]


def known(index, series, close_times, tolerance=None):
    """What each bar knows of a series when it closes."""
    right = pd.DataFrame({"at": close_times, "x": series.to_numpy()}).dropna(subset=["at"])
    left = pd.DataFrame({"at": index + HOUR})
    return pd.merge_asof(left, right, on="at", tolerance=tolerance)["x"].to_numpy()


def longer(bars, length):
    """Longer bars; hours that are missing altogether leave no bar."""
    rule = {"1W": "W-MON"}.get(length, length)
    how = {"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"}
    return bars.resample(rule, label="left", closed="left").agg(how).dropna()


def pine(folder):
    """What PyneCore's `request.security` gives each symbol, of its own longer bars and of symbol B."""
    # PyneCore writes beside the script.
    script = pathlib.Path(shutil.copy(pathlib.Path(__file__).parent / "security.py", folder))
    candles, infos = {}, {}
    for name, bars in symbols.items():
        times = bars.index.as_unit("ms").asi8
        candles[name] = [OHLCV(int(at), *map(float, row)) for at, row in zip(times, bars.to_numpy())]
        infos[name] = SymInfo(
            prefix="X", description=name, ticker=name, currency="USD", period="60", type="crypto", mintick=0.01, pricescale=100,
            pointvalue=1.0, mincontract=1.0, opening_hours=[], session_starts=[], session_ends=[], timezone="UTC",
        )
        infos[name].save_toml(folder / f"{name}.toml")
        with OHLCVWriter(folder / f"{name}.ohlcv", "60") as writer:
            for candle in candles[name]:
                writer.write(candle)
    out = {}
    for name in symbols:
        own = folder / f"{name}.ohlcv"
        runner = ScriptRunner(
            script, candles[name], infos[name], lossless_volume=True, lossless_prices=True,
            chart_data_path=own, security_data={"X:B": folder / "B.ohlcv", "D": own},
        )
        number = lambda value: float(value) if isinstance(value, (int, float)) else np.nan
        rows = [{key: number(value) for key, value in plots.items()} for _, plots in runner.run_iter()]
        out[name] = pd.DataFrame(rows)
    return out


def columns(name, pines):
    bars, out = symbols[name], {}

    def tf(length, series):
        made = longer(bars, length)
        return known(bars.index, series(made), made.index + pd.Timedelta(length))

    out["tf4h_close", 0] = tf("4h", lambda made: made["close"])
    out["tf4h_open", 0] = tf("4h", lambda made: made["open"])
    out["tf4h_range", 0] = tf("4h", lambda made: made["high"] - made["low"])
    out["tf4h_volume", 0] = tf("4h", lambda made: made["volume"])
    out["tf4h_before", 0] = tf("4h", lambda made: made["close"].shift(1))
    out["tf4h_ema", 1e-12] = tf("4h", lambda made: made["close"].ewm(span=5, adjust=False).mean())
    out["tf1d_mean", 1e-12] = tf("1D", lambda made: made["close"].rolling(3).mean())
    out["below_week", 0] = bars["close"].to_numpy() - tf("1W", lambda made: made["high"])
    out["read_before", 0] = pd.Series(out["tf4h_close", 0]).shift(2).to_numpy()

    b = symbols["B"]
    four_days = pd.Timedelta("4D")
    out["of_close", 0] = known(bars.index, b["close"], b.index + HOUR, four_days)
    out["of_young", 0] = known(bars.index, b["close"], b.index + HOUR, pd.Timedelta("2h"))
    day = longer(b, "1D")
    of_day = pd.Series(known(b.index, day["close"], day.index + pd.Timedelta("1D")), b.index)
    out["of_tf", 0] = known(bars.index, of_day, b.index + HOUR, four_days)

    wide = pd.DataFrame({key: one["close"] / one["close"].shift(3) for key, one in symbols.items()})
    place = (wide.rank(axis=1) - 1).div(wide.count(axis=1) - 1, axis=0)
    place[wide.count(axis=1) < 2] = np.nan
    pick = lambda series: series.reindex(bars.index).to_numpy()
    out["rank", 0] = pick(place[name])
    out["mean_over", 1e-12] = pick(wide.mean(axis=1))
    out["sum_over", 1e-12] = pick(wide.sum(axis=1, min_count=1))
    out["count_over", 0] = pick(wide.count(axis=1).astype(float))
    out["max_over", 0] = pick(wide.max(axis=1))
    out["min_over", 0] = pick(wide.min(axis=1))
    rising = pd.DataFrame({key: (one["close"] > one["open"]).astype(float) for key, one in symbols.items()})
    out["share_over", 1e-12] = pick(rising.mean(axis=1))

    out["recur", 1e-12] = bars["close"].ewm(alpha=0.125, adjust=False).mean().to_numpy()
    out["recur_top", 0] = bars["high"].cummax().to_numpy()
    for key, series in pines.items():
        out[key, 1e-12 if key == "pine_mean" else 0] = series.to_numpy()
    made = pd.DataFrame({"time": bars.index, "symbol": name})
    for key, values in out.items():
        made[key] = values
    return made, list(out)


def main():
    with tempfile.TemporaryDirectory() as folder:
        pines = pine(pathlib.Path(folder))
    tables = [columns(name, pines[name]) for name in symbols]
    keys = tables[0][1]
    with open("bars.csv", "w", newline="\n") as file:
        file.write("time,symbol,open,high,low,close,volume\n")
        for name, bars in symbols.items():
            for time, row in bars.iterrows():
                file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ')},{name},{','.join(repr(float(x)) for x in row)}\n")
    with open("expected.csv", "w", newline="\n") as file:
        file.write("symbol," + ",".join(name for name, _ in keys) + "\n")
        file.write("tolerance," + ",".join(f"{tolerance:g}" for _, tolerance in keys) + "\n")
        for table, _ in tables:
            for _, row in table.iterrows():
                cells = ["" if np.isnan(row[key]) else repr(float(row[key])) for key in keys]
                file.write(f"{row['symbol']},{','.join(cells)}\n")


# PyneCore starts processes, which import this file.
if __name__ == "__main__":
    main()
