#!/bin/sh
# One small case of every kernel and five random strategies, under the four tools of NVIDIA's compute-sanitizer.
#
#   benches/sanitize.sh BINARY FOLDER [TOOL ...]
#
# BINARY is the test binary `gpu`; it needs neither Rust nor the sources where it runs. Build it with
#
#   cargo test --release -p tidemill --test gpu --no-run
#
# FOLDER gets the output of each tool and `summary.txt`, a table of what each has reported and how long it took. The exit code is 0 if none has reported anything.
# The variable COMPUTE_SANITIZER names the tool if it is not on the path.
set -u

if [ $# -lt 2 ]; then
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
binary=$1
folder=$2
shift 2
[ $# -gt 0 ] || set -- racecheck memcheck initcheck synccheck
sanitizer=${COMPUTE_SANITIZER:-compute-sanitizer}
command -v "$sanitizer" > /dev/null || sanitizer=/usr/local/cuda/bin/compute-sanitizer

mkdir -p "$folder" || exit 2
summary=$folder/summary.txt
# Kernels are compiled once, before the clock of a tool starts.
export TIDEMILL_CACHE="$folder/cache" TIDEMILL_REQUIRE_GPU=1 RUST_BACKTRACE=0
failed=0

# run NAME COMMAND...: runs the cases and says how long it took.
run() {
  name=$1
  shift
  began=$(date +%s)
  "$@" "$binary" sanitize:: --test-threads 1 > "$folder/$name.txt" 2>&1
  status=$?
  seconds=$(($(date +%s) - began))
  passed=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$folder/$name.txt")
}

row() { printf '%-10s %8s %7s %5s %8s\n' "$@" | tee -a "$summary"; }

: > "$summary"
"$sanitizer" --version 2>&1 | grep -i version >> "$summary"
row tool reports passed exit seconds
run plain env
row plain - "${passed:-0}" "$status" "$seconds"
[ "$status" -eq 0 ] && [ "${passed:-0}" -gt 0 ] || { tail -30 "$folder/plain.txt"; exit 1; }

for tool; do
  case $tool in
    # Also hazards that it calls harmless, as when several threads write the same value.
    racecheck) options="--racecheck-report all --print-level info" ;;
    memcheck) options="--report-api-errors explicit" ;;
    *) options= ;;
  esac
  # shellcheck disable=SC2086
  run "$tool" "$sanitizer" --tool "$tool" $options --error-exitcode 86 --print-limit 100
  # "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" or "ERROR SUMMARY: 0 errors".
  found=$(sed -n 's/.*SUMMARY: \([0-9]*\) \(error\|hazard\).*/\1/p' "$folder/$tool.txt" | tail -1)
  row "$tool" "${found:-?}" "${passed:-0}" "$status" "$seconds"
  if [ "$status" -ne 0 ] || [ "${found:-1}" -ne 0 ] || [ "${passed:-0}" -eq 0 ]; then
    grep -e '^=========' -e '^test ' -e panicked "$folder/$tool.txt" | head -40
    failed=1
  fi
done
exit $failed
