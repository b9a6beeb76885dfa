#!/usr/bin/env bash
# build.sh: the command, the C library, the server of soft GPUs and the Python package's native part, with the dev
# profile. Always all four: cargo builds a dependency anew for each set of packages that asks for other features of it.
set -eu
cd "$(dirname "$0")/.."
exec cargo build --quiet -p laxity-cli -p laxity-capi -p laxity-softgpu -p laxity-python
