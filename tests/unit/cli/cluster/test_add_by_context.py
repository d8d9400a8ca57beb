"""`plimsoll clusters add --context` and its inverse: every step is done once, whatever was done before."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from typing import Any

import pytest
import yaml

from plimsoll.domain.registry import Mode
from plimsoll_cli.setup.access import TaggedGroup
from plimsoll_cli.setup.manifests import named, objects_of
from tests.support.cli_environment import MemoryEnvironment, a_cluster, an_environment, run
from tests.support.cluster_setups import ROLES, MemoryAccess, MemoryObjects, harbor_in_eks

BASE = TaggedGroup(name="base", resource="base", managed=False, may_grow=False)
SPOT = TaggedGroup(name="spot", resource="arn:aws:eks:spot", managed=True, may_grow=False)
ADD = ("clusters", "add", "harbor", "--context", "harbor")
REMOVE = ("clusters", "remove", "harbor", "--context", "harbor")


@pytest.fixture
def access() -> MemoryAccess:
    return MemoryAccess(groups=[BASE, SPOT])


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


@pytest.fixture
def environment(access: MemoryAccess, objects: MemoryObjects) -> MemoryEnvironment:
    environment, _ = an_environment(registered=False)
    environment.access, environment.objects = access, objects
    return environment


def test_one_command_gives_a_cluster_everything_and_ends_with_the_doctor_and_a_rehearsal(
    environment, access, objects
):
    result = run(environment, *ADD, "--grow", "base", input="y\n")
    assert result.exit_code == 0, result.output
    wanted = [*objects_of(None), *objects_of("deletions")]
    assert objects.objects == {named(obj): obj for obj in wanted}
    assert access.entries == {role: ["plimsoll"] for role in ROLES}
    assert [group.name for group in access.groups if group.may_grow] == ["base"]
    harbor = environment.registry.get("harbor")
    assert harbor == a_cluster(mode=Mode.OBSERVE)
    said = result.stdout
    assert "account 111122223333, region us-east-1, context harbor" in said
    assert "aws eks create-access-entry --cluster-name harbor" in said
    assert "may not grow these node groups: spot" in said
    assert said.count("[y/N]") == 1
    assert "\ndoctor: " in said
    assert "\nrehearsal: harbor: an interruption of" in said


def test_a_step_that_fails_is_named_and_the_second_run_goes_on_from_there(
    environment, access, objects
):
    access.refused = ROLES[1]
    result = run(environment, *ADD, "--yes")
    assert result.exit_code == 1
    assert "step 4 failed: put " in result.stderr
    assert "give the same command again" in result.stderr
    assert environment.registry.get("harbor") is None
    access.refused = None
    result = run(environment, *ADD, "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n3. already: ") == 2  # in the list, and as the steps are taken
    assert access.entries == {role: ["plimsoll"] for role in ROLES}
    assert environment.registry.get("harbor") is not None


def test_a_cluster_that_has_everything_is_not_asked_about(environment):
    run(environment, *ADD, "--yes")
    environment.registry.update(a_cluster(mode=Mode.ACT))
    result = run(environment, *ADD)
    assert result.exit_code == 0, result.output
    assert "[y/N]" not in result.stdout
    assert result.stdout.count("\n1. already: ") == 1
    assert "\nNothing is left to do.\n" in result.stdout
    assert "already: register harbor: it stays in the mode act" in result.stdout
    assert "observe" not in result.stdout.partition("doctor:")[0]
    assert environment.registry.get("harbor") == a_cluster(mode=Mode.ACT)


@pytest.mark.parametrize("options", [("--dry-run",), ("--print",), ()])
def test_nothing_is_written_before_somebody_agrees(options, environment, access, objects):
    result = run(environment, *ADD, *options, input="n\n")
    assert result.exit_code == (0 if options else 1)
    assert (objects.objects, access.entries, environment.registry.list()) == ({}, {}, [])


def test_an_object_that_somebody_changed_is_applied_again(environment, objects):
    run(environment, *ADD, "--yes")
    role = "Role plimsoll/plimsoll"
    objects.objects[role] = {**objects.objects[role], "rules": []}
    assert "(1 of " in run(environment, *ADD, "--yes").stdout
    assert objects.objects[role] in objects_of(None)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"url": "https://other.example.com"}, "leads to https://harbor.example.com"),
        ({"entries": False}, "authenticationMode=API_AND_CONFIG_MAP"),
        (None, "there is no EKS cluster harbor in account 111122223333"),
    ],
)
def test_a_context_and_an_account_that_do_not_belong_together_are_refused(
    found, said, environment, access, objects
):
    access.clusters = {} if found is None else {"harbor": harbor_in_eks(**found)}
    for words in (ADD, REMOVE):
        if words is REMOVE:
            environment.registry.add(a_cluster())
        result = run(environment, *words, "--yes")
        assert result.exit_code == 2
        assert said in result.stderr
        assert objects.objects == {}


def test_a_cluster_that_is_no_eks_cluster_is_added_with_what_nothing_proves(environment, access):
    lab = ("clusters", "add", "lab", "--endpoint", "https://10.0.0.1", "--secret", "plimsoll/lab")
    result = run(environment, *lab, "--context", "lab", input="y\n")
    assert result.exit_code == 0, result.output
    assert (
        "Not proven: nothing proves that the context (https://harbor.example.com)" in result.stdout
    )
    assert access.entries == {}
    again = ("clusters", "add", "lab", "--context", "lab")
    refused = run(environment, *again)
    assert refused.exit_code == 2
    assert "Not proven" in refused.stderr
    environment.server = "https://10.0.0.1/"
    assert "Not proven" not in run(environment, *lab, "--context", "lab").stdout
    result = run(environment, *again)  # what is registered need not be described again
    assert result.exit_code == 0, result.output
    assert "already: register lab" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--yes",), "--yes needs --context"),
        (("--overlay", "guard"), "needs --context or --gitops"),
        (("--context", "harbor", "--path", "x"), "--path needs --gitops"),
        (("--context", "harbor", "--grow", "gone"), "it has: base, spot"),
        (("--context", "harbor", "--overlay", "none", "--overlay", "guard"), "no other overlay"),
        (("--context", "harbor", "--print", "--yes"), "give one of"),
        (("--gitops", "deploy"), "needs --repository"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(words, said, environment):
    result = run(environment, "clusters", "add", "harbor", *words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_another_cluster_of_the_name_is_left_registered(environment, objects):
    other = replace(a_cluster(), region="eu-west-1")
    environment.registry.add(other)
    result = run(environment, *ADD, "--yes", "--region", "us-east-1")
    assert result.exit_code == 2
    assert "plimsoll clusters remove harbor" in result.stderr
    assert objects.objects == {}


def test_the_script_is_one_that_a_shell_takes_and_holds_every_object(environment, tmp_path):
    said = run(environment, *ADD, "--grow", "spot", "--print").stdout
    assert subprocess.run(["sh", "-n"], input=said, text=True, check=False).returncode == 0
    first = said.split("<<'END_OF_MANIFESTS'\n")[1].partition("END_OF_MANIFESTS")[0]
    assert [*yaml.safe_load_all(first)] == [*objects_of(None)]
    for command in ("eks create-access-entry", "eks tag-resource", "plimsoll clusters add harbor"):
        assert command in said


def test_printed_commands_name_the_stack_and_the_kubeconfig_that_were_given(environment):
    environment.stack_name = "canary"
    given = ("--stack", "canary", "--kubeconfig", "team.yaml")
    environment.registry.add(replace(a_cluster(), region="eu-west-1"))
    said = run(environment, *ADD, *given, "--region", "us-east-1").output
    said += run(environment, "clusters", "add", "quay", *given[:2]).output
    environment.registry.remove("harbor")
    for words in ((*ADD, "--dry-run"), (*ADD, "--yes"), (*REMOVE, "--dry-run")):
        said += run(environment, *words, *given).output
    ours = re.findall(r"plimsoll (?:clusters|doctor|rehearse) [^,;:`)\n]*", said)
    assert {" ".join(command.split()[:3]) for command in ours} >= {
        *("plimsoll clusters add", "plimsoll clusters remove", "plimsoll clusters set"),
        *("plimsoll doctor --cluster", "plimsoll rehearse --cluster"),
    }
    assert [command for command in ours if not command.endswith(" --stack canary")] == []
    kubectl = re.findall(r"^ +kubectl .*", said, re.MULTILINE)
    assert kubectl
    assert all("kubectl --kubeconfig team.yaml --context harbor " in line for line in kubectl)


def test_files_for_argo_cd_and_flux_hold_what_add_applies_and_point_to_each_other(tmp_path):
    folder = tmp_path / "plimsoll"
    words = (
        "--gitops",
        str(folder),
        "--path",
        "clusters/harbor",
        "--repository",
        "https://git.example.com/it",
    )
    result = run(MemoryEnvironment(), "clusters", "add", "harbor", *words, "--overlay", "guard")
    assert result.exit_code == 0, result.output
    rest = "plimsoll clusters add harbor --context CONTEXT --overlay guard --stack plimsoll"
    assert result.stdout.endswith(f": {rest}\n")

    def load(name: str) -> list[Any]:
        return [*yaml.safe_load_all((folder / name).read_text())]

    [top] = load("kustomization.yaml")
    found = []
    for below in top["resources"]:
        [kustomization] = load(f"{below}/kustomization.yaml")
        found += [obj for name in kustomization["resources"] for obj in load(f"{below}/{name}")]
    assert [named(o) for o in found] == [named(o) for f in (None, "guard") for o in objects_of(f)]
    [application] = load("argocd.yaml")
    assert application["spec"]["source"] == {
        "repoURL": "https://git.example.com/it",
        "path": "clusters/harbor",
        "targetRevision": "main",
    }
    repository, sync = load("flux.yaml")
    assert repository["spec"]["url"] == "https://git.example.com/it"
    assert sync["spec"]["path"] == "./clusters/harbor"
    assert sync["spec"]["sourceRef"]["name"] == repository["metadata"]["name"]


def test_removing_a_cluster_leaves_nothing_of_what_adding_it_made(environment, access, objects):
    access.entries = {ROLES[0]: ["viewers"]}
    run(environment, *ADD, "--yes", "--grow", "base", "--grow", "spot", "--overlay", "guard")
    assert access.entries[ROLES[0]] == ["viewers", "plimsoll"]
    assert "Nothing was written" in run(environment, *REMOVE, "--dry-run").stdout
    assert environment.registry.get("harbor") is not None
    result = run(environment, *REMOVE, input="y\n")
    assert result.exit_code == 0, result.output
    assert objects.objects == {}
    assert access.entries == {ROLES[0]: ["viewers"]}
    assert not any(group.may_grow for group in access.groups)
    assert environment.registry.list() == []


def test_removing_a_cluster_leaves_a_tag_that_adding_it_did_not_set(environment, access):
    access.groups = [BASE, replace(SPOT, may_grow=True)]
    run(environment, *ADD, "--yes", "--grow", "base", "--grow", "spot")
    result = run(environment, *REMOVE, "--yes")
    assert result.exit_code == 0, result.output
    assert [group.name for group in access.groups if group.may_grow] == ["spot"]
    assert "the node group spot keeps the tag plimsoll.dev/grow" in result.stdout
    assert "aws eks untag-resource --tag-keys plimsoll.dev/grow --resource-arn" in result.stdout
    assert "keeps the tag" not in run(environment, *ADD, "--dry-run").stdout


def test_a_removal_that_failed_is_finished_by_the_second_run(environment, access, objects):
    run(environment, *ADD, "--yes")
    objects.refused = "ClusterRole plimsoll"
    result = run(environment, *REMOVE, "--yes")
    assert result.exit_code == 1
    assert "403" in result.stderr
    assert (environment.registry.list(), access.entries) == ([], {})
    objects.refused = None
    assert run(environment, *REMOVE, "--yes").exit_code == 0
    assert objects.objects == {}


def test_the_namespace_stays_where_something_else_lies_in_it(environment, objects):
    run(environment, *ADD, "--yes")
    objects.strangers = ["deployments plimsoll-agent"]
    result = run(environment, *REMOVE, "--yes")
    assert result.exit_code == 0, result.output
    assert list(objects.objects) == ["Namespace plimsoll"]
    assert "the namespace plimsoll stays" in result.stdout
