#!/usr/bin/env bash
# vision.sh PREFIX BUILD: builds examples/vision in BUILD, with the C library that capi.sh installed below PREFIX, and
# what opencv.sh installs; ends with 77 as that does.
set -eu
prefix=$(cd "$1" && pwd)
build=$2
cd "$(dirname "$0")/.."

scripts/opencv.sh

PKG_CONFIG_PATH=$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
    cmake -S examples/vision -B "$build" >"$prefix/vision-cmake.log" || {
    cat "$prefix/vision-cmake.log" >&2
    exit 1
}
# Make's own count of processes, if it was make that called this, is not for another make.
env -u MAKEFLAGS cmake --build "$build" --parallel 2 -- --no-print-directory --quiet
echo "built $build/stabilize; try: $build/stabilize --shake 1 --sheet sheet.png --out stable.avi CLIP"
