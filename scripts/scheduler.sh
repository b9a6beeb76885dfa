#!/usr/bin/env bash
# scheduler.sh [dev|release] [PROGRAM...]: the scheduler for the kernel, into target/debug or target/release: its BPF object, the
# program that loads it, and what else of laxity-scx is named (--example kernel-tasks). Libbpf is built from source; clang,
# libelf and zlib are installed, as root, where they are not there. If they cannot be, it says what to install and ends
# with 77. LAXITY_INSTALL=no installs nothing. `scheduler.sh clang` only says which clang it takes.
set -eu -o pipefail
cd "$(dirname "$0")/.."
profile=${1:-release}
shift $(($# > 0))
out=target/$([ "$profile" = dev ] && echo debug || echo release)

find_clang() { # the first one that compiles for BPF
    local clang
    for clang in clang clang-{21,20,19,18,17,16,14}; do
        if echo 'int empty;' | "$clang" -target bpf -x c -c -o /dev/null - 2>/dev/null; then
            echo "$clang"
            return
        fi
    done
}

if [ "$profile" = clang ]; then
    find_clang
    exit
fi

missing=()
[ -n "$(find_clang)" ] || missing+=(clang)
command -v pkg-config >/dev/null || missing+=(pkg-config)
command -v make >/dev/null || missing+=(make)
for header in libelf.h:libelf-dev zlib.h:zlib1g-dev; do
    echo "#include <${header%:*}>" | cc -E -o /dev/null - 2>/dev/null || missing+=("${header#*:}")
done
if [ ${#missing[@]} -gt 0 ]; then
    install="apt-get install --no-install-recommends ${missing[*]}"
    if [ "${LAXITY_INSTALL:-yes}" = no ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        printf 'missing: %s\n    sudo %s\n' "${missing[*]}" "$install" >&2
        exit 77
    fi
    echo "installing ${missing[*]}"
    { apt-get update && DEBIAN_FRONTEND=noninteractive $install --yes; } >/dev/null 2>&1 || {
        printf 'cannot be installed: %s\n' "${missing[*]}" >&2
        exit 77
    }
fi

mkdir -p "$out"
"$(find_clang)" -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -c bpf/scheduler.bpf.c \
    -o "$out/laxity-scheduler.bpf.o"
cargo build --quiet --profile "$profile" -p laxity-scx --features kernel --bin laxity-scheduler "$@"
