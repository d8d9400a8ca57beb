"""The guide to install holds: its commands are tried, or stand here with the reason why not.

What needs a deployed stack is tried in tests/e2e/test_install.py, on the emulator.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from plimsoll.domain.registry import Mode
from plimsoll.domain.reports import Reason, Report
from plimsoll_cli.setup.access import TaggedGroup
from tests.package.install_page import (
    PAGE,
    PLIMSOLL,
    SAM,
    Command,
    beginning,
    call_of,
    commands,
    rows,
    text,
)
from tests.package.template import ROOT, resources, template
from tests.support.builders import NOON
from tests.support.cli_environment import (
    MemoryEnvironment,
    a_cluster,
    an_environment,
    entry,
    interrupt,
    run,
)
from tests.support.cluster_setups import MemoryAccess

INSTANCE: Final = "i-0123456789abcdef0"
"""The one that the page names; it is that of the node `spot-1` too."""

TRIED: Final = (
    # Each kind of command, by how it begins, is tried by the tests of the heading that it names.
    (PLIMSOLL,),  # the command line
    ("aws",),  # AWS
    (SAM, "deploy", "--parameter-overrides"),  # the stack
    ("make",),  # the stack
)

UNTRIED: Final = {
    (SAM, "deploy", "--guided"): "it asks a person; the same deployment without questions, and "
    "each parameter that it asks for, are tried",
    ("kubectl", "get", "nodes"): "no rig has kubectl; it prints two fields of Nodes",
    ("export", "AWS_DEFAULT_REGION=us-east-1"): "it sets a variable of the reader's shell",
}


def matching(table: Any, command: Command) -> list[tuple[str, ...]]:
    return [start for start in table if command.words[: len(start)] == list(start)]


def params(found: list[Command]) -> list[Any]:
    """Make each command a case of its own; one that the page repeats is one."""
    return [pytest.param(command, id=command.text) for command in dict.fromkeys(found)]


@pytest.mark.parametrize("command", params(commands()))
def test_every_command_is_tried_or_has_a_reason_why_not(command: Command):
    known = matching(TRIED, command) + matching(UNTRIED, command)
    assert len(known) == 1, f"{command.text}: try it, or write down why it cannot be tried"


# --- The command line -----------------------------------------------------------------------------

ANSWERS: Final = {
    "clusters set harbor --mode act": "y\n",
    "clusters add harbor --context harbor --grow on-demand": "y\n",
    "clusters add lab --context lab --endpoint https://lab.example.com:6443 --ca ca.pem --secret plimsoll/lab": "y\n",
    "clusters remove harbor --context harbor": "y\ny\n",
}
"""What the reader types when he is asked."""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the checkout, with the reader's own files in it."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def what_happens_meanwhile(environment: MemoryEnvironment, words: str) -> None:
    """Between the commands of the page the resync runs, and the experiment's notice comes."""
    if words == "clusters list":
        environment.index.put([entry()])
    elif words == "reports --cluster harbor":
        environment.reports.merge(
            Report(
                interruption=f"{INSTANCE}@unknown",
                cluster="harbor",
                node="spot-1",
                kind="spot-interruption",
                noticed=NOON,
                deadline=None,
                reasons=(Reason(why="would cordon Node spot-1"),),
            )
        )
    elif words == "clusters remove harbor --context harbor --dry-run":
        interrupt(environment, kind="rebalance-recommendation", seconds=None)


def test_the_commands_of_the_page_lead_from_nothing_to_acting_and_out_again(checkout: Path):
    environment, counting = an_environment(registered=False)
    group = TaggedGroup(name="on-demand", resource="on-demand", managed=False, may_grow=False)
    environment.access = MemoryAccess(groups=[group])
    modes = []
    for command in beginning(PLIMSOLL):
        words = " ".join(command.words[1:])
        what_happens_meanwhile(environment, words)
        result = run(environment, *command.words[1:], input=ANSWERS.get(words))
        doctor = words.startswith("doctor")  # may find something to fix in a cluster of two nodes
        assert result.exit_code in ({0, 1} if doctor else {0}), f"{command.text}\n{result.output}"
        if words.startswith("clusters add"):
            counting.writes.clear()  # the doctor's questions, as below
        if doctor:
            assert "a canary came through" in result.stdout
            counting.writes.clear()  # questions about rights are written, and change nothing
        if words.startswith("rehearse --event"):
            assert "node spot-1 of harbor" in result.stdout
        if words.startswith("reports"):
            assert INSTANCE in result.stdout
        harbor = environment.registry.get("harbor")
        modes.append(None if harbor is None else harbor.mode)
        if Mode.ACT not in modes:
            assert counting.writes == [], f"{command.text} wrote to a cluster that is observed"
    assert list(dict.fromkeys(modes)) == [Mode.OBSERVE, Mode.ACT, None]
    [node] = [n for n in environment.open(a_cluster()).nodes() if n.name == "spot-1"]
    assert not node.unschedulable
    assert [cluster.name for cluster in environment.registry.list()] == ["lab"]


# --- AWS ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", params(beginning("aws")))
def test_an_aws_command_is_one_that_the_service_knows(command: Command):
    call = call_of(command.words)
    for value in call.parameters.values():
        if isinstance(value, str) and value.startswith("file://infra/"):
            assert (ROOT / value.removeprefix("file://")).is_file()


def test_secrets_are_named_as_the_roles_may_read_them():
    for command in beginning("aws", "secretsmanager"):
        parameters = call_of(command.words).parameters
        assert parameters.get("Name", parameters.get("SecretId")).startswith("plimsoll/")


