#!/bin/sh
# Find the Prometheus that runs the queries of the boards, and unpack Debian's where there is none:
#   prometheus.sh          say which it is; unpack it into .tools/prometheus, else print the cure and fail
#   prometheus.sh --path   print its path, or on standard error why there is none; fetch nothing
#
# PROMETHEUS=/path/to/one goes before what is on PATH. The package is unpacked, not installed: that needs no
# root, and installed it would start a server of its own on port 9090.
set -eu
cd "$(dirname "$0")/../.."
unpacked=.tools/prometheus/usr/bin/prometheus

look() {
    for path in ${PROMETHEUS:-prometheus "$PWD/$unpacked"}; do
        "$path" --version >/dev/null 2>&1 || continue
        command -v "$path"
        return
    done
    echo "no Prometheus runs (looked for: ${PROMETHEUS:-prometheus on PATH, $unpacked}): run make prometheus, or set PROMETHEUS=/path/to/one" >&2
    return 1
}

case ${1:-} in
--path)
    look
    exit
    ;;
"") ;;
*)
    echo "prometheus.sh: what is $1? It takes --path, or nothing." >&2
    exit 2
    ;;
esac

look 2>/dev/null && exit
[ -z "${PROMETHEUS:-}" ] || look
if ! command -v apt-get >/dev/null; then
    echo "There is no Prometheus on PATH, and no apt-get to fetch one with. Install it in the way of this system, or set PROMETHEUS=/path/to/one, then run make prometheus again." >&2
    exit 1
fi
echo "==> prometheus: none on PATH, unpacking Debian's into .tools/prometheus (once; about 20 MB)"
fetched=$(mktemp -d)
trap 'rm -r "$fetched"' EXIT
# apt-get holds the file to the hash in the signed list of packages.
(cd "$fetched" && apt-get download prometheus)
mkdir -p .tools/prometheus
dpkg-deb -x "$fetched"/prometheus_*.deb .tools/prometheus
look
