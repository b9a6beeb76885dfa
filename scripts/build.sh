#!/usr/bin/env bash
# build.sh: the command, the C library, the OpenCL and the CUDA layer, the soft CUDA driver and runtime, the server of soft GPUs and
# the Python package's native part, with the dev profile. Always all of them: cargo builds a dependency anew for each set of packages
# that asks for other features of it.
set -eu -o pipefail
cd "$(dirname "$0")/.."
CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=80 \
    cargo build -p laxity-cli -p laxity-capi -p laxity-opencl -p laxity-cuda -p laxity-softcuda -p laxity-softcudart -p laxity-softgpu -p laxity-python 2>&1 | python3 scripts/progress.py
