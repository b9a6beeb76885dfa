#!/usr/bin/env bash
# The tests of the CUDA layer on this machine's GPU and its maker's driver, and frameworks that know nothing of Laxity
# (tests/gpu). Without a GPU it says so, and all is well. LAXITY_GPU_BUNDLE names a folder of scripts/gpu_bundle.py, for a
# machine without Rust; LAXITY_GPU_PYTHON the Python that has the frameworks.
set -uo pipefail
cd "$(dirname "$0")/.."

if [ ! -e /dev/nvidiactl ]; then
    echo 'make test-gpu: all tests: no NVIDIA GPU on this machine' | tee -a "${LAXITY_SKIPPED:-/dev/null}"
    exit 0
fi
python=${LAXITY_GPU_PYTHON:-python3}
nvcc=${LAXITY_NVCC:-$(command -v nvcc || true)}
export LAXITY_TEST_GPU=1 LAXITY_GPU_PYTHON=$python LAXITY_CUDA_PYTHON=${LAXITY_CUDA_PYTHON:-$python}
[ -z "$nvcc" ] || export LAXITY_NVCC=$(realpath "$nvcc")
status=0
if [ -n "${LAXITY_GPU_BUNDLE:-}" ]; then
    export LAXITY=$LAXITY_GPU_BUNDLE/release/laxity
    for test in "$LAXITY_GPU_BUNDLE"/debug/deps/*; do
        echo "     Running $test"
        "$test" || status=$?
    done
else
    cargo test -p laxity-cuda --no-fail-fast || status=$?
    cargo build --release --quiet -p laxity-cli -p laxity-cuda || exit
    [ -x .venv/bin/python ] && runner=.venv/bin/python
fi
PYTHONPATH=scripts "${runner:-$python}" -m pytest -p skipped -v tests/gpu || status=$?
exit $status
