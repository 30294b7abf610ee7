#!/usr/bin/env bash
# pack.sh BUILD FOLDER [WHEEL…]: gathers what on_device.sh needs on a machine that has a driver and
# nothing of ours: the programs of a build folder, stripped, their one library, the scripts, and
# Python wheels of peers (such as fla_core, from PyPI: pure Python).
set -eu
build=${1:?a build folder} folder=${2:?a folder to fill}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
for program in test_cuda attnbench_cuda_bench; do
  strip -s -o "$folder/$program" "$build/bin/$program"
done
for library in "$build"/bin/libbenchmark.so.*; do
  [ -e "$library" ] && cp "$library" "$folder/"
done
cp "$here"/{on_device.sh,compare_peers.py,peers.py} "$folder/"
git -C "$here" describe --always --dirty --abbrev=12 >"$folder/commit" || echo unknown >"$folder/commit"
if [ $# -gt 0 ]; then
  mkdir -p "$folder/wheels"
  cp "$@" "$folder/wheels/"
fi
du -sh "$folder"
