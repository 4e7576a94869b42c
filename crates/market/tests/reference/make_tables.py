"""Writes the tables that the indicator tests compare with, computed by pandas and TA-Lib.

    pip install numpy pandas TA-Lib
    python make_tables.py

Three files beside this script: `bars.csv` (the input, once clean and once with gaps), `clean.csv` and `gaps.csv` (one column
per indicator and window, an empty field is NaN; last made with pandas 3.1.1, numpy 2.4.6, TA-Lib 0.8.2). The input is made of integers, so that the files are the same wherever they
are made. The two `seller_exhaustion_*.csv` are not made here: they are golden numbers of the public pandas implementation of
that strategy (pandas 2.2.3, numpy 1.26.4).

What an indicator does at a missing bar follows one of two rules, and each has a plain counterpart here: windowed ones are
computed by pandas, which wants complete windows; recursive ones are computed on the available bars alone and spread back.
"""

import pathlib

import numpy as np
import pandas as pd
import talib

HERE = pathlib.Path(__file__).parent
N_BARS = 200


def make_bars():
    """Prices in quarters with a flat stretch (bars 60 to 89) and, later, bars with a range but an unchanged close."""
    state = 20240229

    def draw(n):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % n

    rows, close = [], 400
    for i in range(N_BARS):
        step, up, down, volume = draw(41) - 20, draw(12), draw(12), 100 + draw(900)
        if 60 <= i < 90:
            open_ = high = low = close = 408
            volume = 500
        else:
            open_ = close
            if not 130 <= i < 150:
                close = max(close + step + (4 if i < 60 else -1), 100)
            high, low = max(open_, close) + up, min(open_, close) - down
        cond = float(i % 11 == 3 or i % 17 == 0 and i > 20)
        rows.append((high / 4, low / 4, close / 4, float(volume), open_ / 4, cond))
    return pd.DataFrame(rows, columns=["high", "low", "close", "volume", "open", "cond"])


def with_gaps(bars):
    """The same bars with missing and infinite values, one column at a time and together, also right at the start."""
    bars = bars.copy()
    bars.loc[[0, 1], "close"] = np.nan
    bars.loc[2, "high"] = np.nan
    bars.loc[[57, 121], "close"] = [np.inf, -np.inf]
    bars.loc[[70, 71], "high"] = np.nan
    bars.loc[[104], "low"] = -np.inf
    bars.loc[[110, 160], "volume"] = np.nan
    bars.loc[[140, 141, 142], ["high", "low", "close"]] = np.nan
    bars.loc[[181], ["high", "low", "close", "volume"]] = np.nan
    return bars


def finite(x):
    return x.where(np.isfinite(x))


def on_available(columns, function):
    """`function` of the bars on which every column is finite, NaN elsewhere."""
    frame = pd.concat([finite(c) for c in columns], axis=1)
    kept = frame.dropna()
    values = function(*[kept.iloc[:, k] for k in range(len(columns))])
    values = np.column_stack(values) if isinstance(values, tuple) else np.asarray(values)
    of = pd.Series if values.ndim == 1 else pd.DataFrame
    return of(values, index=kept.index).reindex(frame.index)


def ta(name, columns, *args):
    """A TA-Lib function on the available bars."""
    return on_available(columns, lambda *c: getattr(talib, name)(*[np.asarray(v, dtype=float) for v in c], *args))


def ewm(x, span):
    x = finite(x)
    return x.ewm(span=span, adjust=False, ignore_na=True).mean().where(x.notna())


def windowed(x, w, function):
    """`function` of each complete window, the definition itself."""
    return finite(x).rolling(w).apply(function, raw=True)


def wma(x, w):
    weights = np.arange(1, w + 1)
    return windowed(x, w, lambda v: np.dot(v, weights) / weights.sum())


