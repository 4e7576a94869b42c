"""Measures the Python package that this Python imports: time to import, frames in and out, and what a sweep costs beside the command line.

    python benches/package.py [--rows 1000000] [--pairs 9] [--trials 20000] [--program tidemill] [--only frames]

Prints Markdown for `bench-runs/`, with the goal of each row and whether it is met; on two idle cores it takes some five minutes. Needs
polars, pandas and pyarrow. Times are medians, after one go that does not count; CPU time is that of user and system together, except that
of the sweeps, which is user time alone. Goals are for the clock, so they say something on an idle machine only: the load is printed too.

"Crossing" is `tm.load` of the same frame with its column of closes named otherwise: it is refused once the frame is here and before
anything is cleaned. The files of the trials are also read by pyarrow, which shows what reading alone costs. Sweeps run in processes of
their own, in turn: one of Python's, one of the command line's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas
import polars
import pyarrow
import pyarrow.parquet

import tidemill as tm

GOAL_MS = 50.0
GOAL_OVERHEAD = 0.05
IMPORT = """
import time
began = time.perf_counter(), time.process_time()
import tidemill
print(time.perf_counter() - began[0], time.process_time() - began[1])
"""
SWEEP = """
import sys, tidemill as tm
file, trials, out = sys.argv[1:]
print(tm.sweep("zscore-dip", file, trials=int(trials), split=0.7, device="cpu", out=out))
"""


Times = tuple[float, float]


def timed(work: Callable[[], object], n: int = 9) -> Times:
    """Medians of milliseconds on the clock and of the processor."""
    clock, processor = [], []
    for _ in range(n + 1):
        began = time.perf_counter(), time.process_time()
        made = work()
        clock.append(1e3 * (time.perf_counter() - began[0]))
        processor.append(1e3 * (time.process_time() - began[1]))
        del made
    return statistics.median(clock[1:]), statistics.median(processor[1:])


def row(what: str, times: Times, goal: float | None = None) -> Times:
    """Prints a row of the table."""
    judged = "– | –" if goal is None else f"{goal:.0f} | {'yes' if times[0] < goal else '**no**'}"
    print(f"| {what} | {times[0]:.1f} | {times[1]:.1f} | {judged} |", flush=True)
    return times


def imports() -> None:
    runs = [subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True) for _ in range(9)]
    clock, processor = zip(*(map(float, run.stdout.split()) for run in runs), strict=True)
    row("import", (1e3 * statistics.median(clock), 1e3 * statistics.median(processor)), 200)


def crossing(frame: object) -> Callable[[], None]:
    """Takes a frame over and refuses it."""

    def cross() -> None:
        try:
            tm.load(frame)
        except tm.DataError as error:
            assert "no column for" in str(error), error
        else:
            raise AssertionError("it was loaded")

    return cross


def frames(n_rows: int) -> None:
    bars = tm.generate(bars=n_rows)
    polars_frame, pandas_frame, table = bars.to_polars(), bars.to_pandas(), bars.to_arrow()
    renamed = [name if name != "close" else "other" for name in table.column_names]
    for name, whole, lacking in (
        ("polars", polars_frame, polars_frame.rename({"close": "other"})),
        ("pandas", pandas_frame, pandas_frame.rename(columns={"close": "other"})),
        ("pyarrow", table, table.rename_columns(renamed)),
    ):
        row(f"{name} in, crossing", timed(crossing(lacking)), GOAL_MS)
        row(f"{name} in, crossing and cleaning", timed(lambda whole=whole: tm.load(whole)))  # type: ignore[misc]
    for name, hand_over in (("polars", bars.to_polars), ("pandas", bars.to_pandas), ("pyarrow", bars.to_arrow)):
        row(f"bars out, {name}", timed(hand_over), GOAL_MS)


def trials(n_rows: int) -> None:
    study = tm.sweep("zscore-dip", tm.generate(bars=300), trials=n_rows, sampler="random", verdict=False, device="cpu", progress=False)
    parts = sorted((Path(study.folder) / "trials").glob("part-*.parquet"))
    reading = row("trials, their files read by pyarrow", timed(lambda: [pyarrow.parquet.read_table(part) for part in parts], 5))
    row("trials, from their folder to a table", timed(lambda: study.trials, 5), reading[0] + GOAL_MS)
    table = study.trials
    for name, hand_over in (("polars", table.to_polars), ("pandas", table.to_pandas), ("pyarrow", table.to_arrow)):
        row(f"trials out, {len(table.columns)} columns, {name}", timed(hand_over, 5), GOAL_MS)


def user_seconds(command: list[str]) -> float:
    """User time of a process that has to succeed."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime


def sweeps(n_pairs: int, n_trials: int, program: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "market.parquet"
        tm.generate(bars=60_000, timeframe="1h").save(file)
        times: tuple[list[float], list[float]] = ([], [])
        print("\n| pair | `tm.sweep`, user s | command line, user s |\n|---|---:|---:|", flush=True)
        for pair in range(n_pairs):
            out = [str(Path(folder) / f"{name}{pair}") for name in ("python", "program")]
            flags = ["--data", str(file), "--trials", str(n_trials), "--split", "0.7", "--device", "cpu", "--out", out[1]]
            commands = ([sys.executable, "-c", SWEEP, str(file), str(n_trials), out[0]], [*program, "sweep", "zscore-dip", *flags])
            # The first of a pair is now the one, now the other.
            for side in (0, 1) if pair % 2 == 0 else (1, 0):
                times[side].append(user_seconds(commands[side]))
            print(f"| {pair + 1} | {times[0][-1]:.3f} | {times[1][-1]:.3f} |", flush=True)
        by_python, by_program = map(statistics.median, times)
        print(f"| median | {by_python:.3f} | {by_program:.3f} |")
        overhead = by_python / by_program - 1
        met = "met" if overhead < GOAL_OVERHEAD else "**not met**"
        print(f"\nOverhead of `tm.sweep`: {overhead:+.2%}; the goal, below {GOAL_OVERHEAD:.0%}, is {met}.")


def load() -> str:
    """Load averages, where the system tells them."""
    return " ".join(f"{each:.2f}" for each in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--program", help="the command line [default: that of the package]")
    parser.add_argument("--only", choices=("import", "frames", "trials", "sweeps"), help="leave the others out")
    args = parser.parse_args()
    began = time.perf_counter()
    versions = f"polars {polars.__version__}, pandas {pandas.__version__}, pyarrow {pyarrow.__version__}"
    print(f"tidemill {tm.__version__}, Python {sys.version.split()[0]}, {versions}, {os.cpu_count()} cores, load average {load()}\n")
    parts: dict[str, Callable[[], None]] = {
        "import": imports,
        "frames": lambda: frames(args.rows),
        "trials": lambda: trials(args.rows),
        "sweeps": lambda: sweeps(args.pairs, args.trials, [args.program] if args.program else [sys.executable, "-m", "tidemill"]),
    }
    if args.only != "sweeps":
        print(f"| what, {args.rows:,} rows | clock, ms | CPU, ms | goal, ms | met |\n|---|---:|---:|---:|---|")
    for name, measure in parts.items():
        if args.only in (None, name):
            measure()
    print(f"\nIt took {time.perf_counter() - began:.0f} s; load average {load()} at the end.")


if __name__ == "__main__":
    main()
