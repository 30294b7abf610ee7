#!/bin/sh
# What every change must pass: the plugin builds, keeps every property, and can be measured.
#   ./ci.sh [-Dattnbench_DIR=…/lib/cmake/attnbench]
set -eu
cd "$(dirname "$0")"
cmake -B build "$@"
cmake --build build
ctest --test-dir build --output-on-failure