def hma(x, w):
    return wma(2 * wma(x, w // 2) - wma(x, w), int(w**0.5))


def lsma(x, w):
    return windowed(x, w, lambda v: np.polyval(np.polyfit(np.arange(w), v, 1), w - 1))


def true_range(high, low, close):
    def of(high, low, close):
        before = close.shift()
        return pd.concat([high - low, (high - before).abs(), (low - before).abs()], axis=1).max(axis=1)

    return on_available([high, low, close], of)


def cci(high, low, close, w):
    typical = (finite(high) + finite(low) + finite(close)) / 3
    mean = typical.rolling(w).mean()
    deviation = windowed(typical, w, lambda v: np.abs(v - v.mean()).mean())
    return ((typical - mean) / (0.015 * deviation)).where(deviation != 0, 0.0).where(deviation.notna())


def swing(x, lookback, lookahead, sign):
    """The text of the specification, bar by bar."""
    x = sign * finite(x).to_numpy()
    out = np.full(len(x), np.nan)
    for i in range(lookback + lookahead, len(x)):
        start, end = i - lookback, i - lookahead
        if start >= end or np.isnan(x[start:i]).any():
            continue
        confirmed = [
            x[k] for k in range(start + lookahead, end) if x[k] >= x[k - lookahead : k + lookahead + 1].max()
        ]
        out[i] = sign * (max(confirmed) if confirmed else x[start:end].max())
    return pd.Series(out)


def rma(x, w):
    """TA-Lib's ATR smooths the true range of bars 1, 2, …; of bars whose low and close are 0 that is the high."""
    return on_available(
        [x],
        lambda v: talib.ATR(np.append(0.0, v), np.zeros(len(v) + 1), np.zeros(len(v) + 1), w)[1:],
    )


def aroon(x, w, sign):
    """Of the highest (or lowest) of w + 1 values, the latest of equal ones, the age: TA-Lib's text on complete windows."""
    return windowed(sign * x, w + 1, lambda v: 100 / w * (w - np.argmax(v[::-1])))


def slope(x, w):
    return windowed(x, w, lambda v: np.polyfit(np.arange(w), v, 1)[0])


def correlation(x, y, w):
    """The definition window by window: pandas' running sums are off where a window is nearly flat."""
    x, y = finite(x), finite(y)
    out = np.full(len(x), np.nan)
    for i in range(w - 1, len(x)):
        a, b = x[i - w + 1 : i + 1].to_numpy(), y[i - w + 1 : i + 1].to_numpy()
        if np.isfinite(a).all() and np.isfinite(b).all() and np.ptp(a) and np.ptp(b):
            out[i] = np.corrcoef(a, b)[0, 1]
    return pd.Series(out)


def psar(high, low, start, step, most):
    """SAREXT is negative in downward trends."""
    values = ta("SAREXT", [high, low], 0, 0, start, step, most, start, step, most)
    return values.abs()


def heikin_open(open_, close, mean):
    def of(open_, close, mean):
        out = [(open_.iloc[0] + close.iloc[0]) / 2]
        for before in mean.iloc[:-1]:
            out.append((out[-1] + before) / 2)
        return out

    return on_available([open_, close, mean], of)


def supertrend(middle, atr, close, k):
    """`ta.supertrend` of PyneCore on the available bars: lines and directions (-1 is up)."""
    line, direction = [], []

    def of(middle, atr, close):
        state = None
        for m, a, c in zip(middle, atr, close):
            upper, lower = m + k * a, m - k * a
            if state is None:
                way = 1
            else:
                before_upper, before_lower, before_line, before_close = state
                lower = lower if lower > before_lower or before_close < before_lower else before_lower
                upper = upper if upper < before_upper or before_close > before_upper else before_upper
                if before_line == before_upper:
                    way = -1 if c > upper else 1
                else:
                    way = 1 if c < lower else -1
            value = lower if way == -1 else upper
            state = (upper, lower, value, c)
            line.append(value)
            direction.append(way)
        return line

    lines = on_available([middle, atr, close], of)
    ups = lines.copy()
    ups[lines.notna()] = [1.0 if way == -1 else 0.0 for way in direction]
    return lines, ups


def table(bars, with_talib_windows):
    names = ["high", "low", "close", "volume", "open", "cond"]
    high, low, close, volume, open_, cond = (bars[c] for c in names)
    hlc, c, rolling = [high, low, close], finite(close), finite(close).rolling
    out = {}
    for w in (5, 20):
        out[f"sma {w}"] = rolling(w).mean()
        # What `rolling(w).std()` means, window by window: its running update is off by 4e-10 in nearly flat windows.
        out[f"stddev {w}"] = windowed(close, w, lambda v: np.std(v, ddof=0))
        out[f"stddev_sample {w}"] = windowed(close, w, lambda v: np.std(v, ddof=1))
        out[f"zscore {w}"] = ((c - rolling(w).mean()) / out[f"stddev {w}"]).where(out[f"stddev {w}"] != 0)
        out[f"highest {w}"] = finite(high).rolling(w).max()
        out[f"lowest {w}"] = finite(low).rolling(w).min()
    for w in (3, 14):
        # TA-Lib knows nothing of gaps; where there are any, the definition stands in.
        out[f"wma {w}"] = ta("WMA", [close], w) if with_talib_windows else wma(close, w)
        out[f"lsma {w}"] = ta("LINEARREG", [close], w) if with_talib_windows else lsma(close, w)
        out[f"cci {w}"] = ta("CCI", hlc, w) if with_talib_windows else cci(*hlc, w)
        out[f"ema {w}"] = ewm(close, w)
        out[f"ema_sma {w}"] = ta("EMA", [close], w)
        out[f"rma {w}"] = rma(volume, w)
        out[f"atr {w}"] = true_range(*hlc).rolling(w).mean()
        out[f"atr_wilder {w}"] = ta("ATR", hlc, w)
        out[f"rsi {w}"] = ta("RSI", [close], w)
        out[f"adx {w}"] = ta("ADX", hlc, w)
        out[f"plus_di {w}"] = ta("PLUS_DI", hlc, w)
        out[f"minus_di {w}"] = ta("MINUS_DI", hlc, w)
    e1 = ewm(close, 9)
    e2 = ewm(e1, 9)
    e3 = ewm(e2, 9)
    out["dema 9"] = 2 * e1 - e2
    out["tema 9"] = 3 * e1 - 3 * e2 + e3
    out["hma 16"] = hma(close, 16)
    out["kama 10"] = ta("KAMA", [close], 10)
    out["true_range"] = true_range(*hlc)
    out["obv"] = ta("OBV", [close, volume])
    out["swing_high 24 3"] = swing(high, 24, 3, 1)
    out["swing_low 24 3"] = swing(low, 24, 3, -1)
    out["cum"] = finite(volume).cumsum()
    for w in (5, 20):
        out[f"quantile {w} 0.5"] = rolling(w).quantile(0.5)
        out[f"quantile {w} 0.1"] = rolling(w).quantile(0.1)
        out[f"correlation {w}"] = correlation(close, volume, w)
    for w in (3, 14):
        out[f"slope {w}"] = ta("LINEARREG_SLOPE", [close], w) if with_talib_windows else slope(close, w)
        out[f"aroon_up {w}"] = ta("AROON", [high, low], w).iloc[:, 1] if with_talib_windows else aroon(high, w, 1)
        out[f"aroon_down {w}"] = ta("AROON", [high, low], w).iloc[:, 0] if with_talib_windows else aroon(low, w, -1)
    out["log_ratio"] = np.log(c / finite(open_))
    out["psar 0.02 0.02 0.2"] = psar(high, low, 0.02, 0.02, 0.2)
    out["psar 0.05 0.01 0.1"] = psar(high, low, 0.05, 0.01, 0.1)
    mean = (((finite(open_) + finite(high)) + finite(low)) + c) / 4
    out["heikin_open"] = heikin_open(open_, close, mean)
    middle, range_ = (finite(high) + finite(low)) / 2, true_range(*hlc)
    out["supertrend_line 2"], out["supertrend_up 2"] = supertrend(middle, range_, close, 2.0)
    groups = (cond > 0).cumsum()
    out["sum_since"] = finite(volume).groupby(groups).cumsum()
    at = pd.Series(np.where(cond == 1, np.arange(len(bars)), np.nan)).ffill()
    out["bars_since"] = np.arange(len(bars)) - at
    out["value_when"] = at.map(lambda i: c[int(i)] if np.isfinite(i) else np.nan)
    return pd.DataFrame(out)


def write(name, frame):
    lines = [",".join(frame.columns)]
    for row in frame.to_numpy():
        lines.append(",".join("" if np.isnan(v) else repr(float(v)).removesuffix(".0") for v in row))
    (HERE / name).write_text("\n".join(lines) + "\n")


def main():
    bars = make_bars()
    gaps = with_gaps(bars)
    write("bars.csv", pd.concat([bars, gaps.iloc[:, :5].add_suffix("_gaps")], axis=1))
    write("clean.csv", table(bars, True))
    write("gaps.csv", table(gaps, False))


if __name__ == "__main__":
    main()
