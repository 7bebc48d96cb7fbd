#!/bin/sh
# Make .venv with plait (editable) and the named extras; do nothing when that is done already.
# It needs Python >= 3.11 and the network. It uses uv; where there is none, pip fetches one into .venv, because pip
# itself takes minutes. If that fails pip installs everything.
# Usage: tools/environment.sh EXTRA...      PYTHON=... names the interpreter, UV= (empty) does without uv.
set -eu
cd "$(dirname "$0")/.."
here=$(pwd)
extras=$(echo "$*" | tr ' ' ',')
uv=${UV-$(command -v uv || echo own)}

fail() {
    echo "plait set-up: $1" >&2
    exit 1
}

recent() {
    "$1" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        recent "$PYTHON" || fail "PYTHON=$PYTHON is not a working Python >= 3.11"
        echo "$PYTHON"
        return
    fi
    for name in python3 python3.13 python3.12 python3.11 python; do
        if recent "$name"; then
            command -v "$name"
            return
        fi
    done
    found=$(python3 --version 2>&1 || echo "no python3")
    fail "no Python >= 3.11 was found (found: $found); install one, or name one with PYTHON=/path/to/python make ..."
}

make_venv() {
    python=$(find_python)
    if [ -n "$uv" ] && [ "$uv" != own ]; then
        "$uv" venv --quiet --clear --python "$python" .venv || fail "uv could not make .venv"
    else
        "$python" -m venv --clear .venv ||
            fail "$python cannot make .venv; on Debian and Ubuntu install python3-venv, or install uv"
    fi
    echo "$here" >.venv/plait-root
}

with_uv() {
    "$1" pip install --quiet --python .venv/bin/python --editable ".[$extras]"
}

with_pip() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

# uv does not read pip's settings, of which a mirror is the one that matters.
with_own_uv() {
    mirror=$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)
    mirror=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$mirror}}
    if [ -n "$mirror" ]; then
        export UV_DEFAULT_INDEX="$mirror"
    fi
    with_pip uv && with_uv .venv/bin/uv
}

install_plait() {
    if [ -n "$uv" ] && [ "$uv" != own ]; then
        with_uv "$uv"
        return
    fi
    .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
    if [ "$uv" = own ] && with_own_uv >/dev/null 2>&1; then
        return
    fi
    with_pip --editable ".[$extras]"
}

stamp=.venv/plait-ready-$(echo "$extras" | tr ',' '-')
wanted="$here $(cat pyproject.toml tools/environment.sh | cksum)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

# Scripts in a copied or moved .venv still call the old place, so such a one is made anew.
if ! recent .venv/bin/python || [ "$(cat .venv/plait-root 2>/dev/null || echo "$here")" != "$here" ]; then
    make_venv
fi
echo "plait set-up: installing plait[$extras] into .venv; this happens once and needs the network" >&2
install_plait || fail "the installation failed. If the lines above speak of a connection, a name that could
not be resolved or a time-out, this machine does not reach the Python package index: check the network, or name
a mirror (PIP_INDEX_URL for pip, UV_DEFAULT_INDEX for uv), then run make again."
echo "$wanted" >"$stamp"
