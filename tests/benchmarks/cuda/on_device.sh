#!/usr/bin/env bash
# on_device.sh: one call on a bare machine with a GPU, from a folder that pack.sh has made. Checks
# first, then benchmarks in order of importance, ours and the peers' in turns, then compute-sanitizer,
# a table last. Every result is written as soon as it is there: a run that is cut off keeps the rest.
#
#   OUT=DIR          where results go (out beside this script)
#   LIMIT=SECONDS    for everything (480)
#   STEPS="…"        only these: checks softmax peers_softmax recurrent peers_recurrent backward both step
#                    memcheck racecheck
#   EVEN_IF_WRONG=1  go on when a check fails; the table then says so
#   SANITIZE=REGEX   the test cases for compute-sanitizer, by name (all)
#
# Exit code: 0 all done, 1 a check failed or a benchmark did, 3 no usable GPU, 143 ended from outside
# (SIGTERM, SIGINT), with what was measured written down.
#
# Not yet run on a GPU: on_device_test.py runs it with stand-ins.
set -u
cd "$(dirname "$(readlink -f "$0")")" || exit 3
out=${OUT:-$PWD/out}
limit=${LIMIT:-480}
steps=${STEPS:-checks softmax peers_softmax recurrent peers_recurrent backward both step memcheck racecheck}
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
mkdir -p "$out"
status=0

# table: what was measured so far.
table() {
  local files
  shopt -s nullglob
  files=("$parts"/{ours,peers}_*.json)
  shopt -u nullglob
  [ ${#files[@]} -gt 0 ] || return 0
  cp "${files[@]}" "$out/"
  python3 compare_peers.py "${files[@]}" >"$out/table.md"
}

left() { echo $((limit - SECONDS)); }
wants() { case " $steps " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
say() { echo "[$SECONDS s] $*" | tee -a "$out/card.txt"; }
# limited PERCENT COMMAND…: at most this share of the whole limit, and never past its end.
limited() {
  local seconds=$((limit * $1 / 100)) rest
  shift
  rest=$(left)
  [ "$seconds" -lt "$rest" ] || seconds=$rest
  [ "$seconds" -ge 5 ] || return 124
  # Waited for, so that a signal is answered at once and not behind the command.
  timeout -k 5 "$seconds" "$@" <&0 &
  child=$!
  wait "$child"
}
# What was measured so far is kept when somebody else's limit ends this.
child=
ended() {
  [ -z "$child" ] || { kill "$child" && wait "$child"; } 2>/dev/null
  table
  say "ended from outside"
  exit 143
}
trap ended TERM INT
verdict() { case $1 in 0) echo done ;; 124 | 137) echo "cut off at its limit" ;; *) echo "exit code $1" ;; esac; }

