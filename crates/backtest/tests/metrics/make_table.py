"""Makes the tables that tests/metrics.rs compares every metric with.

The trades are chosen here by hand, bar by bar, and nothing of the program is used. Equity is marked bar by bar with pandas; ratios of daily
returns come from empyrical-reloaded 0.7.1 and, where it has them too, are compared with quantstats 0.0.86 first; the rest is pandas 3.1 and
NumPy 2.4. Definitions: docs/semantics.md, section 4. Run it in this folder:

    pip install numpy pandas empyrical-reloaded==0.7.1 quantstats==0.0.86 && python make_table.py

It writes `bars.csv` (prices), `trades.csv` (the trades; a test tells the engine on which bars to take them) and
`expected.csv` (a row for each metric, a column for each case; an empty cell is "not defined").
"""

import csv
import math

import empyrical as ep
import numpy as np
import pandas as pd
import quantstats as qs

COST_BPS = 6.0  # 4 of fees and 2 of slippage, as in tests/metrics.rs
BARS_PER_DAY = 4


class Prices:
    """A walk in whole cents, from a linear congruential generator, so that every price is a short decimal."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def bars(seed, first_day, n_days, start, drift, weekends):
    """Bars of six hours. `drift` is in tenths of a per cent per bar; it turns round in the middle."""
    draw = Prices(seed)
    days = pd.date_range(first_day, periods=n_days, freq="D", tz="UTC")
    if not weekends:
        days = days[days.day_of_week < 5]
    times = [day + pd.Timedelta(hours=6 * at) for day in days for at in range(BARS_PER_DAY)]
    rows, close = [], start
    for at, time in enumerate(times):
        open_ = close + (draw.below(7) - 3) * max(close // 2000, 1)
        lean = drift if at < len(times) * 2 // 3 else -drift
        close = max(open_ + open_ * (draw.below(61) - 30 + lean) // 1000, 100)
        high = max(open_, close) + draw.below(max(open_ // 150, 2))
        low = min(open_, close) - draw.below(max(open_ // 150, 2))
        rows.append((time, open_ / 100, high / 100, low / 100, close / 100))
    return pd.DataFrame(rows, columns=["time", "open", "high", "low", "close"])


class Trade:
    """A trade: its signal is on the bar before its entry, and it is left at the open of `exit` unless told otherwise."""

    def __init__(self, frame, entry, exit_, side, stop_percent, how="signal", target_percent=None):
        self.entry_idx, self.exit_idx, self.side, self.how = entry, exit_, side, how
        self.entry = frame.open[entry]
        self.stop = round(self.entry * (1 - side * stop_percent / 100), 2)
        self.target = round(self.entry * (1 + side * target_percent / 100), 2) if target_percent else math.nan
        self.exit = {"signal": frame.open[exit_], "stop": self.stop, "both": self.stop, "end": frame.close[exit_]}[how]
        self.risk = side * (self.entry - self.stop)
        self.check(frame)

    def check(self, frame):
        """No level is reached before the exit, and the one that closes the trade is reached inside its bar."""
        adverse = frame.low if self.side > 0 else frame.high
        better = frame.high if self.side > 0 else frame.low
        last = self.exit_idx if self.how == "end" else self.exit_idx - 1
        for at in range(self.entry_idx, last + 1):
            assert self.side * (adverse[at] - self.stop) > 0, (self.entry_idx, "is stopped on bar", at)
            assert not self.side * (better[at] - self.target) >= 0, (self.entry_idx, "reaches its target on bar", at)
        if self.how in ("stop", "both"):
            at = self.exit_idx
            assert self.side * (frame.open[at] - self.stop) > 0 >= self.side * (adverse[at] - self.stop), at
        if self.how == "both":
            assert self.side * (frame.open[at] - self.target) < 0 <= self.side * (better[at] - self.target), at
        elif not math.isnan(self.target):
            raise AssertionError("only one trade has a target")

    def pnl(self, price):
        return self.side * (price - self.entry) - (self.entry + price) * COST_BPS / 10000


def share(sizing, trade):
    kind, value = sizing
    return {"all_in": 1.0, "unit": 1.0, "fraction": value, "risk": min(value * trade.entry / trade.risk, 1.0)}[kind]


def path(frame, trades, sizing):
    """Equity in the order of time: daily marks as a series by day, all marks and exits with the day of the marks, and the deepest fall below
    their peak of an open position marked at the adverse extreme of every bar that it lives through to its close."""
    additive = sizing[0] == "unit"

    def after(equity, trade, price):
        pnl = trade.pnl(price)
        return equity + pnl if additive else max(equity * (1 + share(sizing, trade) * pnl / trade.entry), 0.0)

    equity, marks, points = 1.0, {}, []
    peak, inside = 1.0, 0.0

    def sunk(at, trade):
        adverse = frame.low[at] if trade.side > 0 else frame.high[at]
        return min(inside, after(equity, trade, adverse) / peak - 1)

    by_exit = {trade.exit_idx: trade for trade in trades}
    day = frame.time.dt.floor("D")
    is_last = day != day.shift(-1)
    for at in range(len(frame)):
        if at in by_exit:
            if by_exit[at].how == "end":
                inside = sunk(at, by_exit[at])
            equity = after(equity, by_exit[at], by_exit[at].exit)
            points.append((None, equity))
            peak = max(peak, equity)
        held = [trade for trade in trades if trade.entry_idx <= at < trade.exit_idx]
        assert len(held) <= 1
        if held:
            inside = sunk(at, held[0])
        if is_last[at]:
            value = after(equity, held[0], frame.close[at]) if held else equity
            marks[day[at]] = value
            points.append((day[at], value))
            peak = max(peak, value)
    return pd.Series(marks), points, inside


def drawdown(values):
    """The deepest fall from a peak that starts at 1. empyrical takes returns, and its path starts at 1 as well."""
    steps = pd.Series([1.0, *values]).pct_change().dropna()
    found = ep.max_drawdown(steps)
    path = np.array([1.0, *values])
    deepest = (path / np.maximum.accumulate(path) - 1).min()
    assert math.isclose(found, deepest, rel_tol=1e-9, abs_tol=1e-12)
    return deepest


def longest_run(flags):
    longest = now = 0
    for flag in flags:
        now = now + 1 if flag else 0
        longest = max(longest, now)
    return longest


def under_water(points):
    """For each daily mark whether it lies below a peak before it, be that a mark or an exit."""
    peak, flags = 1.0, []
    for day, value in points:
        peak = max(peak, value)
        if day is not None:
            flags.append(value < peak)
    return flags


def fall(total, peak):
    """The deepest fall of a cumulated sum from a peak that starts there."""
    deepest = 0.0
    for value in total:
        peak = max(peak, value)
        deepest = min(deepest, value - peak)
    return deepest


def ratio(a, b):
    return a / b if b else math.nan


def metrics(trades_by_segment, bars_by_segment, marks, points, daily, year_days, deepest_inside, n_skipped):
    """All metrics of one case. Sums over trades are those of all segments; equity is that of the whole."""
    trades = [trade for segment in trades_by_segment for trade in segment]
    n = len(trades)
    pnl = pd.Series([trade.pnl(trade.exit) for trade in trades], dtype=float)
    ret = pd.Series([trade.pnl(trade.exit) / trade.entry for trade in trades], dtype=float)
    r = pd.Series([trade.pnl(trade.exit) / trade.risk for trade in trades], dtype=float)
    won = pnl > 0
    held = sum(trade.exit_idx - trade.entry_idx for trade in trades)
    by_segment = [np.cumsum([trade.pnl(trade.exit) for trade in segment]) for segment in trades_by_segment]
    out = {
        "trades": n,
        "win_rate": won.mean() if n else math.nan,
        "profit_factor": ratio(ret[won].sum(), -ret[~won].sum()),
        "profit_factor_pnl": ratio(pnl[won].sum(), -pnl[~won].sum()),
        "expectancy": ret.mean(),
        "total_return": marks.iloc[-1] - 1,
        "max_drawdown": drawdown([value for _, value in points]),
        "max_drawdown_daily": drawdown(marks),
        "max_drawdown_bar": deepest_inside,
        "exposure": held / sum(bars_by_segment),
        "longest_drawdown": longest_run(under_water(points)),
        "net_pnl": pnl.sum(),
        "max_drawdown_pnl": min([fall(total, 0.0) for total in by_segment]),
        "max_drawdown_pnl_ref": min([fall(total, total[0]) if len(total) else 0.0 for total in by_segment]),
        "sharpe_r": ratio(r.mean(), r.std(ddof=1)) if n > 1 else math.nan,
        "sqn": math.sqrt(n) * ratio(r.mean(), r.std(ddof=1)) if n > 1 else math.nan,
        "avg_r": r.mean(),
        "avg_win": ret[won].mean(),
        "avg_loss": ret[~won].mean(),
        "avg_win_pnl": pnl[won].mean(),
        "avg_loss_pnl": pnl[~won].mean(),
        "long_share": np.mean([trade.side > 0 for trade in trades]) if n else math.nan,
        "avg_bars": held / n if n else math.nan,
        "open_at_end": sum(trade.how == "end" for trade in trades),
        "ambiguous": sum(trade.how == "both" for trade in trades),
        "skipped": n_skipped,
    }
    if n:
        sharpe = ep.sharpe_ratio(daily, annualization=year_days)
        sortino = ep.sortino_ratio(daily, annualization=year_days)
        # quantstats wants its own kind of index, and takes prices for returns unless told otherwise.
        plain = pd.Series(daily.to_numpy(), index=daily.index.tz_localize(None))
        for mine, other in [(sharpe, qs.stats.sharpe), (sortino, qs.stats.sortino)]:
            assert math.isclose(mine, other(plain, periods=year_days), rel_tol=1e-9), (mine, other)
        annual = marks.iloc[-1] ** (year_days / len(marks)) - 1
        compounded = pd.Series([1.0, *marks]).pct_change().dropna()
        assert math.isclose(annual, ep.annual_return(compounded, annualization=year_days), rel_tol=1e-9)
        deepest = out["max_drawdown"]
        out |= {"sharpe": sharpe, "sortino": sortino if (daily < 0).any() else math.nan, "annual_return": annual}
        out["calmar"] = ratio(annual, -deepest)
        out["calmar"] = math.nan if deepest == 0 else out["calmar"]
    else:
        out |= {"sharpe": math.nan, "sortino": math.nan, "annual_return": math.nan, "calmar": math.nan}
    return out


def alone(symbol, sizing, year_days, trades=None):
    frame, own = SYMBOLS[symbol]
    n_skipped = len(SKIPPED[symbol]) if trades is None else 0
    trades = own if trades is None else trades
    marks, points, inside = path(frame, trades, sizing)
    deepest = min(inside, drawdown([value for _, value in points]))
    before = marks.shift(1, fill_value=1.0)
    daily = marks - before if sizing[0] == "unit" else marks / before - 1
    return metrics([trades], [len(frame)], marks, points, daily, year_days, deepest, n_skipped)


def pooled(symbols, sizing, year_days):
    """Equal parts of capital in every symbol, over the union of their days; marked by the day alone."""
    daily, deepest = [], 0.0
    for symbol in symbols:
        marks, points, inside = path(*SYMBOLS[symbol], sizing)
        # What happens inside bars is that of the worst symbol.
        deepest = min(deepest, inside, drawdown([value for _, value in points]))
        daily.append(marks / marks.shift(1, fill_value=1.0) - 1)
    whole = pd.concat(daily, axis=1).fillna(0.0).sum(axis=1).sort_index() / len(symbols)
    marks = (1 + whole).cumprod()
    points = list(marks.items())
    trades = [SYMBOLS[symbol][1] for symbol in symbols]
    n_bars = [len(SYMBOLS[symbol][0]) for symbol in symbols]
    n_skipped = sum(len(SKIPPED[symbol]) for symbol in symbols)
    return metrics(trades, n_bars, marks, points, whole, year_days, deepest, n_skipped)


def made(seed, start, drift, weekends, plan):
    frame = bars(seed, "2024-01-01", 63, start, drift, weekends)
    trades = []
    for entry, exit_, *rest in plan:
        trades.append(Trade(frame, entry, len(frame) - 1 if exit_ is None else exit_, *rest))
    return frame, trades



# The price of `coin` rises to the eightfold, so that wins early and losses late weigh otherwise in price units than in returns.
SYMBOLS = {
    "coin": made(7, 60_00, 13, True, [
        (6, 19, 1, 12.5),
        (22, 27, -1, 9.0),
        (30, 55, 1, 15.0),
        (56, 57, -1, 8.0),
        (60, 61, -1, 4.0, "stop"),
        (96, 104, 1, 10.0),
        (113, 113, 1, 0.2, "both", 0.2),
        (140, 146, -1, 12.0),
        (172, 176, 1, 15.0),
        # Stopped within a day whose last bar belongs to a trade that wins: the deepest point is an exit, not a daily mark.
        (177, 178, 1, 2.5, "stop"),
        (179, 186, -1, 9.0),
        (190, 215, -1, 15.0),
        (240, None, -1, 20.0, "end"),
    ]),
    "stock": made(11, 240_00, 6, False, [
        (5, 12, 1, 7.5),
        (40, 45, 1, 20.0),
        (60, 62, -1, 6.0, "stop"),
        (70, 130, 1, 30.0),
        (150, 170, -1, 11.0),
    ]),
    "token": made(5, 3_00, 9, True, [
        (9, 80, 1, 25.0),
        (120, 123, -1, 5.0, "stop"),
        (176, 178, 1, 6.0, "stop"),
        (200, 240, -1, 18.0),
    ]),
}
COIN = SYMBOLS["coin"][1]
# Entries that are not taken, because a stop lies above a long or a target above a short: bar, side, stop and target by the entry.
SKIPPED = {"coin": [(70, 1, 1.02, math.nan), (74, -1, 1.1, 1.03), (75, -1, 1.1, 1.0)], "stock": [], "token": []}
CASES = {
    "coin": alone("coin", ("all_in", 0), 365),
    "stock": alone("stock", ("all_in", 0), 252),
    "fraction": alone("coin", ("fraction", 0.3), 365),
    "risk": alone("coin", ("risk", 0.01), 365),
    "unit": alone("coin", ("unit", 0), 365),
    "winners": alone("coin", ("all_in", 0), 365, [COIN[0], COIN[2], COIN[5]]),
    "losers": alone("coin", ("all_in", 0), 365, [COIN[1], COIN[3], COIN[7]]),
    "one": alone("stock", ("all_in", 0), 252, [SYMBOLS["stock"][1][2]]),
    "none": alone("stock", ("all_in", 0), 252, []),
    "pool": pooled(["coin", "token"], ("all_in", 0), 365),
    "mixed": pooled(["coin", "stock"], ("all_in", 0), 365),
}


def write(name, rows):
    with open(name, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def cell(value):
    return "" if math.isnan(value) else repr(float(value))


write("bars.csv", [["symbol", "ts_ms", "open", "high", "low", "close"]] + [
    [symbol, int(bar.time.timestamp() * 1000), bar.open, bar.high, bar.low, bar.close]
    for symbol, (frame, _) in SYMBOLS.items()
    for bar in frame.itertuples()
])
write("trades.csv", [["symbol", "entry_idx", "exit_idx", "side", "entry", "exit", "stop", "target", "how"]] + [
    [symbol, trade.entry_idx, trade.exit_idx, trade.side, trade.entry, trade.exit, trade.stop, cell(trade.target), trade.how]
    for symbol, (_, trades) in SYMBOLS.items()
    for trade in trades
] + [
    [symbol, at, at, side, frame.open[at], frame.open[at], round(frame.open[at] * stop, 2), cell(round(frame.open[at] * target, 2)), "skipped"]
    for symbol, (frame, _) in SYMBOLS.items()
    for at, side, stop, target in SKIPPED[symbol]
])
write("expected.csv", [["metric", *CASES]] + [
    [name, *(cell(case[name]) for case in CASES.values())] for name in CASES["coin"]
])
