"""Compares the figures of `tidemill backtest` with empyrical-reloaded and quantstats, from the same daily returns.

    python figures.py --tidemill target/release/tidemill [--data FILE …] [--out TABLE.md]

The daily returns are those that `backtest --equity` exports. They are also made here from the trades and the bars as
docs/semantics.md, section 4, says, with nothing else of the program, and both must be equal to 1e-9. Both libraries get the
exported returns and `periods = year_days`; every figure must equal what the program reports to 1e-9 relative.

Without `--data` the bars are made by `tidemill data generate`, and nights, weekends and holidays are taken out where a market
has them. Files of one's own are cleaned with `tidemill data convert` first, so that both sides see the same bars.
Exits with 1 at any difference.
"""

import argparse
import importlib.metadata
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import empyrical as ep
import numpy as np
import pandas as pd
import quantstats as qs
from pandas.tseries.holiday import USFederalHolidayCalendar

TOLERANCE = 1e-9
S1 = pathlib.Path(__file__).resolve().parent / "s1.toml"


def every_hour(times):
    return np.full(len(times), True)


def fx_week(times):
    """From Sunday to Friday, 22:00 UTC."""
    hour = times.day_of_week * 24 + times.hour
    return (hour < 4 * 24 + 22) | (hour >= 6 * 24 + 22)


def stock_days(times):
    """Monday to Friday, without the federal holidays of the United States."""
    days = times.tz_localize(None).normalize()
    return (times.day_of_week < 5) & ~days.isin(USFederalHolidayCalendar().holidays(days.min(), days.max()))


# Options of `data generate`, and which of its bars the market has.
MARKETS = {
    "coin, 1h": (["--kind", "regime", "--timeframe", "1h", "--bars", "26000", "--seed", "3"], every_hour),
    "three coins, 15m": (["--kind", "regime", "--symbols", "3", "--bars", "50000", "--seed", "5"], every_hour),
    "FX, 1h": (["--kind", "clustered", "--bars", "26000", "--seed", "7"], fx_week),
    "stock, 1d": (["--kind", "regime", "--timeframe", "1d", "--bars", "5500", "--seed", "9"], stock_days),
}
FREE = ["fee_bps=0", "slippage_bps=0"]
PAID = ["fee_bps=4", "slippage_bps=2"]
# Both sides and stops; a trailing stop; closed by time, and in the market from the first day on; filled at the close, what is
# left at the end forgotten; other sizes.
RUNS = [
    ("ema-cross", ["fast=10", "slow=50"], "all_in"),
    ("donchian-breakout", ["channel=48"], "all_in"),
    ("zscore-dip", ["window=10", "threshold=1"], "all_in"),
    (S1, [], "all_in"),
    ("ema-cross", ["fast=10", "slow=50"], "{fraction=0.3}"),
    ("ema-cross", ["fast=10", "slow=50"], "{risk=0.01}"),
]


