#!/usr/bin/env bash
# fusion.sh PREFIX BUILD: builds examples/fusion in BUILD, with the header that capi.sh installed below PREFIX and what
# opencv.sh installs, and makes the recording; ends with 77 as that does.
set -eu
prefix=$(cd "$1" && pwd)
build=$2
cd "$(dirname "$0")/.."

scripts/opencv.sh

cmake -S examples/fusion -B "$build" -DCMAKE_PREFIX_PATH="$prefix" >"$prefix/fusion-cmake.log" || {
    cat "$prefix/fusion-cmake.log" >&2
    exit 1
}
# Make's own count of processes, if it was make that called this, is not for another make.
env -u MAKEFLAGS cmake --build "$build" --parallel 2 -- --no-print-directory --quiet
echo "built $build/libfusion.so; try: laxity run $build/fusion.toml --for 10s"
