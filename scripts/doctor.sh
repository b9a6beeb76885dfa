#!/usr/bin/env bash
# Says whether this machine can build Laxity, and what to install where it cannot. Changes nothing.
set -u
missing=0

need() { # what, how to get it
    printf 'missing: %s\n    %s\n' "$1" "$2" >&2
    missing=1
}

# at_least HAVE WANT: whether version HAVE is WANT or newer
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

if ! command -v cargo >/dev/null; then
    need 'Rust 1.88 or newer (cargo)' 'apt-get install rustup && rustup default stable'
else
    have=$(rustc --version | cut -d ' ' -f 2)
    at_least "$have" 1.88 || need "Rust 1.88 or newer (found $have)" 'rustup update stable'
fi
if ! command -v python3 >/dev/null; then
    need 'Python 3.11 or newer (python3)' 'apt-get install python3 python3-venv'
else
    have=$(python3 -c 'import platform; print(platform.python_version())')
    at_least "$have" 3.11 || need "Python 3.11 or newer (found $have)" 'apt-get install python3 python3-venv'
fi
command -v cc >/dev/null || need 'a C compiler (cc)' 'apt-get install build-essential'
exit $missing
