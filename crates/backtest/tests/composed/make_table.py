"""Writes `expected.tsv`: bars, and the indicators that the language composes, as TA-Lib, pandas and PyneCore compute them.

    pip install numpy pandas TA-Lib pynesys-pynecore
    python make_table.py

Last made with TA-Lib 0.8.2, pandas 3.1.1, numpy 2.4.6 and pynesys-pynecore 6.11.0, which runs `supertrend.py` with the semantics of
Pine. The header of a column is the call, behind the library that computed it; an empty field is NaN. The bars are made of integers, so
that the file is the same wherever it is made.
"""

import math
import pathlib

import numpy as np
import pandas as pd
import talib
from pynecore.core.script_runner import ScriptRunner
from pynecore.core.syminfo import SymInfo
from pynecore.types.ohlcv import OHLCV

HERE = pathlib.Path(__file__).parent
HOUR_MS = 3_600_000
START_MS = 1_704_067_200_000


def make_bars():
    state = 20240315

    def draw(n):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % n

    rows, close = [], 4000
    for i in range(220):
        step, up, down, gap = draw(61) - 30, draw(18), draw(18), draw(9) - 4
        open_ = close + gap
        close = max(open_ + step + (5 if i < 110 else -6), 400)
        rows.append((open_, max(open_, close) + up, min(open_, close) - down, close, 100 + draw(900)))
    frame = pd.DataFrame(rows, columns=["open", "high", "low", "close", "volume"]).astype(float)
    frame[["open", "high", "low", "close"]] /= 8
    # Hours are missing here and there, as on an exchange; days stay days.
    hours = np.cumsum([1 + (i % 37 == 0) for i in range(220)])
    frame.insert(0, "ts_ms", START_MS + hours * HOUR_MS)
    return frame


def pine(bars):
    info = SymInfo(
        prefix="X", description="X", ticker="X", currency="USD", period="60", type="crypto", mintick=0.125, pricescale=8,
        pointvalue=1.0, mincontract=1.0, opening_hours=[], session_starts=[], session_ends=[], timezone="UTC",
    )
    candles = [OHLCV(int(b.ts_ms), b.open, b.high, b.low, b.close, b.volume) for b in bars.itertuples()]
    runner = ScriptRunner(HERE / "supertrend.py", candles, info, lossless_volume=True, lossless_prices=True)
    rows = [dict(plots) for _, plots in runner.run_iter()]
    number = lambda v: float(v) if isinstance(v, (int, float)) and math.isfinite(v) else np.nan
    return pd.DataFrame([{k: number(v) for k, v in row.items()} for row in rows])


def heikin_ashi(bars):
    close = (((bars.open + bars.high) + bars.low) + bars.close) / 4
    open_ = [(bars.open[0] + bars.close[0]) / 2]
    for before in close[:-1]:
        open_.append((open_[-1] + before) / 2)
    open_ = pd.Series(open_)
    high = pd.concat([bars.high, open_, close], axis=1).max(axis=1)
    low = pd.concat([bars.low, open_, close], axis=1).min(axis=1)
    return open_, high, low, close


def main():
    bars = make_bars()
    o, h, l, c, v = (bars[name] for name in ["open", "high", "low", "close", "volume"])
    out = {}
    out["talib: williams_r(14)"] = talib.WILLR(h, l, c, 14)
    down, up = talib.AROON(h, l, 14)
    out["talib: aroon(14).up"], out["talib: aroon(14).down"] = up, down
    out["talib: mfi(14)"] = talib.MFI(h, l, c, v, 14)
    out["talib: trix(close, 5)"] = talib.TRIX(c, 5)
    out["talib: psar(0.02, 0.02, 0.2)"] = talib.SAR(h, l, 0.02, 0.2)
    out["talib: roc(close, 7)"] = talib.ROC(c, 7)
    out["pandas: median(close, 9)"] = c.rolling(9).median()
    out["pandas: quantile(volume, 20, 0.9)"] = v.rolling(20).quantile(0.9)
    out["pandas: correlation(close, volume, 30)"] = c.rolling(30).corr(v)
    out["numpy: log_return(close, 3)"] = np.log(c / c.shift(3))
    out["pandas: vwma(close, 20)"] = (c * v).rolling(20).sum() / v.rolling(20).sum()
    middle, lower, upper = (h.rolling(20).max() + l.rolling(20).min()) / 2, l.rolling(20).min(), h.rolling(20).max()
    out["pandas: donchian(20).upper"], out["pandas: donchian(20).lower"] = upper, lower
    out["pandas: donchian(20).middle"] = middle
    before = c.shift()
    true_range = pd.concat([h - l, (h - before).abs(), (l - before).abs()], axis=1).max(axis=1)
    average, band = c.ewm(span=20, adjust=False).mean(), true_range.ewm(span=20, adjust=False).mean()
    out["pandas: keltner(close, 20, 1.5).upper"] = average + 1.5 * band
    out["pandas: keltner(close, 20, 1.5).middle"] = average
    out["pandas: keltner(close, 20, 1.5).lower"] = average - 1.5 * band
    half = lambda n: (h.rolling(n).max() + l.rolling(n).min()) / 2
    out["pandas: ichimoku(9, 26, 52, 26).conversion"], out["pandas: ichimoku(9, 26, 52, 26).base"] = half(9), half(26)
    out["pandas: ichimoku(9, 26, 52, 26).span_a"] = ((half(9) + half(26)) / 2).shift(26)
    out["pandas: ichimoku(9, 26, 52, 26).span_b"] = half(52).shift(26)
    for name, column in zip(["open", "high", "low", "close"], heikin_ashi(bars)):
        out[f"pandas: heikin_ashi().{name}"] = column
    typical, day = (h + l + c) / 3, bars.ts_ms // 86_400_000
    out["pandas: vwap('1d')"] = (typical * v).groupby(day).cumsum() / v.groupby(day).cumsum()
    starts = (c > c.shift()).cumsum()
    out["pandas: vwap(close > close[1])"] = (typical * v).groupby(starts).cumsum() / v.groupby(starts).cumsum()
    pines = pine(bars)
    out["pynecore: supertrend(10, 3).line"] = pines["line"].where(pines.index >= 9)
    out["pynecore: if(supertrend(10, 3).up, -1, 1)"] = pines["direction"].where(pines.index >= 9)
    out["pynecore: vwma(close, 20)"] = pines["vwma"]
    # Pine has no value before the first day begins.
    out["pynecore: vwap('1d')"] = pines["vwap"].fillna(out["pandas: vwap('1d')"])
    table = pd.concat([bars, pd.DataFrame(out)], axis=1)
    lines = ["\t".join(table.columns)]
    for row in table.to_numpy():
        lines.append("\t".join("" if np.isnan(x) else repr(float(x)).removesuffix(".0") for x in row))
    (HERE / "expected.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
