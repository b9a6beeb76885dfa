#!/usr/bin/env bash
# The tests of the layers for CUDA and OpenCL on this machine's GPU and its maker's driver, and frameworks that know nothing of
# Laxity (tests/gpu). Without a GPU it says so, and all is well. LAXITY_BUNDLE names a folder of scripts/gpu_bundle.py, for
# a machine without Rust; LAXITY_CUDA_PYTHON the Python that has the frameworks.
set -uo pipefail
cd "$(dirname "$0")/.."

if [ ! -e /dev/nvidiactl ]; then
    echo 'make test-gpu: all tests: no NVIDIA GPU on this machine' | tee -a "${LAXITY_SKIPPED:-/dev/null}"
    exit 0
fi
export LAXITY_TEST_GPU=1 LAXITY_CUDA_PYTHON=${LAXITY_CUDA_PYTHON:-python3}
nvcc=${LAXITY_NVCC:-$(command -v nvcc || true)}
[ -z "$nvcc" ] || export LAXITY_NVCC=$(realpath "$nvcc")
# Of OpenCL's drivers only NVIDIA's, and of its loaders one that knows layers.
vendors=$(mktemp -d)
trap 'rm -r "$vendors"' EXIT
echo libnvidia-opencl.so.1 > "$vendors/nvidia.icd"
loader=$(/sbin/ldconfig -p | sed -n 's/.*libOpenCL.so.1 .* => \(.*x86_64-linux-gnu\)\/libOpenCL.so.1$/\1/p' | head -n 1)

status=0
layer() { # name, tests of it
    local name=$1 test
    shift
    if [ -n "${LAXITY_BUNDLE:-}" ]; then
        for test in "$LAXITY_BUNDLE/$name"/deps/*; do
            echo "     Running $test"
            "$test" || status=$?
        done
    else
        cargo test -p "laxity-$name" --no-fail-fast "${@/#/--test=}" || status=$?
    fi
}
layer cuda programs sharing leaving compiled
OCL_ICD_VENDORS=$vendors LD_LIBRARY_PATH=$loader:${LD_LIBRARY_PATH:-} layer opencl programs sharing leaving layers

runner=$LAXITY_CUDA_PYTHON
if [ -n "${LAXITY_BUNDLE:-}" ]; then
    export LAXITY=$LAXITY_BUNDLE/release/laxity
else
    cargo build --release --quiet -p laxity-cli -p laxity-cuda || exit
    [ ! -x .venv/bin/python ] || runner=.venv/bin/python
fi
PYTHONPATH=scripts "$runner" -m pytest -p skipped -v tests/gpu || status=$?
exit $status
