"""The CPU sweep of S1 against its rivals: parity first, then time, all in one run on the same threads.

    THREADS=2 python cpu_sweep.py --tidemill target/release/tidemill --data FILE.parquet [--out TABLE.md] [--peers DIR]

Rounds are interleaved: each round runs every engine once (best of `--reps` calls in a row), so that whatever else the machine
does hits all of them. A row shows the best of all rounds, and two ratios: best to best, and the median of the rounds' own ratios.
Exits with 1 if the engines do not make the same number of closed trades; nothing is timed then.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from rival import add_peers_argument, load_peers

THREADS = int(os.environ.get("THREADS", 2))
FIRST_ENTRY = 250
# Every ninth set: prime to 10, so that stops and targets are all there.
VECTORBT_PART = 9
C_FLAGS = ["-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]


class Rivals:
    """The hand-written loops, callable in this process; each call returns five numbers per set, the fourth the trades."""

    def __init__(self, folder, peers, build_folder):
        self.grid = np.ascontiguousarray(peers.grid(1_000))
        self.columns = peers.data(50_000)[:4]
        high, low, close = self.columns[1:]
        self.atr = np.nan_to_num(peers.atr_sma(high, low, close), nan=1.0)
        self.fee = peers.FEE
        self.spans = np.array(sorted({*self.grid[:, 0], *self.grid[:, 1]}))
        self.pairs, pair_of = np.unique(self.grid[:, :2], axis=0, return_inverse=True)
        self.pair_of = pair_of.reshape(-1)
        # The script reads its command line when it is imported.
        line, sys.argv = sys.argv, ["bench_numba.py", "all", str(THREADS)]
        import bench_numba

        sys.argv = line
        self.numba = bench_numba
        library = build_folder / "cpu_lanes.so"
        subprocess.run(["gcc", *C_FLAGS, folder / "cpu_lanes.c", "-o", library, "-lm"], check=True)
        self.lanes = ctypes.CDLL(str(library))

    def loop(self, name):
        """One of numba's loops, or the C lanes."""
        out = np.zeros((len(self.grid), 5))
        arguments = (*self.columns, self.atr, self.grid, self.fee, out)
        if name == "lanes":
            self.c_lanes(out)
        elif name == "fused":
            self.numba.sweep_fused(*arguments)
        elif name == "bank":
            self.numba.sweep_bank(*arguments, self.spans)
        else:
            self.numba.sweep_events(*arguments, self.pairs, self.pair_of)
        return out

    def c_lanes(self, out):
        """The C loop over slices of 64 sets, one thread each; ctypes lets go of the interpreter's lock."""
        from concurrent.futures import ThreadPoolExecutor

        pointer = lambda array: ctypes.c_void_p(array.ctypes.data)  # noqa: E731
        n_sets = len(self.grid)

        def slice_from(first):
            self.lanes.sweep(
                *(pointer(column) for column in (*self.columns, self.atr)),
                ctypes.c_long(len(self.atr)),
                pointer(self.grid),
                ctypes.c_long(n_sets),
                ctypes.c_double(self.fee),
                pointer(out),
                ctypes.c_long(first),
                ctypes.c_long(min(first + 64, n_sets)),
                ctypes.c_long(FIRST_ENTRY),
            )

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(slice_from, range(0, n_sets, 64)))


