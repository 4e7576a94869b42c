"""Compares the closed trades of S1 of the `tidemill` command with vectorbt's, set by set.

    python compare_vectorbt.py --tidemill target/release/tidemill --data FILE.parquet [--sets 100] [--vectorbt TRADES.npz]

For each set it runs `tidemill backtest s1.toml --data FILE --set fast=… --json` and asks for the same bars and reasons, the same
entry price, and exit prices to 1e-12 relative. `--sets 1000` is all of them. `--vectorbt` reads trades that `vectorbt_trades.py`
wrote from the same file instead of computing them again. Exits with 1 at any difference.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np

from rival import add_peers_argument, load_peers
from vectorbt_trades import REASONS, closed_trades, load, read_bars

STRATEGY = pathlib.Path(__file__).resolve().parent / "s1.toml"
# Prime to 1,000, so that any number of sets spreads over all four parameters.
STRIDE = 37
TOLERANCE = 1e-12


def ours(binary, data, chosen):
    """The trades of one set by the command line."""
    fast, slow, sl, tp = chosen
    command = [binary, "backtest", STRATEGY, "--data", data, "--json"]
    for setting in (f"fast={int(fast)}", f"slow={int(slow)}", f"sl={sl}", f"tp={tp}"):
        command += ["--set", setting]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tidemill failed with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)["trades"]


def difference(mine, theirs):
    """The first difference in words, or None; and the largest relative difference of an exit price."""
    largest = 0.0
    for at, trade in enumerate(mine[: len(theirs["exit"])]):
        expected = {
            "signal_idx": int(theirs["entry_idx"][at]),
            "entry_idx": int(theirs["entry_idx"][at]),
            "exit_idx": int(theirs["exit_idx"][at]),
            "entry": float(theirs["entry"][at]),
            "reason": REASONS[theirs["reason"][at]],
        }
        for key, value in expected.items():
            if trade[key] != value:
                return f"trade {at}: {key} is {trade[key]}, vectorbt has {value}", largest
        price = float(theirs["exit"][at])
        largest = max(largest, abs(trade["exit"] - price) / price)
        if largest > TOLERANCE:
            return f"trade {at}: exit is {trade['exit']}, vectorbt has {price}", largest
    if len(mine) != len(theirs["exit"]):
        return f"{len(mine)} trades, vectorbt has {len(theirs['exit'])}", largest
    return None, largest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemill", type=pathlib.Path, required=True, help="the binary")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="Parquet of make_data.py")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--vectorbt", type=pathlib.Path, help="npz of vectorbt_trades.py, all 1,000 sets")
    add_peers_argument(parser)
    args = parser.parse_args()
    peers = load_peers(args.peers)
    grid = peers.grid(1_000)
    chosen = [STRIDE * k % len(grid) for k in range(min(args.sets, len(grid)))]
    if args.vectorbt:
        sets, trades = load(args.vectorbt)
        if not np.array_equal(sets, grid):
            sys.exit(f"{args.vectorbt} does not hold all sets of the grid")
        theirs = [trades[at] for at in chosen]
    else:
        theirs = closed_trades(read_bars(args.data), grid[chosen], peers.FEE)
    wrong, n_trades, largest = 0, 0, 0.0
    for at, expected in zip(chosen, theirs):
        problem, widest = difference(ours(args.tidemill, args.data, grid[at]), expected)
        n_trades += len(expected["exit"])
        largest = max(largest, widest)
        if problem:
            wrong += 1
            print(f"fast, slow, sl, tp = {grid[at].tolist()}: {problem}")
    print(
        f"{len(chosen) - wrong} of {len(chosen)} sets equal, {n_trades:,} trades, "
        f"largest relative difference of an exit price {largest:.1e}"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
