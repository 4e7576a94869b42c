"""Random windows on the CPU against a fused numba loop: parity first, then CPU-seconds, in interleaved rounds.

    python random_windows.py --tidemill target/release/tidemill [--base OTHER_BINARY] [--bars 50000] [--trials 4096] [--rounds 3]

The strategy is seller-exhaustion, its parameters are drawn by `tidemill sweep --sampler random`, so that hardly two trials share their windows.
The loop runs the same parameter sets: one pass over the bars, running sums, metrics at the level of trades. Both use one thread. A row is bars times
trials per second of CPU time; compiling the loop is not counted, while for Tidemill all of the process counts: reading the file, the search, daily
marks, all metrics, and the study on disk. The loop's running sums round otherwise than exact windows, so that a trial in a thousand may have another
number of trades; more than that ends the race.
"""

import argparse
import csv
import io
import math
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow.parquet as parquet
from numba import njit

COST = 10.0 / 10_000.0
PARAMS = (
    "ema_fast ema_slow z_window atr_window vol_z tr_z cloc_min use_fib_exits fib_swing_lookback fib_swing_lookahead "
    "fib_target_level use_stop_loss atr_stop_mult use_traditional_tp reward_r use_time_exit max_hold"
).split()


@njit
def swing_high(high, signal, lookback, lookahead):
    best = plain = -math.inf
    for k in range(signal - lookback, signal - lookahead):
        plain = max(plain, high[k])
        if k >= signal - lookback + lookahead and high[k] > best and high[k] >= high[k - lookahead : k + lookahead + 1].max():
            best = high[k]
    return best if best > -math.inf else plain


@njit
def trial(opens, high, low, close, volume, p, x):
    """Trades, net return, deepest drawdown and profit factor of one parameter set; `x` is scratch space."""
    a, b, wz, wa = 2.0 / (p[0] + 1.0), 2.0 / (p[1] + 1.0), int(p[2]), int(p[3])
    fast = slow = close[0]
    sv = svv = sr = sx = sxx = 0.0
    trades, equity, peak, deepest, won, lost = 0, 1.0, 1.0, 0.0, 0.0, 0.0
    is_open = pending = False
    entry = stop = fib = target = 0.0
    entered = 0
    for i in range(len(close)):
        tr = high[i] - low[i]
        if i > 0:
            tr = max(tr, abs(high[i] - close[i - 1]), abs(low[i] - close[i - 1]))
            fast, slow = a * close[i] + (1.0 - a) * fast, b * close[i] + (1.0 - b) * slow
        if pending:
            pending, entry, entered, s = False, opens[i], i, i - 1
            stop = low[s] - p[12] * (x[s] / wa) if p[11] else -math.inf
            swing = swing_high(high, s, int(p[8]), int(p[9])) if p[7] else 0.0
            fib = low[s] + (swing - low[s]) * p[10] if swing > low[s] else math.inf
            target = entry + p[14] * (entry - stop if p[11] and stop < entry else 0.01 * entry) if p[13] else math.inf
            is_open = stop < entry and fib > entry and target > entry
        if is_open:
            left = math.nan
            if low[i] <= stop:
                left = min(opens[i], stop)
            elif high[i] >= fib:
                left = max(opens[i], fib)
            elif high[i] >= target:
                left = max(opens[i], target)
            elif (p[15] and i - entered >= p[16]) or i + 1 == len(close):
                left = close[i]
            if left == left:
                is_open, trades = False, trades + 1
                ret = (left - entry - (entry + left) * COST) / entry
                won, lost = won + max(ret, 0.0), lost + max(-ret, 0.0)
                equity *= 1.0 + ret
                peak = max(peak, equity)
                deepest = min(deepest, equity / peak - 1.0)
        sr += tr
        sv, svv = sv + volume[i], svv + volume[i] * volume[i]
        if i >= wa:
            j = i - wa
            sr -= max(high[j] - low[j], abs(high[j] - close[j - 1]), abs(low[j] - close[j - 1])) if j else high[0] - low[0]
        if i >= wz:
            sv, svv = sv - volume[i - wz], svv - volume[i - wz] * volume[i - wz]
        x[i] = sr
        if i >= wa - 1:
            sx, sxx = sx + sr, sxx + sr * sr
        if i >= wa - 1 + wz:
            sx, sxx = sx - x[i - wz], sxx - x[i - wz] * x[i - wz]
        if not is_open and i >= wa + wz - 2 and i + 1 < len(close) and fast < slow:
            if (volume[i] - sv / wz) > p[4] * math.sqrt(max(svv / wz - (sv / wz) ** 2, 0.0)):
                if (sr - sx / wz) > p[5] * math.sqrt(max(sxx / wz - (sx / wz) ** 2, 0.0)):
                    pending = close[i] - low[i] > p[6] * (high[i] - low[i])
    return trades, equity - 1.0, deepest, won / lost if lost > 0.0 else math.nan