def time_vectorbt(folder):
    """Wall seconds of vectorbt's own script for a part of the grid, scaled to all of it."""
    environment = dict(
        os.environ, PARAMS="1000", BARS="50000", PART=f"0/{VECTORBT_PART}", CHUNK="28", PYTHONDONTWRITEBYTECODE="1"
    )
    command = [sys.executable, folder / "bench_vectorbt.py", "numba", "atr", str(THREADS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = re.search(r"wall\s+([0-9.]+) s", done.stdout)
    if not found:
        sys.exit(f"vectorbt failed:\n{done.stdout}{done.stderr}")
    return float(found[1]) * 1_000 / len(range(0, 1_000, VECTORBT_PART))


def run_tidemill(binary, data, reps):
    """Our side, in its own process."""
    command = [binary, "bench", "cpu-sweep", "--data", data, "--threads", THREADS, "--repeat", reps, "--json"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tidemill failed with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def check_parity(rivals, first, with_vectorbt):
    """Closed trades of every engine; stops the run if they differ."""
    counts = {name: rivals.loop(name)[:, 3].astype(int) for name in ("fused", "bank", "events", "lanes")}
    totals = {name: int(count.sum()) for name, count in counts.items()}
    totals["tidemill"] = first["total_trades"] - first.get("open_at_end", 0)
    wrong = [name for name, count in counts.items() if (count != counts["fused"]).any()]
    if totals["tidemill"] != totals["fused"]:
        wrong.append("tidemill")
    if with_vectorbt:
        from vectorbt_trades import closed_trades

        bars = dict(zip(("open", "high", "low", "close"), rivals.columns))
        trades = closed_trades(bars, rivals.grid[::VECTORBT_PART], rivals.fee)
        of_part = np.array([len(one["exit"]) for one in trades])
        totals["vectorbt"] = int(of_part.sum())
        if (of_part != counts["fused"][::VECTORBT_PART]).any():
            wrong.append("vectorbt")
    for name, total in totals.items():
        print(f"parity: {name:10s} {total:9,} closed trades", file=sys.stderr)
    if (first["trials"], first["bars"]) != (1_000, len(rivals.atr)):
        sys.exit(f"parity: tidemill ran {first['trials']} trials over {first['bars']} bars")
    if wrong:
        print(f"parity: FAILED for {', '.join(wrong)}", file=sys.stderr)
        sys.exit(1)
    return totals


ROWS = {
    "tidemill": ("Tidemill, CPU executor", "full set, daily marks"),
    "lanes": ("hand-written C, AVX-512 lanes", "return, drawdown, Sharpe, trades, profit factor"),
    "events": ("hand-written numba, `events`", "trade-level only"),
    "bank": ("hand-written numba, `bank`", "return, drawdown, Sharpe, trades, profit factor"),
    "fused": ("hand-written numba, `fused`", "return, drawdown, Sharpe, trades, profit factor"),
    "vectorbt": ("vectorbt, Numba engine", "return, drawdown, Sharpe, trades, profit factor"),
}
AIM = {"lanes": 3, "events": 1, "bank": 5, "fused": 5, "vectorbt": 500}


def table(times, totals, cpu):
    """The result as Markdown."""
    lines = [
        f"S1: 1,000 sets, 50,000 bars, {THREADS} threads, {cpu}. Best of {len(times['tidemill'])} interleaved rounds.",
        "",
        "| engine | metrics | seconds | bar-evals/s | Tidemill is faster by | median of rounds | wanted | closed trades |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    ours = times["tidemill"]
    for name, (title, metrics) in ROWS.items():
        if name not in times:
            continue
        best = min(times[name])
        ratio = f"{best / min(ours):.2f}×"
        paired = f"{statistics.median(theirs / own for theirs, own in zip(times[name], ours)):.2f}×"
        trades = f"{totals[name]:,}"
        if name == "vectorbt":
            trades += f" (every {VECTORBT_PART}th set; time scaled)"
        wanted = f"{AIM[name]}×" if name in AIM else ""
        if name == "tidemill":
            ratio = paired = ""
        lines.append(
            f"| {title} | {metrics} | {best:.4f} | {5e7 / best / 1e6:,.1f} M | {ratio} | {paired} | {wanted} | {trades} |"
        )
    return "\n".join(lines) + "\n"


def processor():
    """The processor's name, where the system tells."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return "processor unknown"
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found[1].strip() if found else "processor unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemill", type=pathlib.Path, required=True, help="the binary, built with --release")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="Parquet of make_data.py")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--reps", type=int, default=3, help="calls in a row within a round, the best counts")
    parser.add_argument("--vectorbt-rounds", type=int, default=1, help="rounds in which vectorbt runs too, 0 leaves it out")
    parser.add_argument("--out", type=pathlib.Path, help="writes the table as Markdown")
    add_peers_argument(parser)
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        # Children inherit it: nobody gets more processors than threads.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    peers = load_peers(args.peers)
    with tempfile.TemporaryDirectory() as folder:
        rivals = Rivals(args.peers, peers, pathlib.Path(folder))
        # The calls for parity also compile numba's loops.
        totals = check_parity(rivals, run_tidemill(args.tidemill, args.data, 1), args.vectorbt_rounds > 0)
        times = {name: [] for name in ("tidemill", "lanes", "events", "bank", "fused")}
        for at in range(args.rounds):
            times["tidemill"].append(run_tidemill(args.tidemill, args.data, args.reps)["seconds"])
            for name in ("lanes", "events", "bank", "fused"):
                calls = []
                for _ in range(args.reps):
                    start = time.perf_counter()
                    rivals.loop(name)
                    calls.append(time.perf_counter() - start)
                times[name].append(min(calls))
            if at < args.vectorbt_rounds:
                times.setdefault("vectorbt", []).append(time_vectorbt(args.peers))
            shown = "  ".join(f"{name} {own[-1]:.4f}" for name, own in times.items() if len(own) == at + 1)
            print(f"round {at + 1}: {shown}  load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    text = table(times, totals, processor())
    print(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text)


if __name__ == "__main__":
    main()
