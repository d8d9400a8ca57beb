#!/bin/sh
# Play the requests of another version on the policies of this one, and the other way round, on a real API server.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD from=$1
# Each side has the newest Kubernetes that it knows: that of an older version is built the first time.
trees=$(mktemp -d)
trap 'for tree in theirs ours; do git worktree remove --force "$trees/$tree"; done; rmdir "$trees"' EXIT
git worktree add --detach --quiet "$trees/theirs" "$from"
git worktree add --detach --quiet "$trees/ours" HEAD
mv "$trees/theirs/infra/cluster" "$trees/policies"
mv "$trees/ours/infra/cluster" "$trees/theirs/infra/cluster"
mv "$trees/policies" "$trees/ours/infra/cluster"

play() (
	cd "$trees/$1"
	path=$PWD
	for folder in layers/core layers/service layers/batch agent cli simulation testbed; do path=$path:$PWD/$folder; done
	PYTHONPATH=$path "$root/.venv/bin/pytest" -q --no-header -m cluster tests/cluster/test_rights_of_actions.py
)

# An action that fails is no error here: the changelog has to name it.
echo "==> the functions of $from, the manifests of HEAD"
play theirs || [ $? -eq 1 ]
echo "==> the functions of HEAD, the manifests of $from"
play ours || [ $? -eq 1 ]
