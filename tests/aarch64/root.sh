#!/bin/sh
# Unpacks the arm64 packages that the presets aarch64 and aarch64-worker compile against and qemu-user runs
# with: tests/aarch64/root.sh [FOLDER], build/aarch64-root by default. Nothing of them is run here, so it
# needs no right but to write there. Needs mmdebstrap (Debian 12 and its keyring).
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
folder=${1-$root/build/aarch64-root}
command -v mmdebstrap >/dev/null || { echo "mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 3; }
[ ! -e "$folder" ] || { echo "$folder is there already: delete it to make it anew" >&2; exit 2; }
mkdir -p "$(dirname -- "$folder")"
packages=libc6-dev,libstdc++-12-dev,libgcc-12-dev,libgomp1,nlohmann-json3-dev,libcli11-dev,libvalijson-dev
packages=$packages,libre2-dev,libxxhash-dev,libarchive-dev,libpng-dev,zlib1g-dev,libbenchmark-dev,catch2
packages=$packages,libtorch-dev,libgloo-dev,libopenblas0-openmp,python3-torch,libpython3-dev,pybind11-dev
mmdebstrap --architectures=arm64 --variant=extract --include="$packages" bookworm "$folder"
# What the packages' own scripts would choose, which are not run.
for library in libblas.so.3 liblapack.so.3 libopenblas.so.0; do
  ln -s "openblas-openmp/$library" "$folder/usr/lib/aarch64-linux-gnu/$library"
done
