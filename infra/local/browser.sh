#!/bin/sh
# Find the Chromium that the browser tests drive, and install Debian's where there is none:
#   browser.sh          say which it is; install it with apt-get as root, else print the cure and fail
#   browser.sh --path   print its path, or on standard error why there is none; install nothing
#
# CHROMIUM=/path/to/one goes before what is on PATH. A browser counts if it can say its version:
# Ubuntu's package of the name is a stub that only asks for a snap.
set -eu
names="chromium chromium-browser google-chrome"

version() { "$1" --version 2>/dev/null; }

look() {
    if [ -n "${CHROMIUM:-}" ]; then
        version "$CHROMIUM" >/dev/null || {
            echo "CHROMIUM=$CHROMIUM does not run: set it to a Chromium, or unset it and run make browser" >&2
            return 1
        }
        echo "$CHROMIUM"
        return
    fi
    for name in $names; do
        path=$(command -v "$name") && version "$path" >/dev/null || continue
        echo "$path"
        return
    done
    echo "no browser on PATH (looked for: $names): run make browser, or set CHROMIUM=/path/to/one" >&2
    return 1
}

found() {
    told=$(version "$1")
    echo "==> browser: $1 ($told)"
}

case ${1:-} in
--path)
    look
    exit
    ;;
"") ;;
*)
    echo "browser.sh: what is $1? It takes --path, or nothing." >&2
    exit 2
    ;;
esac

if path=$(look 2>/dev/null); then
    found "$path"
    exit
fi
[ -z "${CHROMIUM:-}" ] || look

install="apt-get install --yes --no-install-recommends chromium"
if ! command -v apt-get >/dev/null; then
    echo "There is no browser on PATH (looked for: $names), and no apt-get to install one with." >&2
    echo "Install Chromium or Chrome in the way of this system (macOS: brew install --cask chromium), set CHROMIUM=/path/to/one if it is not on PATH, then run make browser again." >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "There is no browser on PATH (looked for: $names). Run this, then make browser again:" >&2
    echo "  sudo apt-get update && sudo $install" >&2
    exit 1
fi
echo "==> browser: none on PATH, installing Debian's chromium (once; about 100 MB)"
export DEBIAN_FRONTEND=noninteractive
apt-get update
$install
path=$(look) || {
    echo "apt-get installed chromium, and still none runs: on Ubuntu the package is a stub, so install Chrome or the snap, or set CHROMIUM=/path/to/one." >&2
    exit 1
}
found "$path"
