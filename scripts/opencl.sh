#!/usr/bin/env bash
# opencl.sh: installs what the tests of the OpenCL layer run on, from Debian's packages: a loader, a driver that needs no
# GPU, headers, and programs. If it cannot, it says what to install and ends with 77.
set -eu

packages=(
    pocl-opencl-icd ocl-icd-opencl-dev opencl-headers
    clinfo clpeak clblast-tests clfft-client hcxkeys ffmpeg python3-opencv python3-pyopencl
)
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
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    { apt-get update && DEBIAN_FRONTEND=noninteractive $install --yes; } >"$log" 2>&1 || {
        tail -n 5 "$log" >&2
        exit 77
    }
fi
