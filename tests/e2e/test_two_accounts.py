"""One storm through clusters of two accounts, on the deployed stack: each is served in its own account alone.

`harbor` is in the account of the stack. `quay` and `astray` are in another one, in which infra/spoke.yaml is
deployed; of `astray` a wrong external id is registered. In the account of the stack infra/reports.yaml is deployed
too, and somebody of the other account reads by its role.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, override

import pytest

from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.emulated.accounts import AccountsEmulation, Spoke
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION, STACK

pytestmark = [pytest.mark.emulator, pytest.mark.cluster, pytest.mark.long]

DRILL = Path(__file__).parent / "accounts" / "drill.yaml"
OTHER = "210987654321"
EXTERNAL_ID = "a-word-between-these-two"
SPOKES = {
    "quay": Spoke(account=OTHER, external_id=EXTERNAL_ID),
    "astray": Spoke(account=OTHER, external_id="not-what-the-role-asks-for"),
}
CLUSTERS = ("harbor", *SPOKES)
PEOPLE = f"arn:aws:iam::{OTHER}:role/platform"
"""Who may read the reports of the stack from the other account."""
READERS = f"arn:aws:iam::{ACCOUNT}:role/{STACK}-reports-{REGION}"
"""The role that infra/reports.yaml makes."""


class Watched(AccountsEmulation):
    """A drill after which people ask by the command line, while everything is still there."""

    clusters: dict[str, Any]
    reports: list[dict[str, Any]]
    read_elsewhere: subprocess.CompletedProcess[str]
    """What somebody of the other account reads, by a profile that is right and one with a wrong external id."""

    @override
    def report(self, *, settled: bool) -> Report:
        listed = self._plimsoll("clusters", "list", "--wide", "--output", "json")["clusters"]
        self.clusters = {each["name"]: each["wide"] for each in listed}
        self.reports = self._plimsoll("reports", "--output", "json")["reports"]
        self._deploy_role_of_reports()
        with tempfile.TemporaryDirectory() as home:
            self._write_profiles(Path(home))
            profiles = ("--profile", "right", "--profile", "wrong")
            self.read_elsewhere = self._run("reports", *profiles, "--output", "json", HOME=home)
        return super().report(settled=settled)

    def _deploy_role_of_reports(self) -> None:
        """Deploy infra/reports.yaml for a role of the other account."""
        iam = self.emulator.client("iam", account=OTHER)
        may = {"Effect": "Allow", "Action": "sts:AssumeRole"}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [may | {"Principal": "*"}]})
        policy = json.dumps({"Version": "2012-10-17", "Statement": [may | {"Resource": READERS}]})
        iam.create_role(RoleName="platform", AssumeRolePolicyDocument=trust)
        iam.put_role_policy(RoleName="platform", PolicyName="read", PolicyDocument=policy)
        cloudformation = self.emulator.client("cloudformation")
        cloudformation.create_stack(
            StackName="reports",
            TemplateBody=(self.emulator.checkout.root / "infra/reports.yaml").read_text(),
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=[
                {"ParameterKey": name, "ParameterValue": value}
                for name, value in (
                    ("People", PEOPLE),
                    ("ExternalId", EXTERNAL_ID),
                    ("Stack", STACK),
                )
            ],
        )
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName="reports", WaiterConfig={"Delay": 1, "MaxAttempts": 60})

    def _write_profiles(self, home: Path) -> None:
        """Write AWS settings as docs/operate/accounts.md says."""
        (home / ".aws").mkdir()
        lines = [
            "[profile owner]",
            f"aws_access_key_id = {OTHER}",
            "aws_secret_access_key = none",
            "[profile platform]",
            f"role_arn = {PEOPLE}",
            "source_profile = owner",
        ]
        for name, external_id in (("right", EXTERNAL_ID), ("wrong", "not-what-the-role-asks-for")):
            lines += [
                f"[profile {name}]",
                f"role_arn = {READERS}",
                f"external_id = {external_id}",
                "source_profile = platform",
                f"region = {REGION}",
            ]
        (home / ".aws" / "config").write_text("\n".join(lines))

    def _plimsoll(self, *words: str) -> Any:
        keys = {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "none"}
        done = self._run(*words, HOME=str(self.emulator.log.parent), **keys)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _run(self, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        settings |= {
            "PATH": os.environ["PATH"],
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.emulator.url,
            "PLIMSOLL_STACK": STACK,
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        return subprocess.run(
            [Path(sys.executable).with_name("plimsoll"), *words],
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )


@dataclass(frozen=True, kw_only=True)
class Played:
    run: Watched
    report: Report

    def nodes(self, cluster: str) -> list[Any]:
        return [node for node in self.report["nodes"] if node["cluster"] == cluster]

    def grown(self, cluster: str) -> int:
        """By how many on-demand nodes a cluster grew."""
        group = self.run.rig_clusters[cluster].fleet.groups[f"{cluster}-base"]
        return group.desired - group.spec.size

    def asked(self, account: str, *clusters: str) -> list[str]:
        """What was asked in an account that names an instance or a group of these clusters."""
        fleets = [self.run.rig_clusters[name].fleet for name in clusters]
        names = [name for fleet in fleets for name in (*fleet.machine, *fleet.groups)]
        return [said for said in self.run.aws.asked[account] if any(name in said for name in names)]


@pytest.fixture(scope="module")
def played():
    drill = read_drill(DRILL)
    how = {"responder": "plimsoll", "seed": 0}
    with Watched(drill, spokes=SPOKES, external_id=EXTERNAL_ID, **how) as run:
        yield Played(report=run.run(), run=run)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_node_of_the_storm_is_cordoned_in_whichever_account(played, cluster):
    nodes = played.nodes(cluster)
    assert len(nodes) == 2
    for node in nodes:
        assert node["noticed"] < node["cordoned"] < node["gone"]


@pytest.mark.parametrize("cluster", ["harbor", "quay"])
def test_nodes_are_empty_before_they_go_and_capacity_came_for_their_pods(played, cluster):
    for node in played.nodes(cluster):
        assert node["empty"] < node["gone"]
    assert played.grown(cluster) >= 2
    [web] = [row for row in played.report["workloads"] if row["cluster"] == cluster]
    assert web["replaced_first"] == 4


def test_events_of_the_spoke_came_by_the_rules_that_are_deployed_there(played):
    told = played.run.bus.forwarded
    machines = {m for name in SPOKES for m in played.run.rig_clusters[name].fleet.machine}
    warned = {event["detail"]["instance-id"] for event in told if "Warning" in event["detail-type"]}
    assert len(warned) == 4
    assert warned <= machines
    assert {(event["account"], event["source"]) for event in told} == {(OTHER, "aws.ec2")}


def test_each_account_is_asked_about_its_own_clusters_only(played):
    assert played.asked(ACCOUNT, "harbor")
    assert played.asked(OTHER, "quay")
    assert played.asked(ACCOUNT, *SPOKES) == []
    assert played.asked(OTHER, "harbor") == []
    assert set(played.run.aws.asked) == {ACCOUNT, OTHER}


def test_a_wrong_external_id_costs_its_own_cluster_its_capacity_and_no_other_anything(played):
    assert played.grown("astray") == 0
    asked = played.asked(OTHER, "astray")
    assert not [said for said in asked if "Action=Describe" not in said]
    killed = {row["cluster"] for row in played.report["workloads"] if row["pods_killed"]}
    assert killed <= {"astray"}


def test_the_hub_lists_what_each_cluster_answers(played):
    listed = played.run.clusters
    assert set(listed) == set(CLUSTERS)
    for name in CLUSTERS:
        assert listed[name]["version"], listed[name]
        assert listed[name]["rights_held"], listed[name]
        assert listed[name]["storm"]["nodes"] == 2
    for name in ("harbor", "quay"):
        assert listed[name]["oldest"] is not None, listed[name]
        assert listed[name]["indexed"], listed[name]


def test_the_hub_has_the_reports_of_all_accounts(played):
    found = {(report["cluster"], report["kind"]) for report in played.run.reports}
    assert {(name, "spot-interruption") for name in CLUSTERS} <= found


def test_a_role_of_another_account_reads_the_reports_by_the_template_for_that(played):
    done = played.run.read_elsewhere
    found = json.loads(done.stdout)["reports"]
    assert {report["cluster"] for report in found} == set(CLUSTERS), done.stderr
    assert {report["account"] for report in found} == {ACCOUNT}


def test_a_wrong_external_id_reads_nothing_and_is_no_success(played):
    done = played.run.read_elsewhere
    assert done.returncode == 2
    assert "profile wrong" in done.stderr
    assert "profile right" not in done.stderr