@njit
def sweep(opens, high, low, close, volume, params):
    out, scratch = np.empty((len(params), 4)), np.empty(len(close))
    for at in range(len(params)):
        out[at, 0], out[at, 1], out[at, 2], out[at, 3] = trial(opens, high, low, close, volume, params[at], scratch)
    return out


def used(who):
    """CPU-seconds so far."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def run(binary, data, trials, out):
    """A sweep of ours; its CPU-seconds."""
    before = used(resource.RUSAGE_CHILDREN)
    command = [binary, "sweep", "seller-exhaustion", "--data", data, "--trials", trials, "--sampler", "random"]
    command += ["--device", "cpu", "--threads", 1, "--verdict", "off", "--seed", 7, "--out", out]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tidemill failed with {done.returncode}:\n{done.stderr}")
    return used(resource.RUSAGE_CHILDREN) - before


def stored(binary, study):
    """Parameters and trades of every trial of a study."""
    command = [str(binary), "study", "export", str(study), "--format", "csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    number = lambda text: {"true": 1.0, "false": 0.0, "": 0.0}.get(text) if text in ("true", "false", "") else float(text)  # noqa: E731
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    name = lambda wanted: next(key for key in rows[0] if key == wanted or key.endswith("." + wanted))  # noqa: E731
    names = [name(param) for param in PARAMS]
    params = np.array([[number(row[key]) for key in names] for row in rows])
    return params, np.array([int(float(row[name("trades")] or 0)) for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemill", required=True, type=pathlib.Path)
    parser.add_argument("--base", type=pathlib.Path, help="another binary to race")
    parser.add_argument("--bars", type=int, default=50_000)
    parser.add_argument("--trials", type=int, default=4_096)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        data = folder / "bars.parquet"
        command = [arguments.tidemill, "data", "generate", "--out", data, "--bars", arguments.bars, "--timeframe", "15m", "--seed", 5]
        subprocess.run([str(part) for part in command], capture_output=True, check=True)
        table = parquet.read_table(data)
        columns = [table[name].to_numpy().astype(float) for name in ("open", "high", "low", "close", "volume")]
        run(arguments.tidemill, data, arguments.trials, folder / "parity")
        params, trades = stored(arguments.tidemill, folder / "parity")
        found = sweep(*columns, params)[:, 0]
        wrong = int((found != trades).sum())
        print(f"parity: {len(trades)} trials, {int(trades.sum())} trades, the loop finds {int(found.sum())}; {wrong} trials differ")
        if wrong > max(1, len(trades) // 1_000):
            sys.exit(1)
        binaries = {"tidemill": arguments.tidemill, **({"base": arguments.base} if arguments.base else {})}
        seconds = {name: [] for name in ("numba", *binaries)}
        for at in range(arguments.rounds):
            before = used(resource.RUSAGE_SELF)
            sweep(*columns, params)
            seconds["numba"].append(used(resource.RUSAGE_SELF) - before)
            for name, binary in binaries.items():
                seconds[name].append(run(binary, data, arguments.trials, folder / f"{name}-{at}"))
        work = arguments.bars * arguments.trials
        for name, took in seconds.items():
            ratios = [numba / own for numba, own in zip(seconds["numba"], took)]
            print(f"{name:10} {work / min(took):.3g} bar-evals/s of CPU time; numba x {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    started = time.time()
    main()
    print(f"{time.time() - started:.0f} s")
