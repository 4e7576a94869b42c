"""Writes the closed trades of S1 by vectorbt that `s1.rs` compares with.

    pip install numpy numba pandas vectorbt
    python make_golden.py [--peers DIR]

Three files beside this script (last made with vectorbt 1.2.0, numba 0.68.1, pandas 3.1.1, numpy 2.4.6):

- `walk.csv`: the first bars of the benchmark's own series, shortest text that reads back to the same f64. An open is always the
  close before it, so no bar ever opens beyond a level.
- `gaps.csv`: a series of our own that jumps between bars and has longer wicks, so that stops and targets gap, and bars touch both.
- `trades.txt`: `set SERIES FAST SLOW SL TP`, then its trades: entry bar, exit bar, exit price, reason. The entry price is the
  close of the entry bar; the script has checked it.
"""

import argparse
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3] / "benches" / "peers"))

from rival import add_peers_argument, load_peers  # noqa: E402
from vectorbt_trades import REASONS, STOP, TARGET, closed_trades, s1_bars  # noqa: E402

NAMES = ("open", "high", "low", "close")
WALK_BARS = 3_000
GAPS_BARS = 2_500
# Prime to 10 and 1,000: the sets spread over all four parameters.
STRIDE = 37


def gaps_bars():
    """Prices with six decimals: short to write, and a level never lies on that grid by chance."""
    draw = np.random.default_rng(7)
    step = draw.normal(0.0, 0.002, GAPS_BARS)
    jump = np.where(draw.random(GAPS_BARS) < 0.15, draw.normal(0.0, 0.008, GAPS_BARS), 0.0)
    close = 100.0 * np.exp(np.cumsum(step + jump))
    open_ = close / np.exp(step)
    wick = np.where(draw.random(GAPS_BARS) < 0.1, 0.008, 0.001)
    high = np.maximum(open_, close) * (1 + wick * np.abs(draw.normal(0, 1, GAPS_BARS)))
    low = np.minimum(open_, close) * (1 - wick * np.abs(draw.normal(0, 1, GAPS_BARS)))
    rounded = {name: np.round(column, 6) for name, column in zip(NAMES, (open_, high, low, close))}
    rounded["high"] = np.maximum(rounded["high"], np.maximum(rounded["open"], rounded["close"]))
    rounded["low"] = np.minimum(rounded["low"], np.minimum(rounded["open"], rounded["close"]))
    return rounded


def write_bars(path, bars):
    """One line per bar; numbers as Python's repr, which reads back exactly."""
    rows = zip(*(bars[name].tolist() for name in NAMES))
    lines = [",".join(NAMES)] + [",".join(map(repr, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def both_touched(trades, bars, chosen):
    """Exit bars that reached the stop and the target alike."""
    _, _, sl, tp = chosen
    at = trades["exit_idx"]
    hit = trades["reason"] == STOP
    # The stop is sl ranges below the entry, so its distance gives the target's.
    distance = (trades["entry"] - trades["exit"]) / sl
    return int((hit & (bars["high"][at] >= trades["entry"] + tp * distance)).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_peers_argument(parser)
    args = parser.parse_args()
    peers = load_peers(args.peers)
    grid = peers.grid(1_000)
    walk = {name: column[:WALK_BARS] for name, column in s1_bars(peers, 50_000).items()}
    lines = []
    for series, bars, n_sets, first in (("walk", walk, 80, 0), ("gaps", gaps_bars(), 60, 5)):
        write_bars(HERE / f"{series}.csv", bars)
        sets = [grid[(first + STRIDE * k) % len(grid)] for k in range(n_sets)]
        seen = np.zeros(len(REASONS), dtype=int)
        target_gaps = touched = 0
        for chosen, trades in zip(sets, closed_trades(bars, sets, peers.FEE)):
            fast, slow, sl, tp = chosen
            lines.append(f"set {series} {int(fast)} {int(slow)} {sl} {tp}")
            for entry_idx, exit_idx, price, reason in zip(
                trades["entry_idx"], trades["exit_idx"], trades["exit"].tolist(), trades["reason"]
            ):
                lines.append(f"{entry_idx} {exit_idx} {price!r} {REASONS[reason]}")
                seen[reason] += 1
                target_gaps += reason == TARGET and price == bars["open"][exit_idx]
            touched += both_touched(trades, bars, chosen)
        print(series, n_sets, "sets", dict(zip(REASONS, seen.tolist())), f"target gaps {target_gaps}, both touched {touched}")
    (HERE / "trades.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
