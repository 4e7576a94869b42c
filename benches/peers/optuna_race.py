"""The default sampler beside Optuna's two TPE modes, on the shipped strategies over data of your own.

    python optuna_race.py --tidemill target/release/tidemill --strategies strategies --data a.parquet b.parquet --trials 512

Optuna proposes in batches as large as Tidemill's own, and Tidemill evaluates them (`sweep --enqueue`), so that both search
the same objective. Prints one JSON line per run and a Markdown table: median (least, most) over the seeds, and how far the
mean of `auto` is from that of the better mode, with the standard error of this difference.

`--results FILE` keeps the runs. Those that are in it already are not repeated, so that a race can be interrupted, get more
seeds, or be run again for `auto` alone (take its lines out of the file). A file is for one program and one batch: neither
is noted in it.
"""

import argparse
import concurrent.futures
import csv
import io
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import tomllib
import warnings

WHO = ("auto", "tpe", "tpe-mv")
MODES = WHO[1:]
INVALID = -1e3

# Batches of `--batch auto` where Optuna is affordable.
MIN_BATCH = 16
BATCHES = 64


def tidemill(program, *args):
    env = {**os.environ, "RAYON_NUM_THREADS": "1"}
    return subprocess.run([program, *args], capture_output=True, text=True, env=env, check=True).stdout


def ours(program, strategy, data, trials, seed):
    args = ["--trials", str(trials), "--seed", str(seed), "--verdict", "off", "--device", "cpu", "--json"]
    best = json.loads(tidemill(program, "sweep", strategy, "--data", data, *args))["best"]
    return best[0]["objective"] if best else None


def suggest(trial, params):
    """One point, parameter by parameter; those that a switch turns off are left out."""
    point = {}
    for name, domain in params.items():
        if "when" in domain:
            known = {other: point.get(other, params[other].get("default")) for other in params}
            if not eval(domain["when"], {"true": True, "false": False}, known):
                continue
        if "int" in domain:
            low, high = domain["int"]
            point[name] = trial.suggest_int(name, low, high, step=domain.get("step", 1), log=domain.get("log", False))
        elif "float" in domain:
            low, high = domain["float"]
            point[name] = trial.suggest_float(name, low, high, step=domain.get("step"), log=domain.get("log", False))
        else:
            point[name] = trial.suggest_categorical(name, domain.get("choice", [False, True]))
    return point


def theirs(program, strategy, data, trials, seed, batch, multivariate, params):
    import optuna

    warnings.filterwarnings("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=multivariate, group=multivariate)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    best = None
    folder = tempfile.mkdtemp()
    try:
        for number in range(trials // batch):
            asked = [study.ask() for _ in range(batch)]
            points = [suggest(trial, params) for trial in asked]
            file, out = f"{folder}/batch.json", f"{folder}/{number}"
            with open(file, "w") as handle:
                json.dump(points, handle)
            size = ["--trials", str(batch), "--batch", str(batch), "--enqueue", file]
            tidemill(
                program, "sweep", strategy, "--data", data, *size, "--verdict", "off", "--device", "cpu", "--out", out
            )
            rows = list(csv.DictReader(io.StringIO(tidemill(program, "study", "export", out, "--format", "csv"))))
            assert len(rows) == batch, f"{len(rows)} rows of {batch}"
            for trial, row in zip(asked, rows):
                text = row["objective"]
                is_valid = text not in ("", "NaN", "nan", "null")
                study.tell(trial, float(text) if is_valid else INVALID)
                if is_valid:
                    best = float(text) if best is None else max(best, float(text))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return best


def run(job):
    options, strategy, data, seed, who = job
    if who == "auto":
        return job, ours(options.tidemill, strategy, data, options.trials, seed)
    with open(f"{options.strategies}/{strategy}.toml", "rb") as handle:
        params = tomllib.load(handle)["params"]
    per_batch = max(MIN_BATCH, options.trials // BATCHES)
    batch = options.batch or 1 << per_batch.bit_length() - 1
    return job, theirs(options.tidemill, strategy, data, options.trials, seed, batch, who == "tpe-mv", params)


def known_runs(path):
    """The best objectives of earlier runs: none where nothing valid was found."""
    if not path or not os.path.exists(path):
        return {}
    with open(path) as handle:
        rows = [json.loads(line) for line in handle]
    return {tuple(row[:-1]): row[-1] for row in rows}


def cell(best):
    if not best:
        return "none valid"
    return f"{statistics.median(best):.3f} ({min(best):.3f}, {max(best):.3f})"


def difference(auto, other):
    """How far the mean of `auto` is ahead, and the standard error of that."""
    if min(len(auto), len(other)) < 2:
        return ""
    error = (statistics.variance(auto) / len(auto) + statistics.variance(other) / len(other)) ** 0.5
    return f"{statistics.mean(auto) - statistics.mean(other):+.3f} ± {error:.3f}"


def table(names, data, trials, seeds, found):
    print("| strategy | data | " + " | ".join(WHO) + " | difference |\n|---|---|" + "---:|" * (len(WHO) + 1))
    for name in names:
        for file in data:
            best = {
                who: [found[key] for seed in seeds if found.get(key := (name, file, trials, seed, who)) is not None]
                for who in WHO
            }
            better = max((best[who] for who in MODES), key=lambda of: statistics.median(of) if of else -1e9)
            cells = [cell(best[who]) for who in WHO] + [difference(best["auto"], better)]
            print(f"| {name} | {file} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemill", required=True)
    parser.add_argument("--strategies", required=True, help="folder of the strategy files")
    parser.add_argument("--data", nargs="+", required=True)
    parser.add_argument("--only", nargs="+", help="names of strategies; all of the folder if none")
    parser.add_argument("--who", nargs="+", choices=WHO, default=WHO, help="whose runs are missing")
    parser.add_argument("--trials", type=int, default=512)
    parser.add_argument("--batch", type=int, help="trials that Optuna proposes at a time; as many as `auto` if not given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--results", help="file of runs, one JSON line each")
    options = parser.parse_args()
    names = options.only or sorted(name[:-5] for name in os.listdir(options.strategies) if name.endswith(".toml"))
    seeds = range(1, options.seeds + 1)
    found = known_runs(options.results)
    wanted = [(name, data, seed, who) for seed in seeds for name in names for data in options.data for who in options.who]
    jobs = [
        (options, name, data, seed, who)
        for name, data, seed, who in wanted
        if (name, data, options.trials, seed, who) not in found
    ]
    with concurrent.futures.ProcessPoolExecutor(options.workers) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, job) for job in jobs]):
            (_, name, data, seed, who), best = done.result()
            found[name, data, options.trials, seed, who] = best
            line = json.dumps([name, data, options.trials, seed, who, best])
            print(line, flush=True)
            if options.results:
                with open(options.results, "a") as handle:
                    handle.write(line + "\n")
    table(names, options.data, options.trials, seeds, found)


if __name__ == "__main__":
    main()
