#!/bin/sh
# Make one Python environment from one lock file: environment.sh DIRECTORY LOCK [-e] [PROJECT]
#
# SAM CLI and the emulator get environments of their own, because pip's resolver never ends when
# SAM CLI shares one with the rest. The project in the folder PROJECT is installed as well, with -e
# editable.
set -eu
directory=$1 lock=$2
shift 2
# Beside all others, because it makes them.
installer=.tools/installer

if ! command -v python3.13 >/dev/null 2>&1 || ! python3.13 -c '' >/dev/null 2>&1; then
    cat >&2 <<'WHY'
Python 3.13 is missing: no `python3.13` answers on PATH, and Lambda's runtime is python3.13.
Install it, then run the same command again:
  Debian, Ubuntu:  apt install python3.13 python3.13-venv   (or: pyenv install 3.13)
  macOS:           brew install python@3.13
  anywhere:        uv python install 3.13 --default
WHY
    exit 1
fi
if ! python3.13 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    echo "python3.13 cannot make virtual environments: install its venv package (Debian, Ubuntu: apt install python3.13-venv), then run the same command again." >&2
    exit 1
fi

pip() { "$installer/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }

if ! cmp -s infra/local/installer.lock "$installer/installed.lock"; then
    python3.13 -m venv "$installer"
    pip install --quiet --require-hashes -r infra/local/installer.lock
    cp infra/local/installer.lock "$installer/installed.lock"
fi

echo "==> $directory: Python packages from $lock (once; a minute on a slow network)"
[ -x "$directory/bin/python" ] || python3.13 -m venv --without-pip "$directory"
# uv trusts only the authorities that it ships with, unless it is told to trust the machine's, as pip does.
if ! "$installer/bin/uv" --system-certs pip install --python "$directory/bin/python" --compile-bytecode --require-hashes -r "$lock"; then
    # A mirror that is named in pip's settings or variables alone: uv does not read them.
    echo "==> $directory: uv cannot install them, so pip tries" >&2
    pip --python "$directory/bin/python" install --require-hashes -r "$lock"
fi
if [ $# -gt 0 ]; then
    # By force, since a project keeps its version while its modules change.
    pip --python "$directory/bin/python" install --quiet --no-deps --no-build-isolation --force-reinstall "$@"
fi
touch "$directory/.ready"
echo "==> $directory is ready"
