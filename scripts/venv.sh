#!/usr/bin/env bash
# venv.sh FOLDER REQUIREMENTS: a virtual environment with what REQUIREMENTS lists. Each file must have a listed hash.
set -eu
folder=$1 requirements=$2

if [ ! -x "$folder/bin/python" ]; then
    echo "creating the virtual environment $folder"
    # Debian packs `ensurepip` apart; without it `venv` fails half-way.
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            apt-get install -y -qq python3-venv >/dev/null
        else
            echo 'missing: the Python module venv; run: sudo apt-get install python3-venv' >&2
            exit 1
        fi
    fi
    python3 -m venv "$folder"
fi
echo "installing $requirements"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r "$requirements"
