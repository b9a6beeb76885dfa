# Laxity. `make demo` and `make test` do all their own set-up.
#
#   make demo        the same work live under several schedulers, and simulated; ends with a report
#   make test        every test: Rust, Python, agreement with SimSo, the video stabilizer on few frames
#   make check       format, lints, licences and sources of what is built in, fast tests (two minutes once built)
#   make bench-sim   simulator throughput against SimSo, in one run
#   make bench-analysis   cost of the schedulability tests per task set
#   make bench-trace   cost of judging traces, and its growth with the number of CPUs
#   make bench-gpu   live GPU arbitration: uncontended locks, hand-over against a raw futex, the video stabilizer with it
#   make bench-sched  Laxity's own scheduler against SCHED_FIFO and SCHED_DEADLINE, in rounds
#   make bench-interpose   what the OpenCL and the CUDA layer add to calls, kernels and an OpenCV pipeline, in turns
#   make bench-bandwidth  the bandwidth lock, its regulator, and a stream beside a hog: alone, unprotected, protected
#   make bench-kernel  the scheduler in the kernel against SCHED_DEADLINE, in the kernel lab; as root it installs that
#   make measure-kernel   what the scheduler in the kernel costs there, over the number of tasks, for check --overheads (an hour)
#   make profile-kernel   whose instructions those of a release and a preemption are
#   make bench-graph  live graphs against a raw futex, an eventfd and iceoryx2, in rounds
#   make test-kill   processes of live graphs, GPU arbitration and scheduled systems killed at random, thousands of
#                    times; also stopped and replaced by exec, and those of graphs and GPUs forked and starved of descriptors
#                    (minutes)
#   make scheduler   the scheduler for the kernel (sched_ext), beside the optimized command; as root it installs clang, libelf
#   make test-kernel the policy core for the kernel beside the policies in Rust: ten million random events
#   make test-kernel-lab   the scheduler in the kernel of a small Linux in QEMU: random tasks, kills; as root it installs both
#   make test-proven  random task sets at 85 % of two CPUs that `check` proves with this machine's overheads, live: 100 sets of
#                    10 s each (twenty minutes, in which nothing else should run)
#   make fuzz        inputs guided by coverage for parsers, traces, shared memory, soft GPUs: an hour; EACH=600 for ten minutes
#   make test-races  live graphs and C programs under sanitizers and Miri (minutes; installs a nightly toolchain)
#   make study-gedf, make study-klmirqd   the published schedulability studies at full size; resumable
#   make study-klmirqd-runtime   the published run-time study of GPU interrupt handling, simulated; a few minutes
#   make study-klmirqd-lab   what that study has of the kernel lab: inversions by interrupts in a real kernel; some minutes
#   make study-vision   seventeen video stabilizers: 400 s live under each configuration, and simulated; four hours
#   make study-vision-virtual   of these only the runs in which this machine stands for the paper's six CPUs; FOR=20s for
#                       a quarter of an hour, in which nothing else should run
#   make release     the optimized command, and a wheel of the Python package
#   make capi        the C library, its header and laxity.pc, installed below PREFIX (out/capi)
#   make vision      the video stabilizer of examples/vision; as root it installs OpenCV
#   make fusion      camera and lidar fused by code of its own, examples/fusion; as root it installs OpenCV
#   make test-vision   it on a real clip: live graph against loop, and a known shake (minutes)
#   make test-vision-short   the same on few frames, and the live study in small; part of `make test`; skipped where
#                    OpenCV is not to be had
#   make test-cuda   programs of NVIDIA's compiler on the soft CUDA driver, also under arbitration; installs that compiler
#                    from PyPI into the virtual environment (130 MB to fetch, under NVIDIA's licence)
#   make test-gpu    the tests of the layers for CUDA and OpenCL on this machine's NVIDIA GPU, and PyTorch, CuPy, JAX and
#                    Triton where its Python has them; skipped by name where there is no such GPU
#   make bench-gpu-real   what the CUDA layer adds to programs on that GPU, and a camera's network beside batch work in another
#                    process, without and with arbitration; ends with a plot
#   make requirements   pin the versions and hashes of Python packages again, after a change of python/requirements*.in
#   make clean       remove everything the other targets made
#
# Needs: Rust 1.88 or newer, Python 3.11 or newer, a C compiler. `make doctor` says what is missing.