def tidemill(binary, *arguments):
    """What the command prints."""
    done = subprocess.run([str(part) for part in (binary, *arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tidemill {' '.join(map(str, arguments))} failed with {done.returncode}:\n{done.stderr}")
    return done.stdout


def generated(binary, folder):
    """A file of bars for each market."""
    for number, (name, (options, kept)) in enumerate(MARKETS.items()):
        path = folder / f"market{number}.parquet"
        tidemill(binary, "data", "generate", *options, "--out", path)
        bars = pd.read_parquet(path)
        bars[kept(pd.DatetimeIndex(bars.timestamp))].to_parquet(path, index=False)
        yield name, path


def cleaned(binary, folder, files):
    """The given files as the program sees them."""
    for number, file in enumerate(files):
        path = folder / f"own{number}.parquet"
        tidemill(binary, "data", "convert", file, "--out", path)
        yield file.stem, path


def one_r(trade):
    """The risk of a trade. What ended at exactly nothing has no quotient: it is the way to the stop, else 1 % of the price."""
    if trade["r"]:
        return trade["pnl"] / trade["r"]
    return abs(trade["entry"] - trade["stop"]) if trade["stop"] else 0.01 * trade["entry"]


def order_cost(execution, kind):
    """Fee and slippage of an order of a kind, as a share of its price; a number is that of all kinds."""
    costs = (execution["fee_bps"], execution["slippage_bps"])
    return sum(each[kind] if isinstance(each, dict) else each for each in costs) / 10_000


def order_kind(reason):
    """The order that closed a trade, by the default labels of exits."""
    kinds = {"STOP": "stop", "TRAIL": "stop", "BREAKEVEN": "stop", "TARGET": "limit"}
    return kinds.get(reason.removesuffix("_GAP"), "market")


def daily_returns(bars, trades, execution):
    """Equity of one symbol, marked at the last close of each day: the returns from mark to mark."""
    cost = {kind: order_cost(execution, kind) for kind in ("market", "stop", "limit")}
    sizing = execution["sizing"]
    close = bars.close.to_numpy()
    day = pd.DatetimeIndex(bars.timestamp).floor("D")
    last_of_day = np.flatnonzero(np.append(day[1:] != day[:-1], True))
    last_close = close[last_of_day]
    marks, equity = np.ones(len(last_of_day)), 1.0
    for trade in trades:
        entry, side = trade["entry"], {"long": 1, "short": -1}[trade["side"]]
        if sizing == "all_in":
            share = 1.0
        elif "fraction" in sizing:
            share = sizing["fraction"]
        else:
            share = min(sizing["risk"] * entry / one_r(trade), 1.0)

        def after(price, kind="market"):
            pnl = side * (price - entry) - entry * cost["market"] - price * cost[kind]
            return np.maximum(equity * (1 + share * pnl / entry), 0.0)

        first, end = np.searchsorted(last_of_day, (trade["entry_idx"], trade["exit_idx"]))
        marks[first:end] = after(last_close[first:end])
        equity = 0.0 if trade["reason"] == "RUIN" else float(after(trade["exit"], order_kind(trade["reason"])))
        marks[end:] = equity
    before = np.append(1.0, marks[:-1])
    returns = np.divide(marks, before, out=np.ones_like(marks), where=before > 0) - 1
    return pd.Series(returns, index=day[last_of_day].tz_localize(None))


def pooled(path, result):
    """Daily returns of all symbols together: equal parts of capital in each."""
    bars = pd.read_parquet(path)
    of_symbol = dict(list(bars.groupby("symbol", sort=False))) if "symbol" in bars else {None: bars}
    parts = []
    for segment in result["segments"]:
        own = of_symbol[segment["symbol"]] if "symbol" in bars else bars
        if len(own) != segment["bars"]:
            sys.exit(f"{segment['symbol']} has {len(own)} bars, the program saw {segment['bars']}")
        trades = [trade for trade in result["trades"] if trade["segment"] == segment["name"]]
        parts.append(daily_returns(own, trades, result["execution"]))
    return pd.concat(parts, axis=1, sort=True).fillna(0.0).sum(axis=1) / len(parts)


def exported(path, made):
    """The daily returns of a file that `--equity` wrote; they must be those made from trades and bars, and give its marks."""
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, parse_dates=["date"])
    table = table.set_index("date")
    if not table.index.equals(made.index.astype(table.index.dtype)):
        sys.exit(f"{path.name} has other days than the trades and bars")
    daily = table["return"]
    for what, found, wanted in [
        ("returns", daily, made),
        ("equity", table["equity"], (1 + daily).cumprod()),
        ("benchmark", table["benchmark"], (1 + table["benchmark_return"]).cumprod()),
    ]:
        worst = float(np.max(np.abs(found.to_numpy() - wanted.to_numpy()) / np.maximum(np.abs(wanted.to_numpy()), 1.0)))
        if not worst <= TOLERANCE:
            sys.exit(f"{path.name}: {what} differ by {worst:.1e}")
    return daily


def figures(daily, year_days, metrics, spread):
    """For each figure what the program reports and what the libraries say."""
    falls = -metrics["max_drawdown_daily"]
    periods = {"periods": year_days}
    annual = {"annualization": year_days}
    # Theirs is over daily marks, the program's own figure over exits as well.
    calmar = metrics["annual_return"] / falls if falls else None
    return {
        "return": (metrics["total_return"], ep.cum_returns_final(daily), qs.stats.comp(daily)),
        "annual return": (metrics["annual_return"], ep.annual_return(daily, **annual), qs.stats.cagr(daily, **periods)),
        "Sharpe": (metrics["sharpe"], ep.sharpe_ratio(daily, **annual), qs.stats.sharpe(daily, **periods)),
        "Sortino": (metrics["sortino"], ep.sortino_ratio(daily, **annual), qs.stats.sortino(daily, **periods)),
        "volatility": (spread["volatility"], ep.annual_volatility(daily, **annual), qs.stats.volatility(daily, **periods)),
        "drawdown": (metrics["max_drawdown_daily"], ep.max_drawdown(daily), qs.stats.max_drawdown(daily)),
        "Calmar": (calmar, ep.calmar_ratio(daily, **annual), qs.stats.calmar(daily, **periods)),
        # empyrical's is a quantile of the returns themselves, another figure.
        "VaR": (spread["value_at_risk"], None, qs.stats.value_at_risk(daily)),
    }


def apart(ours, theirs):
    """Relative difference; a figure that is defined on one side only is infinitely far away."""
    if ours is None or not math.isfinite(theirs):
        return 0.0 if ours is None and not math.isfinite(theirs) else math.inf
    return 0.0 if ours == theirs else abs(ours - theirs) / abs(theirs) if theirs else math.inf


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemill", type=pathlib.Path, required=True, help="the binary")
    parser.add_argument("--data", type=pathlib.Path, nargs="+", help="files of one's own instead of generated ones")
    parser.add_argument("--out", type=pathlib.Path, help="write the tables as Markdown")
    args = parser.parse_args()

    rows, wrong, n_figures = [], 0, 0
    largest = {}  # of each figure: the largest difference from each library
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        markets = cleaned(args.tidemill, folder, args.data) if args.data else generated(args.tidemill, folder)
        for market, path in markets:
            for strategy, settings, sizing in RUNS:
                for costs in (FREE, PAID):
                    options = [part for setting in (*settings, *costs, f"sizing={sizing}") for part in ("--set", setting)]
                    # Both formats are read in turn.
                    file = folder / f"equity.{('parquet', 'csv')[len(rows) % 2]}"
                    command = ("backtest", strategy, "--data", path, "--json", "--equity", file, *options)
                    result = json.loads(tidemill(args.tidemill, *command))
                    c = result["execution"]["fee_bps"] + result["execution"]["slippage_bps"]
                    name = f"{market}; {result['strategy']}, {sizing.strip('{}').replace('=', ' ')}, {c:g} bps"
                    if not result["trades"]:
                        print(f"{name}: no trades, nothing to compare")
                        continue
                    daily = exported(file, pooled(path, result))
                    cells, whole = [], result["parts"]["whole"]
                    for figure, (ours, *theirs) in figures(daily, whole["year_days"], whole["metrics"], whole).items():
                        worst = largest.setdefault(figure, [None, None])
                        for at, value in enumerate(theirs):
                            if value is None:
                                continue
                            n_figures += 1
                            difference = apart(ours, float(value))
                            worst[at] = max(worst[at] or 0.0, difference)
                            if difference > TOLERANCE:
                                wrong += 1
                                print(f"{name}: {figure} is {ours}, {('empyrical', 'quantstats')[at]} has {value}")
                        cells.append("–" if ours is None else f"{ours:.10g}")
                    counts = (f"{len(result['trades']):,}", f"{len(daily):,}", f"{result['year_days']:g}")
                    rows.append([name, *counts, *cells])

    if not rows:
        sys.exit("no case had trades: nothing was compared")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("empyrical-reloaded", "quantstats", "pandas", "numpy"))
    says = f"{n_figures - wrong:,} of {n_figures:,} figures of {len(rows)} cases equal to {TOLERANCE:g} relative ({versions})."
    differences = [
        [figure, *("–" if value is None else f"{value:.1e}" for value in by_library)]
        for figure, by_library in largest.items()
    ]
    text = "\n\n".join([
        says,
        "Largest relative difference of each figure:",
        table(["figure", "empyrical", "quantstats"], differences),
        "Ours:",
        table(["case", "trades", "days", "year_days", *largest], rows),
    ])
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
