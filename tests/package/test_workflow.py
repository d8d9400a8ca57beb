"""The workflow on GitHub: it runs what a developer can run, and nothing that can change under it."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
import yaml

from tests.package.template import ROOT

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
_PINNED: Final = re.compile(r"uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def loaded(path: Any) -> Any:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)  # YAML 1.1 reads the key `on` as a truth value
    return found


def ci() -> Any:
    return loaded(ROOT / ".github/workflows/ci.yml")


def steps() -> list[dict[str, Any]]:
    job: Any
    [job] = ci()["jobs"].values()
    return list(job["steps"])


def test_it_runs_what_a_developer_runs_and_nothing_else():
    runs = [step["run"] for step in steps() if "run" in step]
    assert runs == ["make audit", ".ci/run", "make sbom"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o100, ".ci/run cannot be run"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_its_commit_and_says_its_version(path: Any):
    uses = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert uses
    assert [line for line in uses if not _PINNED.search(line)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_it_may_read_the_code_and_nothing_else(path: Any):
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert not [job for job in workflow["jobs"].values() if "permissions" in job]
    assert "pull_request_target" not in workflow["on"]
    assert "secrets." not in path.read_text(encoding="utf-8")


def test_everything_that_is_locked_is_kept_up_to_date_and_looked_up():
    """The bot finds the locks by patterns, the audit by those of make; LocalStack's is held back."""
    held_back = {"infra/local/localstack/localstack.lock", "infra/local/controlplane/go.lock"}
    locks = {
        str(path.relative_to(ROOT))
        for pattern in ("requirements.lock", "layers/*/requirements.txt", "infra/local/**/*.lock")
        for path in ROOT.glob(pattern)
    }
    bot = json.loads((ROOT / "renovate.json").read_text(encoding="utf-8"))
    patterns = [p.strip("/") for p in bot["pip-compile"]["managerFilePatterns"]]
    assert {lock for lock in locks if any(re.search(p, lock) for p in patterns)} == locks
    listed = re.search(r"^LOCKS +:= (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed
    names = re.sub(r"\$\(wildcard (.*?)\)", r"\1", listed[1]).split()
    audited = {str(path.relative_to(ROOT)) for name in names for path in ROOT.glob(name)}
    assert audited == locks - held_back
    for lock in locks - held_back:
        head = (ROOT / lock).read_text(encoding="utf-8")[:400]
        assert f"-o {lock}" in head, "the bot makes a lock anew by the command in its head"
        assert "--generate-hashes" in head