SHELL := /bin/bash -eu -o pipefail
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
PYTEST := PYTHONPATH=scripts $(PYTHON) -m pytest -p skipped
STAMPS := target/make
# As cargo spells what it builds for in variables of the environment: X86_64_UNKNOWN_LINUX_GNU.
TRIPLE = $(shell rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
OUT := out

# For PyO3: what the Python package is built for (`abi3-py311` in its Cargo.toml). maturin would tell it in a file of its
# own, and cargo alone would not, so that each would build PyO3 and the package again after the other.
export PYO3_CONFIG_FILE := $(abspath python/pyo3-config.txt)

# Users and continuous integration build once, from nothing, for which notes for the next build only cost time. Who edits
# and builds over and over exports it as `true`, for make and cargo alike: each setting has builds of its own.
export CARGO_PROFILE_DEV_INCREMENTAL ?= false

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates python -name '*.rs' -o -name 'Cargo.toml' -o -name '*.csv' 2>/dev/null)
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' 2>/dev/null) python/pyproject.toml

.PHONY: help doctor demo test test-rust test-python test-proven check fuzz scheduler test-kernel test-kernel-lab test-kill test-races bench-analysis bench-bandwidth \
        bench-gpu bench-graph bench-interpose bench-kernel measure-kernel profile-kernel bench-sched bench-sim bench-trace study-gedf study-klmirqd study-klmirqd-runtime study-klmirqd-lab study-vision study-vision-virtual release capi vision \
        test-cuda test-gpu bench-gpu-real test-vision test-vision-short fusion requirements clean venv opencl opencv demo-vision

help:
	@sed -n '/^#   make/s/^#   //p' Makefile

doctor:
	@scripts/doctor.sh

# --- set-up --------------------------------------------------------------------------------------------------------

$(STAMPS)/tools: scripts/doctor.sh
	@scripts/doctor.sh
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/venv: python/requirements.txt $(STAMPS)/tools
	@scripts/venv.sh $(VENV) $<
	@touch $@

# What tests and checks need beyond that, which the demo need not wait for.
$(STAMPS)/venv-dev: python/requirements-dev.txt $(STAMPS)/venv
	@scripts/venv.sh $(VENV) $<
	@touch $@

# The Python package, built into the virtual environment. After the command: cargo builds what both need once.
$(STAMPS)/python: $(STAMPS)/venv $(RUST_SOURCES) $(PYTHON_SOURCES) | target/debug/laxity
	@echo "building the Python package"
	@CARGO_TERM_QUIET=true PIP_QUIET=1 VIRTUAL_ENV=$(abspath $(VENV)) \
	    $(VENV)/bin/maturin develop --quiet -m python/Cargo.toml
	@touch $@

# NVIDIA's compiler, for tests alone, and on request only: it is large, and has a licence of its own.
$(STAMPS)/venv-cuda: python/requirements-cuda.txt $(STAMPS)/venv
	@scripts/venv.sh $(VENV) $<
	@touch $@

venv: $(STAMPS)/python $(STAMPS)/venv-dev

# The `laxity` command. Tests and demo use the dev profile, which is optimized enough and shares what it builds;
# `make release` has the fast ones.
target/debug/laxity: $(STAMPS)/tools $(RUST_SOURCES)
	@echo "building the laxity command and the C library"
	@scripts/build.sh
	@touch $@

# For use: target/release/laxity and a wheel in target/wheels/.
release: $(STAMPS)/venv
	cargo build --release -p laxity-cli -p laxity-opencl -p laxity-cuda -p laxity-softcuda -p laxity-softcudart -p laxity-softgpu
	$(VENV)/bin/maturin build --release -m python/Cargo.toml

# The C library, below PREFIX: `make capi PREFIX=$HOME/.local`.
PREFIX ?= $(OUT)/capi
capi: $(STAMPS)/tools
	@scripts/capi.sh $(PREFIX)

