"""Compares the closed trades and the return of S1 of the `tidemill` command with vectorbt's, set by set, without and with costs.

    python compare_vectorbt.py --tidemill target/release/tidemill --data FILE.parquet [--sets 100] [--vectorbt TRADES.npz …]

For each set it runs `tidemill backtest s1.toml --data FILE --set fast=… --json` and asks for the same bars and reasons, the same
entry price, exit prices to 1e-12 relative, and 1 + return to 1e-12 relative. Without costs that is the return which the command
reports; with costs, which vectorbt charges in another way, it is that of our trades after vectorbt's factor (1 − c) / (1 + c) a
trade. `--sets 1000` is all of them. `--vectorbt` reads what `vectorbt_trades.py` wrote from the same file, one npz for each fee,
instead of computing it again. Exits with 1 at any difference.
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


def ours(binary, data, chosen, fee):
    """One set by the command line. A position left open is marked at the last close, as vectorbt's return has it."""
    fast, slow, sl, tp = chosen
    command = [binary, "backtest", STRATEGY, "--data", data, "--json"]
    parameters = (f"fast={int(fast)}", f"slow={int(slow)}", f"sl={sl}", f"tp={tp}")
    for setting in (*parameters, f"fee_bps={fee * 10_000:.12g}", "end_of_data=close"):
        command += ["--set", setting]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tidemill failed with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def growth(result, fee):
    """What becomes of 1. vectorbt buys for cash / (1 + c) and gets 1 − c of what it sells; what is still open is not sold."""
    if fee == 0:
        return 1 + result["metrics"]["total_return"]
    value = 1.0
    for trade in result["trades"]:
        sold = 1.0 if trade["reason"] == "END" else 1 - fee
        value *= trade["exit"] / trade["entry"] * sold / (1 + fee)
    return value


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


def compare(args, sets, fee, theirs):
    """How many sets differ at this fee."""
    wrong, n_trades, widest_price, widest_return = 0, 0, 0.0, 0.0
    for chosen, expected in zip(sets, theirs):
        result = ours(args.tidemill, args.data, chosen, fee)
        closed = [trade for trade in result["trades"] if trade["reason"] != "END"]
        problem, of_price = difference(closed, expected)
        value, money = growth(result, fee), 1 + float(expected["total_return"])
        of_return = abs(value - money) / money
        if not problem and of_return > TOLERANCE:
            problem = f"1 becomes {value}, with vectorbt {money}"
        n_trades += len(expected["exit"])
        widest_price, widest_return = max(widest_price, of_price), max(widest_return, of_return)
        if problem:
            wrong += 1
            print(f"fee {fee:g}, fast, slow, sl, tp = {chosen.tolist()}: {problem}")
    print(
        f"fee {fee:g}: {len(theirs) - wrong} of {len(theirs)} sets equal, {n_trades:,} trades, "
        f"largest relative difference of an exit price {widest_price:.1e}, of 1 + return {widest_return:.1e}"
    )
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemill", type=pathlib.Path, required=True, help="the binary")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="Parquet of make_data.py")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--vectorbt", type=pathlib.Path, nargs="+", help="npz of vectorbt_trades.py, all 1,000 sets")
    add_peers_argument(parser)
    args = parser.parse_args()
    peers = load_peers(args.peers)
    grid = peers.grid(1_000)
    chosen = [STRIDE * k % len(grid) for k in range(min(args.sets, len(grid)))]
    if args.vectorbt:
        saved = [load(path) for path in args.vectorbt]
        if not all(np.array_equal(sets, grid) for sets, _, _ in saved):
            sys.exit("a file of --vectorbt does not hold all sets of the grid")
        theirs = {fee: [trades[at] for at in chosen] for _, fee, trades in saved}
    else:
        bars = read_bars(args.data)
        theirs = {fee: closed_trades(bars, grid[chosen], fee) for fee in (0.0, peers.FEE)}
    wrong = sum(compare(args, grid[chosen], fee, expected) for fee, expected in theirs.items())
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