def test_the_retained_tables_are_those_that_the_page_deletes():
    deleted = {c.words[-1].split("-")[1] for c in beginning("aws", "dynamodb", "delete-table")}
    kept = {
        name
        for name, table in resources("AWS::DynamoDB::Table").items()
        if table["DeletionPolicy"].startswith("Retain")
    }
    assert deleted == kept
    unprotected = {c.words[-1].split("-")[1] for c in beginning("aws", "dynamodb", "update-table")}
    assert unprotected == deleted, "a table with deletion protection is not deleted"


def test_the_experiment_is_a_template_that_cloudformation_takes():
    linter = ROOT / ".tools/sam/bin/cfn-lint"
    if not linter.exists():
        pytest.skip("cfn-lint is not there: run `make setup`")
    done = subprocess.run(
        [linter, ROOT / "infra/fis/spot-interruption.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_only_what_carries_the_tag_of_the_page_can_be_interrupted():
    text = (ROOT / "infra/fis/spot-interruption.yaml").read_text(encoding="utf-8")
    [command] = beginning("aws", "ec2", "create-tags")
    [tag] = call_of(command.words).parameters["Tags"]
    assert f'ResourceTags: {{{tag["Key"]}: "{tag["Value"]}"}}' in text
    assert f'aws:ResourceTag/{tag["Key"]}: "{tag["Value"]}"' in text


# --- The stack ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", params(beginning("make")))
def test_a_make_target_exists(command: Command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command.words[1]}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("command", params(beginning(SAM, "deploy", "--parameter-overrides")))
def test_a_parameter_that_is_set_exists_and_takes_the_value(command: Command):
    for pair in command.words[3:]:
        name, _, value = pair.partition("=")
        parameter = template()["Parameters"][name]
        assert value in parameter.get("AllowedValues", [value])


def test_the_page_has_every_parameter_with_its_default():
    said = {row[0].strip("`"): row[1].strip("`") for row in rows("parameter")}
    assert said == {
        name: str(parameter["Default"]) or "empty"
        for name, parameter in template()["Parameters"].items()
    }


def test_a_first_rehearsal_takes_six_commands_at_most_and_the_page_stays_short():
    quickstart = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
    typed = [
        line
        for block in re.findall(r"^```\n(.*?)^```", quickstart, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    first = next(n for n, line in enumerate(typed, start=1) if line.startswith("plimsoll rehearse"))
    assert first <= 6
    assert len(PAGE.read_text(encoding="utf-8").split()) <= 1400


def test_the_page_has_every_size():
    said = {row[0].strip("`"): [int(cell) for cell in row[1:4]] for row in rows("`Size`")}
    sizes = template()["Mappings"]["Concurrency"]
    assert said == {n: [size["Each"], size["Each"], size["Resyncs"]] for n, size in sizes.items()}


def test_the_quotas_that_reserving_needs_are_those_of_the_sizes():
    kept_free_by_lambda, schedules = 100, 2
    page = text()
    for name, size in template()["Mappings"]["Concurrency"].items():
        at_once = 2 * size["Each"] + size["Resyncs"] + schedules
        if name == "small":
            assert at_once <= 10, "the whole quota of a young account"
        else:
            needed = kept_free_by_lambda + at_once
            assert re.search(rf"\b{needed} with `{name}`", page)


def at_once(name: str, size: str) -> dict[str, int]:
    """Return how many of each function of a template run at once."""
    found = {}
    sizes = template(name)["Mappings"]["Concurrency"][size]
    for function, resource in template(name)["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            properties = resource["Properties"]
            bounds = (
                [
                    event["Properties"]["ScalingConfig"]["MaximumConcurrency"]
                    for event in properties["Events"].values()
                    if event["Type"] == "SQS"
                ]
                if "Events" in properties
                else []
            )
            reserve = properties.get("ReservedConcurrentExecutions", {}).get("Fn::If", [None, 1])[1]
            bound = bounds[0] if bounds else reserve
            found[function] = sizes[bound["Fn::FindInMap"][2]] if isinstance(bound, dict) else bound
    return found


def test_the_page_has_the_sum_of_concurrency_for_every_size():
    said = {row[0]: [int(cell) for cell in row[1:4]] for row in rows("functions at once")}
    requests = {"ApiFunction", "AuthorizerFunction", "ConsoleFunction", "SignInFunction"}
    for column, size in enumerate(template()["Mappings"]["Concurrency"]):
        path, service, batch = (
            at_once(name, size) for name in ("template.yaml", "service.yaml", "batch.yaml")
        )
        capped = sum(count for name, count in service.items() if name in requests)
        sums = [sum(path.values()), capped, sum(service.values()) - capped, sum(batch.values())]
        assert [row[column] for row in said.values()] == sums, size


def test_the_page_says_what_is_left_of_a_quota_of_a_thousand():
    path, capped, *pooled = ([int(c) for c in row[1:4]][1] for row in rows("functions at once"))
    page = " ".join(text().split())
    left = 1000 - path - capped
    assert (
        f"{path + capped} are reserved and {left} are left, of which Plimsoll uses {sum(pooled)}"
        in page
    )


# --- The manifests --------------------------------------------------------------------------------


def manifests(folder: Path) -> Iterator[dict[str, Any]]:
    """Load a kustomization and everything that it names."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    for name in kustomization["resources"]:
        found = (folder / name).resolve()
        if found.is_dir():
            yield from manifests(found)
        else:
            yield from yaml.safe_load_all(found.read_text(encoding="utf-8"))


def test_the_kustomization_for_old_clusters_exists():
    assert "`infra/cluster-rbac-only`" in PAGE.read_text(encoding="utf-8")
    assert list(manifests(ROOT / "infra/cluster-rbac-only"))