# A program of C++ and OpenCV. Apart from `test`: OpenCV takes minutes to install, and the clips to work on.
vision: capi
	@scripts/vision.sh $(PREFIX) $(OUT)/vision

# Camera and lidar, in C++ and OpenCV, and in Python.
fusion: capi
	@scripts/fusion.sh $(PREFIX) $(OUT)/fusion

test-vision: vision venv
	LAXITY_CONFIGURATIONS=all STABILIZE=$(OUT)/vision/stabilize $(PYTEST) examples/vision/tests

# With the dev profile, which the other tests have built. vision.sh ends with 77 where OpenCV is not there and cannot be
# installed.
test-vision-short: venv
	@scripts/capi.sh $(OUT)/dev/capi dev; \
	status=0; scripts/vision.sh $(OUT)/dev/capi $(OUT)/dev/vision || status=$$?; \
	case $$status in \
	0) scripts/fusion.sh $(OUT)/dev/capi $(OUT)/dev/fusion && FUSION=$(OUT)/dev/fusion $(PYTEST) examples/fusion/tests && \
	   STABILIZE=$(OUT)/dev/vision/stabilize $(PYTEST) examples/vision/tests/test_{short,delays,scheduled,study}.py ;; \
	77) echo "examples/vision, examples/fusion: all tests: OpenCV is not installed" | tee -a "$${LAXITY_SKIPPED:-/dev/null}" ;; \
	*) exit $$status ;; \
	esac

# --- what people run -----------------------------------------------------------------------------------------------

# What the tests of the OpenCL layer run on; without it they are skipped by name.
opencl:
	@scripts/opencl.sh 2>/dev/null || true

# What is downloaded is installed while cargo builds. One after the other, as both may call apt-get.
opencv: | $(STAMPS)/venv
	@scripts/opencv.sh 2>/dev/null || true

# Without OpenCV there is no program, and the demo says so.
demo-vision: target/debug/laxity opencv
	@scripts/capi.sh $(OUT)/dev/capi dev
	@scripts/vision.sh $(OUT)/dev/capi $(OUT)/dev/vision || rm -f $(OUT)/dev/vision/stabilize

# With the dev profile, which the tests build, too.
demo:
	@$(MAKE) --no-print-directory -j2 $(STAMPS)/python demo-vision
	@$(PYTHON) -m examples.demo --laxity target/debug/laxity --stabilize $(OUT)/dev/vision/stabilize --out $(OUT)/demo

# One run tells of all that fails. Tests that this machine cannot run are listed at the end, each with its reason; also
# when a test has failed.
test:
	@mkdir -p $(OUT) && rm -f $(OUT)/skipped.txt; \
	status=0; export LAXITY_SKIPPED=$(abspath $(OUT))/skipped.txt; \
	$(MAKE) --no-print-directory --keep-going test-rust test-python test-vision-short || status=$$?; \
	python3 scripts/skipped.py $(OUT)/skipped.txt; \
	exit $$status

# A test program that hangs is ended, with its name in what cargo prints, and the others go on.
test-rust: $(STAMPS)/tools $(STAMPS)/venv-dev opencl
	CARGO_TARGET_$(TRIPLE)_RUNNER="timeout --foreground --verbose --kill-after=10 1800" cargo test --workspace --no-fail-fast

# The kernel lab's machine is emulated, and does not mind what runs beside it: that are the tests that run nothing live,
# which come first for this.
LAB := tests/python/test_kernel_lab.py
LIVE := $(wildcard python/tests/test_live*.py) \
        $(patsubst %,python/tests/test_%.py,bandwidth gpu_live run sched vx vx_gpu) \
        $(patsubst %,studies/tests/test_%.py,bwlock_live runtime vision_live)
STILL := $(filter-out $(LAB) $(LIVE),$(wildcard $(patsubst %,%/test_*.py,python/tests studies/tests tests/python)))

test-python: venv
	@mkdir -p $(OUT); $(PYTEST) $(LAB) > $(OUT)/kernel-lab-tests.txt 2>&1 & lab=$$!; \
	status=0; $(PYTEST) $(STILL) $(LIVE) || status=$$?; \
	wait $$lab || status=$$?; cat $(OUT)/kernel-lab-tests.txt; exit $$status

