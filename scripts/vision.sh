#!/usr/bin/env bash
# vision.sh PREFIX BUILD: builds examples/vision in BUILD, with the C library that capi.sh installed below PREFIX. As
# root it installs what is missing from Debian's packages; if it cannot, it says what to install and ends with 77.
set -eu
prefix=$(cd "$1" && pwd)
build=$2
cd "$(dirname "$0")/.."

packages=(cmake pkg-config g++ libopencv-dev opencv-doc) # opencv-doc has the clip of the tests
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
install="apt-get install --no-install-recommends ${missing[*]}"
if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        printf 'missing: %s\n    sudo %s\n' "${missing[*]}" "$install" >&2
        exit 77
    fi
    echo "installing ${missing[*]}"
    { apt-get update && DEBIAN_FRONTEND=noninteractive $install --yes; } >"$prefix/vision-apt.log" 2>&1 || {
        tail -n 5 "$prefix/vision-apt.log" >&2
        exit 77
    }
fi

PKG_CONFIG_PATH=$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
    cmake -S examples/vision -B "$build" >"$prefix/vision-cmake.log" || {
    cat "$prefix/vision-cmake.log" >&2
    exit 1
}
cmake --build "$build" --parallel 2 -- --no-print-directory --quiet
echo "built $build/stabilize; try: $build/stabilize --shake 1 --sheet sheet.png --out stable.avi CLIP"
