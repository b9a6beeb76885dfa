#!/usr/bin/env bash
# races.sh: live graphs under ThreadSanitizer, AddressSanitizer and Miri, C programs under AddressSanitizer. Minutes; needs
# the network once, for a nightly toolchain, which is why `make test` has no part of it.
#
# ThreadSanitizer rebuilds the standard library, or it would not see its synchronization. It sees the threads of one
# process; what processes do to each other is the same code on the same words. Miri cannot map shared memory: it has
# what is pure. (valgrind 3.19 cannot run programs that use rustix, which reads the vDSO that valgrind hides.)
set -eu
cd "$(dirname "$0")/.."

toolchain=nightly-2026-05-20
target=x86_64-unknown-linux-gnu
tests=(--test tokens --test rings --test objects --test swapping --test user_data --test links --test conformance)

for component in rust-src miri; do
    rustup component list --toolchain $toolchain 2>/dev/null | grep -q "^$component.*(installed)" ||
        rustup toolchain install $toolchain --profile minimal --component rust-src,miri
done

echo "live graphs under ThreadSanitizer"
RUSTFLAGS=-Zsanitizer=thread TSAN_OPTIONS=halt_on_error=1 \
    cargo +$toolchain test --quiet -Zbuild-std --target $target --target-dir target/races/thread -p laxity-graph "${tests[@]}"

echo "live graphs under AddressSanitizer"
RUSTFLAGS=-Zsanitizer=address \
    cargo +$toolchain test --quiet --target $target --target-dir target/races/address -p laxity-graph "${tests[@]}"

echo "what is pure under Miri"
PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation \
    cargo +$toolchain miri test --quiet --target-dir target/races/miri -p laxity-graph --lib -- --skip parking:: \
    --skip a_queue_comes_and_goes_with_its_graph --skip a_message_that_linux_has_not_delivered

echo "C programs under AddressSanitizer"
LAXITY_TEST_CFLAGS=-fsanitize=address,undefined cargo test --quiet -p laxity-capi --test programs