test-kill: $(STAMPS)/tools
	cargo test -p laxity-graph --test kills -- --ignored --nocapture
	cargo test -p laxity-graph -p laxity-gpu -p laxity-sched --lib simulation -- --ignored --nocapture
	cargo test -p laxity-gpu --test deaths --test misbehaviour -- --ignored --nocapture
	cargo test -p laxity-sched --test deaths -- --ignored --nocapture
	cargo test -p laxity-gpu --test bandwidth -- --ignored --nocapture
	cargo test -p laxity-bandwidth --test kills -- --ignored --nocapture

test-cuda: $(STAMPS)/tools $(STAMPS)/venv-cuda
	cargo test -p laxity-cuda -p laxity-softcuda -p laxity-softcudart

# Of the Python that has the frameworks: LAXITY_CUDA_PYTHON=python3.
test-gpu: $(STAMPS)/tools
	@scripts/test_gpu.sh

test-kernel: $(STAMPS)/tools
	cargo test -p laxity-scx -- --ignored --nocapture

# `laxity sched start` finds it beside the command.
scheduler: $(STAMPS)/tools
	@scripts/scheduler.sh release

# The kernel comes from the distribution, into target/kernel-lab; the machine is emulated, and needs nothing of this one's.
test-kernel-lab: venv
	@python3 scripts/kernel_lab.py install
	$(PYTEST) tests/python/test_kernel_lab.py \
		tests/python/kernel_lab_{runs,workloads,interrupts,inversions,realizations,events,graphs,gpus,programs,python,measures,shares}.py

test-proven: $(STAMPS)/venv-dev
	cargo build --release --quiet -p laxity-cli
	$(PYTEST) tests/python/proven_sets.py

# All targets run side by side, guided by coverage.
EACH ?= 3600
fuzz: $(STAMPS)/tools
	@python3 scripts/fuzz.py $(EACH)

test-races: $(STAMPS)/tools
	@scripts/races.sh

check: $(STAMPS)/venv-dev
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --lib --no-deps --quiet
	$(VENV)/bin/ruff format --check python studies examples tests benches scripts
	$(VENV)/bin/ruff check python studies examples tests benches scripts
	cd python && ../$(VENV)/bin/mypy
	$(PYTHON) scripts/supply_chain.py
	cargo test --workspace --quiet --lib

# The published studies at full size, resumable at any moment; the first two take hours of CPU time. An optimized package.
study-gedf study-klmirqd study-klmirqd-runtime: $(STAMPS)/venv
	@VIRTUAL_ENV=$(abspath $(VENV)) $(VENV)/bin/maturin develop --quiet --release -m python/Cargo.toml
	@rm -f $(STAMPS)/python
	@$(PYTHON) -m studies $(STUDY) --out $(OUT)/$(STUDY)
study-gedf: STUDY := brandenburg2009gedf
study-klmirqd: STUDY := elliott2012klmirqd
study-klmirqd-runtime: STUDY := elliott2012klmirqd_runtime

# What its page has of the kernel lab: some minutes. A page of a full run that is published afterwards has it.
study-klmirqd-lab: $(STAMPS)/venv
	@python3 scripts/kernel_lab.py install
	@cargo build --release --quiet -p laxity-cli
	@scripts/scheduler.sh release --example kernel-network
	@$(PYTHON) -m studies.elliott2012klmirqd_runtime.measure target/release

# Nothing else should run meanwhile. Resumable; FOR=10s for a shorter one.
FOR ?= 400s
study-vision: KINDS := --live --virtual
study-vision-virtual: KINDS := --virtual
study-vision study-vision-virtual: vision $(STAMPS)/venv
	cargo build --release --quiet -p laxity-cli
	@VIRTUAL_ENV=$(abspath $(VENV)) $(VENV)/bin/maturin develop --quiet --release -m python/Cargo.toml
	@rm -f $(STAMPS)/python
	@$(PYTHON) -m studies elliott2015vision $(KINDS) --for $(FOR) --stabilize $(OUT)/vision/stabilize \
	    --laxity target/release/laxity --out $(OUT)/elliott2015vision

