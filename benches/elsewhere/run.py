"""What `tf` and `rank` cost: elsewhere.toml against plain.toml, by random trials over generated hourly bars.

    python3 benches/elsewhere/run.py BINARY [--device cpu] [--trials 10000] [--rounds 3] [--symbols 51] [--bars 5000]

BINARY is the program `tidemill`, the device what its `--device` takes. Both files run in turn in every round, after a run of each that is not
counted: it writes its trials, whose mean number of trades should agree within 10 %. The ratio of the median times should stay below 1.5; on a
machine that is busy with other things look at that of the processor times. Ends with status 1 where a number is missed.
"""

import argparse
import csv
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FILES = ["plain", "elsewhere"]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("binary", type=pathlib.Path)
    args.add_argument("--device", default="cpu")
    args.add_argument("--trials", type=int, default=10_000)
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--symbols", type=int, default=51)
    args.add_argument("--bars", type=int, default=5_000)
    args = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:

        def tidemill(*words):
            words = [str(args.binary.resolve()), *map(str, words)]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            return done.stdout

        shape = ["--symbols", args.symbols, "--bars", args.bars, "--timeframe", "1h", "--edge", 0]
        tidemill("data", "generate", "--out", "bars.parquet", *shape)

        def sweep(name, *more):
            common = ["--sampler", "random", "--seed", 3, "--verdict", "off", "--device", args.device, "--json"]
            words = [HERE / f"{name}.toml", "--data", "bars.parquet", "--trials", args.trials, *common, *more]
            return json.loads(tidemill("sweep", *words))

        trades, seconds, busy = {}, {name: [] for name in FILES}, {name: [] for name in FILES}
        for name in FILES:
            sweep(name, "--out", name)
            rows = list(csv.DictReader(tidemill("study", "export", name, "--format", "csv").splitlines()))
            trades[name] = statistics.mean(float(row["trades"]) for row in rows)
        for _ in range(args.rounds):
            for name in FILES:
                before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                seconds[name].append(sweep(name)["seconds"])
                busy[name].append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    for name in FILES:
        times = ", ".join(f"{wall:.2f} ({used:.2f})" for wall, used in zip(seconds[name], busy[name]))
        print(f"{name:10} {trades[name]:6.0f} trades a trial; seconds (of the processor): {times}")
    ratio, of_processor = (statistics.median(of["elsewhere"]) / statistics.median(of["plain"]) for of in (seconds, busy))
    more = trades["elsewhere"] / trades["plain"] - 1
    print(f"{args.trials} trials, {args.symbols} symbols × {args.bars} bars on {args.device}:")
    print(f"{ratio:.2f} × the time, {of_processor:.2f} × that of the processor, {more:+.1%} trades")
    sys.exit(ratio >= 1.5 or abs(more) > 0.1)


if __name__ == "__main__":
    main()