if ls wheels/*.whl >/dev/null 2>&1; then
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$parts/site" \
    wheels/*.whl && export PYTHONPATH="$parts/site${PYTHONPATH:+:$PYTHONPATH}"
fi

commit=$(cat commit 2>/dev/null || echo unknown)
{
  date -u
  echo "commit $commit"
  nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,clocks.sm,clocks.max.sm,power.limit,\
power.default_limit,temperature.gpu,persistence_mode,ecc.mode.current,mig.mode.current --format=csv 2>&1
  uname -sr
} >"$out/card.txt"
cat "$out/card.txt"

if wants checks; then
  limited 30 ./test_cuda >"$out/checks.txt" 2>&1
  code=$?
  say "checks: $(verdict $code): $(grep -E 'test cases|All tests passed' "$out/checks.txt" | tail -n 1)"
  if grep -q 'needs a CUDA device' "$out/checks.txt"; then
    grep -m 1 'needs a CUDA device' "$out/checks.txt"
    exit 3
  fi
  if [ $code -ne 0 ]; then
    status=1
    grep -B 12 -A 12 -m 3 'FAILED:' "$out/checks.txt" | head -n 60
    [ -n "${EVEN_IF_WRONG:-}" ] || { say "stopped: a check failed"; exit 1; }
  fi
fi

# ours STEP PERCENT REGEX: these benchmarks, added to ours.json.
ours() {
  wants "$1" || return 0
  limited "$2" ./attnbench_cuda_bench --benchmark_filter="$3" --benchmark_out="$parts/ours_$1.json" \
    --benchmark_context=commit="$commit" >"$parts/said" 2>&1
  local code=$?
  say "$1: $(verdict $code)"
  if [ $code -eq 3 ]; then
    tail -n 1 "$parts/said"
    exit 3
  fi
  if [ $code -ne 0 ]; then
    status=1
    grep -i error "$parts/said" | sort | uniq -c | sort -rn | cut -c 1-200 | head -n 8
  fi
  table
}
# peers STEP PERCENT REGEX: these cases, added to peers.json.
peers() {
  wants "peers_$1" || return 0
  ./attnbench_cuda_bench --benchmark_list_tests >"$parts/cases"
  local seconds=$((limit * $2 / 100))
  limited $(($2 + 5)) python3 -u peers.py --cases "$parts/cases" --out "$parts/peers_$1.json" --filter "$3" \
    --deadline "$seconds" >"$parts/said" 2>&1
  local code=$?
  say "peers, $1: $(verdict $code)"
  [ $code -eq 0 ] || tail -n 5 "$parts/said"
  table
}
ours softmax 15 '^softmax_forward/'
peers softmax 20 '^softmax_(forward|backward)/'
ours recurrent 12 '^(prefix_pool|causal_product|causal_product_plain|lavo)_forward/'
peers recurrent 15 '^(prefix_pool|causal_product).*_(forward|forward_backward)/'
ours backward 15 '(softmax|pool|product|plain|lavo)_backward/'
ours both 8 '_forward_backward/'
ours step 5 '_step/'

# sanitize TOOL PERCENT: test cases one by one, several at a time, so that one cannot hide the others.
sanitize() {
  wants "$1" || return 0
  if ! command -v compute-sanitizer >/dev/null; then
    say "$1: there is no compute-sanitizer here"
    return 0
  fi
  # Catch2 2 and 3 list names by different words; 2 counts them in its exit code.
  names=$(./test_cuda --list-test-names-only 2>/dev/null)
  case $names in "" | *[Uu]nrecogni*) names=$(./test_cuda --list-tests --verbosity quiet 2>/dev/null) ;; esac
  grep -E "${SANITIZE:-.}" <<<"$names" | sed 's/[][,*~"\\]/\\&/g' | sort -u >"$parts/names"
  export tool=$1 verdicts=$parts/$1
  mkdir -p "$verdicts"
  limited "$2" xargs -d '\n' -P 8 -n 1 bash -c '
    file=$verdicts/$(printf %s "$0" | md5sum | cut -c 1-12)
    timeout 90 compute-sanitizer --tool "$tool" --error-exitcode 77 --print-limit 3 ./test_cuda "$0" >"$file.log" 2>&1
    code=$?
    case $code in
      0) verdict=clean ;;
      77) verdict=FAULT ;;
      124) verdict="not finished in 90 s" ;;
      *) verdict="ended with exit code $code" ;;
    esac
    echo "$verdict: $0" >"$file.verdict"
    [ "$code" = 0 ] || grep -v "^ *$" "$file.log" | head -n 25 >"$file.detail"
  ' <"$parts/names"
  {
    echo "== $1: $(cat "$verdicts"/*.verdict 2>/dev/null | grep -c '^clean') of $(wc -l <"$parts/names") test cases clean"
    cat "$verdicts"/*.verdict 2>/dev/null | grep -v '^clean' | sort
    cat "$verdicts"/*.detail 2>/dev/null | head -n 200
  } >>"$out/sanitizer.txt"
  say "$(grep -a "== $1:" "$out/sanitizer.txt")"
  grep -h '^FAULT' "$verdicts"/*.verdict 2>/dev/null | head -n 10
}
rm -f "$out/sanitizer.txt"
sanitize memcheck 15
sanitize racecheck 15

[ ! -f "$out/table.md" ] || cut -c 1-190 "$out/table.md"
say "end, exit code $status"
exit $status
