#!/bin/sh
# Hashes of what a fixed set of studies comes to, to show that a change of the code changes no result.
#
#   benches/hashes.sh BINARY [DEVICE]
#
# BINARY is the program `tidemill`, DEVICE what its `--device` takes (default: cpu). Each line is a study and the hash of its exported trials, of its verdict, or
# of a walk-forward document. Run it with the binaries before and after the change and compare the two outputs; other devices must give the same lines.
set -eu

if [ $# -lt 1 ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
binary=$(realpath "$1")
device=${2:-cpu}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

hash() { sha256sum | cut -c1-16; }

# study NAME ARGUMENTS...: runs a sweep into its own folder and prints the hashes of its trials and its verdict.
study() {
  name=$1
  shift
  # One lag for all, whatever the default is.
  case " $* " in *" --lag "*) ;; *) set -- "$@" --lag 1 ;; esac
  "$binary" sweep "$@" --device "$device" --threads 2 --out "runs/$name" > /dev/null 2> "$name.err" || { cat "$name.err" >&2; exit 1; }
  trials=$("$binary" study export "runs/$name" --format csv 2> /dev/null | hash)
  if [ -f "runs/$name/verdict.json" ]; then
    printf '%-28s %s %s\n' "$name" "$trials" "$(hash < "runs/$name/verdict.json")"
  else
    printf '%-28s %s\n' "$name" "$trials"
  fi
}

"$binary" data generate --out bars.parquet --bars 4000 --timeframe 4h --symbols 2 --seed 5 2> /dev/null > /dev/null

for strategy in zscore-dip ema-cross rsi-reversion donchian-breakout bollinger-squeeze macd-adx perps-trend timeframe-trend supertrend cross-momentum seller-exhaustion; do
  study "$strategy" "$strategy" --data bars.parquet --trials 96 --batch 32 --split 0.7
done
# Bars within the day, and Bitcoin beside another symbol.
"$binary" data generate --out quarters.csv --bars 6000 --symbols 2 --seed 6 2> /dev/null > /dev/null
sed -i 's/SYN0/BTCUSDT/' quarters.csv
for strategy in opening-range btc-gate; do
  study "$strategy" "$strategy" --data quarters.csv --trials 96 --batch 32 --split 0.7
done
for sampler in tpe tpe-mv ga de cmaes nsga2 sobol random grid; do
  study "sampler-$sampler" ema-cross --data bars.parquet --trials 128 --batch 16 --sampler $sampler --verdict off
done
study folds zscore-dip --data bars.parquet --trials 96 --folds 3 --lag 2
study holdout ema-cross --data bars.parquet --trials 96 --split 0.7 --holdout 2021-06-01.. --embargo 2d
study objectives ema-cross --data bars.parquet --trials 96 --objective sharpe --objective=-max_drawdown --split 0.7
study enqueued ema-cross --data bars.parquet --trials 96 --enqueue fast=12,slow=96 --set fee_bps=2
study generated zscore-dip --trials 64 --verdict off

# A study that goes on with decisions of an earlier run: a batch of another size, and a sampler that draws more at random. What it did before they were added goes.
tuned="ema-cross --data bars.parquet --trials 256 --batch 16 --sampler tpe --hypertune on --verdict off"
study hypertune $tuned > before.txt
rm -r runs/hypertune/trials
decision() {
  printf '{"v":1,"timestamp":"2026-01-01T00:00:00.000Z","run":"hypertune","phase":"hypertune","step":"apply","duration_ms":null,"device":{"mode":"cpu"},"values":{"id":%s,"batch":%s},"parameters":{"rule":"low_efficiency","knob":"%s","old":%s,"new":%s,"effect":"changes_results"},"notes":"decided earlier"}\n' "$@"
}
{ decision 1 2 batch 16 48; decision 2 4 random_share 0 0.5; } > runs/hypertune/journal.jsonl
study hypertune $tuned

"$binary" walkforward zscore-dip --data bars.parquet --train 200d --test 60d --trials 48 --batch 16 --lag 1 --device "$device" --threads 2 --out runs/walk --json 2> walk.err > walk.json || { cat walk.err >&2; exit 1; }
printf '%-28s %s\n' walkforward "$(hash < walk.json)"
for window in runs/walk/window-*; do
  printf '%-28s %s\n' "walkforward-$(basename "$window")" "$("$binary" study export "$window" --format csv 2> /dev/null | hash)"
done