bench-analysis: $(STAMPS)/tools
	@cargo build --release --quiet -p laxity-benches
	@mkdir -p $(OUT)/bench && target/release/bench-analysis | tee $(OUT)/bench/analysis.txt

bench-gpu: vision
	@cargo build --release --quiet -p laxity-benches
	@mkdir -p $(OUT)/bench && target/release/bench-gpu | tee $(OUT)/bench/gpu.txt

bench-graph: $(STAMPS)/tools
	@cargo build --release --quiet -p laxity-benches --features iceoryx2 --bin bench-graph
	@mkdir -p $(OUT)/bench && target/release/bench-graph | tee $(OUT)/bench/graph.txt

bench-sched: $(STAMPS)/tools
	@cargo build --release --quiet -p laxity-benches --bin bench-sched
	@mkdir -p $(OUT)/bench && target/release/bench-sched | tee $(OUT)/bench/sched.txt

# The emulated machine is the same whatever this one does.
bench-kernel: $(STAMPS)/tools
	@python3 scripts/kernel_lab.py install
	@cargo build --release --quiet -p laxity-cli
	@scripts/scheduler.sh release --example kernel-tasks --example kernel-releases --example kernel-device
	@mkdir -p $(OUT)/bench && python3 benches/kernel.py target/release | tee $(OUT)/bench/kernel.txt

profile-kernel: $(STAMPS)/tools
	@python3 scripts/kernel_lab.py install
	@cargo build --release --quiet -p laxity-cli
	@scripts/scheduler.sh release --example kernel-releases
	@python3 scripts/kernel_profile.py target/release

measure-kernel: $(STAMPS)/tools
	@python3 scripts/kernel_lab.py install
	@cargo build --release --quiet -p laxity-cli
	@scripts/scheduler.sh release
	@python3 scripts/measure_kernel.py --out $(OUT)/kernel-overheads target/release

bench-interpose: $(STAMPS)/tools opencl
	@cargo build --release --quiet -p laxity-benches -p laxity-opencl -p laxity-cuda -p laxity-softcuda -p laxity-softgpu
	@mkdir -p $(OUT)/bench && target/release/bench-interpose | tee $(OUT)/bench/interpose.txt

bench-gpu-real: $(STAMPS)/tools $(STAMPS)/venv
	@[ -e /dev/nvidiactl ] || { echo 'make bench-gpu-real: skipped: no NVIDIA GPU on this machine'; exit 0; }; \
	cargo build --release --quiet -p laxity-cli -p laxity-cuda && mkdir -p $(OUT)/bench && \
	$${LAXITY_CUDA_PYTHON:-python3} benches/gpu_real.py --out $(OUT)/bench && \
	$(PYTHON) benches/gpu_real.py --plot $(OUT)/bench

bench-bandwidth: $(STAMPS)/tools
	@cargo build --release --quiet -p laxity-benches --bin bench-bandwidth
	@mkdir -p $(OUT)/bench && target/release/bench-bandwidth | tee $(OUT)/bench/bandwidth.txt

bench-trace: $(STAMPS)/tools
	@cargo build --release --quiet -p laxity-benches --bin bench-trace
	@target/release/bench-trace

bench-sim: $(STAMPS)/venv-dev
	@cargo build --release --quiet -p laxity-benches
	@mkdir -p $(OUT)/bench && target/release/bench-sim --python $(PYTHON) | tee $(OUT)/bench/sim.txt

requirements: $(STAMPS)/venv
	$(PYTHON) -m pip install --quiet --disable-pip-version-check uv==0.13.9
	cd python && export UV_CUSTOM_COMPILE_COMMAND="make requirements" && \
	compile="../$(VENV)/bin/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-annotate" && \
	$$compile requirements.in --output-file requirements.txt && \
	$$compile requirements-dev.in --output-file requirements-dev.txt -c requirements.txt && \
	$$compile requirements-cuda.in --output-file requirements-cuda.txt

clean:
	rm -rf target $(VENV) $(OUT)
