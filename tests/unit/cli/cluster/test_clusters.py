"""`plimsoll clusters`: the registry as people change it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from plimsoll.adapters.nodegroups import CALLS
from plimsoll.domain.interruptions import MaintenanceWindow, Policy, Response
from plimsoll.domain.registry import ClusterKind, IndexEntry, Mode
from plimsoll.domain.reports import Report
from plimsoll_simulation.fake_aws.stores import MemoryNodeIndex
from tests.support.cli_environment import (
    MemoryEnvironment,
    a_cluster,
    an_environment,
    interrupt,
    run,
)

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture
def ca(tmp_path: Path) -> str:
    file = tmp_path / "ca.pem"
    file.write_text(PEM)
    return str(file)


def test_an_eks_cluster_is_added_in_observe_mode():
    environment = MemoryEnvironment()
    result = run(environment, "clusters", "add", "harbor")
    assert result.exit_code == 0
    assert environment.registry.get("harbor") == a_cluster()
    assert "in the mode observe" in result.stdout


def test_any_cluster_is_added_by_endpoint_ca_and_secret(ca: str):
    environment = MemoryEnvironment()
    args = ("--endpoint", "https://10.0.0.1:6443", "--ca", ca, "--secret", "plimsoll/lab")
    assert run(environment, "clusters", "add", "lab", *args, "--region", "eu-west-1").exit_code == 0
    lab = environment.registry.get("lab")
    assert lab is not None
    assert (lab.kind, lab.ca, lab.secret, lab.region, lab.mode) == (
        ClusterKind.ENDPOINT,
        PEM,
        "plimsoll/lab",
        "eu-west-1",
        Mode.OBSERVE,
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--eks", "--endpoint", "https://x"), "either --eks or --endpoint"),
        (("--secret", "plimsoll/x"), "need --endpoint"),
        (("--endpoint", "http://10.0.0.1"), "https"),
        (("--endpoint", "https://10.0.0.1"), "secret"),
        (("--endpoint", "https://x", "--ca", "/nowhere/ca.pem"), "No such file"),
    ],
)
def test_refuses_what_cannot_be_connected_to(args: tuple[str, ...], said: str):
    environment = MemoryEnvironment()
    result = run(environment, "clusters", "add", "lab", *args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert environment.registry.list() == []


def test_refuses_a_ca_that_is_no_certificate(tmp_path: Path):
    for content, said in ((b"hello", "no certificate"), (b"\x30\x82", "binary")):
        file = tmp_path / "ca.der"
        file.write_bytes(content)
        args = ("--endpoint", "https://x", "--secret", "plimsoll/x", "--ca", str(file))
        result = run(MemoryEnvironment(), "clusters", "add", "lab", *args)
        assert result.exit_code == 2
        assert said in result.stderr


def test_a_name_that_is_taken_is_refused_with_the_cure():
    environment = MemoryEnvironment()
    environment.registry.add(a_cluster(mode=Mode.ACT))
    result = run(environment, "clusters", "add", "harbor")
    assert result.exit_code == 2
    assert "plimsoll doctor --cluster harbor" in result.stderr
    result = run(environment, "clusters", "add", "harbor", "--region", "eu-west-1")
    assert result.exit_code == 2
    assert "plimsoll clusters remove harbor" in result.stderr
    assert environment.registry.get("harbor") == a_cluster(mode=Mode.ACT)


ROLE = "arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1"


def test_a_cluster_in_another_account_is_added_with_its_role_and_its_external_id_is_not_shown():
    environment = MemoryEnvironment()
    args = ("--role", ROLE, "--external-id", "between-us-two")
    assert run(environment, "clusters", "add", "quay", *args).exit_code == 0
    quay = environment.registry.get("quay")
    assert quay is not None
    assert (quay.account, quay.place) == ("210987654321", "210987654321/us-east-1")
    shown = run(environment, "clusters", "list", "--output", "json").stdout
    assert ROLE in shown
    assert "between-us-two" not in shown


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--role", ROLE), "together"),
        (("--external-id", "between-us-two"), "together"),
        (("--role", "plimsoll-spoke", "--external-id", "between-us-two"), "give an ARN"),
    ],
)
def test_a_role_that_cannot_be_assumed_is_refused(args, said):
    result = run(MemoryEnvironment(), "clusters", "add", "quay", *args)
    assert result.exit_code == 2
    assert said in result.output


def test_lists_clusters_for_people_and_as_json():
    environment = MemoryEnvironment()
    environment.registry.add(a_cluster("quay", mode=Mode.ACT))
    environment.registry.add(a_cluster("harbor"))
    assert "harbor" in run(environment, "clusters", "list").stdout
    said = json.loads(run(environment, "clusters", "list", "--output", "json").stdout)
    assert [(c["name"], c["mode"]) for c in said["clusters"]] == [
        ("harbor", "observe"),
        ("quay", "act"),
    ]


def test_a_wide_list_tells_of_each_cluster_what_it_answers_and_what_is_missing():
    environment, _ = an_environment()
    environment.index = MemoryNodeIndex()
    environment.registry.add(a_cluster("quay"))  # nobody answers there
    now = environment.clock.now()
    nodes = environment.open(a_cluster()).nodes()
    known = [node for node in nodes if node.instance is not None]
    environment.index.put(
        [
            IndexEntry(
                instance=node.instance or "",
                cluster="harbor",
                node=node.name,
                seen=now - timedelta(seconds=90),
            )
            for node in known[:-1]
        ]
    )
    for minute, instance in ((600, "i-old"), (31, "i-a"), (30, "i-b")):
        noticed = now - timedelta(minutes=minute)
        environment.reports.merge(
            Report(
                interruption=f"{instance}@then",
                cluster="harbor",
                node=instance,
                kind="spot-interruption",
                noticed=noticed,
                deadline=noticed + timedelta(seconds=118),
                killed=("shop/late",) if instance == "i-b" else (),
            )
        )
    result = run(environment, "clusters", "list", "--wide")
    assert result.exit_code == 0
    row = " ".join(next(w for w in result.stdout.splitlines() if w.startswith("harbor")).split())
    assert f"{len(known) - 1} of {len(known)} nodes, 90 s old" in row
    assert "2 nodes, 1 pods killed" in row
    said = json.loads(run(environment, "clusters", "list", "--wide", "--output", "json").stdout)
    harbor, quay = (one["wide"] for one in said["clusters"])
    assert harbor["rights_held"] + len(harbor["rights_missing"]) == len(CALLS)
    assert (quay["version"], quay["nodes"]) == (None, None)
    assert "does not answer" in quay["not_read"][0]


def test_an_empty_list_says_what_to_do():
    assert "plimsoll clusters add" in run(MemoryEnvironment(), "clusters", "list").stdout


def test_the_kill_switch_is_shown():
    result = run(MemoryEnvironment(parameters={"KillSwitch": "true"}), "clusters", "list")
    assert "kill switch" in result.stderr


def test_acting_is_explained_and_confirmed():
    environment, _ = an_environment()
    result = run(environment, "clusters", "set", "harbor", "--mode", "act", input="y\n")
    assert result.exit_code == 0
    assert "it cordons" in result.stdout
    assert "plimsoll.dev/ignore" in result.stdout
    assert environment.registry.get("harbor") == a_cluster(mode=Mode.ACT)


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_nothing_changes_without_a_yes(answer: str):
    environment, _ = an_environment()
    result = run(environment, "clusters", "set", "harbor", "--mode", "act", input=answer)
    assert result.exit_code == 1
    assert environment.registry.get("harbor") == a_cluster()


def test_yes_is_given_beforehand_and_observing_needs_none():
    environment, _ = an_environment()
    assert run(environment, "clusters", "set", "harbor", "--mode", "act", "--yes").exit_code == 0
    assert run(environment, "clusters", "set", "harbor", "--mode", "observe").exit_code == 0
    assert environment.registry.get("harbor") == a_cluster()


ADVICE = "rebalance-recommendation"


@pytest.mark.parametrize(
    ("args", "policy"),
    [
        (("--on", f"{ADVICE}=cordon"), Policy(on=((ADVICE, Response.CORDON),))),
        (("--on", f"{ADVICE}=ignore", "--on", f"{ADVICE}=move"), Policy()),
        (("--nodes-per-hour", "0"), Policy(nodes_per_hour=0)),
        (("--moves-per-hour", "0"), Policy(moves_per_hour=0)),
        (("--min-on-demand", "30%"), Policy(min_on_demand="30%")),
        (("--min-on-demand", "2", "--min-on-demand", "0"), Policy()),
        (("--keep-ready", " 60%, 99.7%"), Policy(keep_ready="60%, 99.7%")),
        (("--keep-ready", "6", "--keep-ready", "0"), Policy()),
        (("--overrule-budgets", "never"), Policy(obeys_budgets=True)),
        (("--overrule-budgets", "at-deadline"), Policy()),
        (("--return-to-spot",), Policy(return_to_spot=True)),
        (("--return-to-spot", "--no-return-to-spot"), Policy()),
        (("--act-in", "web", "--act-in", "lab", "--act-in", "web"), Policy(act_in=("lab", "web"))),
        (
            ("--maintenance-window", "sat,sun 22:00-04:00"),
            Policy(window=MaintenanceWindow.parse("sat,sun 22:00-04:00")),
        ),
        (("--maintenance-window", "sat 22:00-04:00", "--maintenance-window", "none"), Policy()),
        (("--nodes-per-hour", "2", "--nodes-per-hour", "default"), Policy()),
        (("--moves-per-hour", "2", "--moves-per-hour", "default"), Policy()),
    ],
)
def test_the_policy_is_set_shown_and_kept_in_whatever_mode(args, policy):
    environment, _ = an_environment()
    environment.stack_version = "0.2.0"
    result = run(environment, "clusters", "set", "harbor", *args)
    assert result.exit_code == 0, result.stderr
    assert str(policy) in result.stdout
    assert environment.registry.get("harbor") == replace(a_cluster(), policy=policy)
    assert f"harbor: nothing is open; {policy}" in run(environment, "status").stdout


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--on", "spot=move"),
        ("--on", ADVICE),
        ("--on", f"{ADVICE}=stop"),
        ("--nodes-per-hour", "-1"),
        ("--nodes-per-hour", "many"),
        ("--maintenance-window", "weekends"),
        ("--keep-ready", "most"),
        ("--keep-ready", "101%"),
        ("--act-in", "Shop"),
        ("--act-in", "a" * 64),
        ("--act-in", ""),
        ("--act-in", "*", "--act-in", "shop"),
        tuple(arg for number in range(101) for arg in ("--act-in", f"n{number}")),
    ],
)
def test_a_policy_that_means_nothing_is_refused(args):
    environment, _ = an_environment()
    assert run(environment, "clusters", "set", "harbor", *args).exit_code == 2
    assert environment.registry.get("harbor") == a_cluster()


def test_the_list_of_namespaces_is_replaced_and_given_up():
    environment, _ = an_environment()
    environment.stack_version = "0.2.0"
    for given, kept in [(["lab", "web"], ("lab", "web")), (["web"], ("web",)), (["*"], ())]:
        args = [arg for one in given for arg in ("--act-in", one)]
        assert run(environment, "clusters", "set", "harbor", *args).exit_code == 0
        cluster = environment.registry.get("harbor")
        assert cluster is not None
        assert cluster.policy == Policy(act_in=kept)


@pytest.mark.parametrize("version", [None, "0.1.0"])
def test_no_namespaces_are_named_to_functions_that_would_act_in_all(version):
    environment, _ = an_environment()
    environment.stack_version = version
    result = run(environment, "clusters", "set", "harbor", "--act-in", "web")
    assert result.exit_code == 2
    assert "deploy version 0.2.0" in result.stderr
    assert environment.registry.get("harbor") == a_cluster()


def test_an_unknown_cluster_is_refused_with_those_that_are_known():
    environment, _ = an_environment()
    result = run(environment, "clusters", "set", "habror", "--mode", "act", "--yes")
    assert result.exit_code == 2
    assert "registered: harbor" in result.stderr


def test_a_quiet_cluster_is_removed():
    environment, counting = an_environment()
    assert run(environment, "clusters", "remove", "harbor").exit_code == 0
    assert environment.registry.list() == []
    assert counting.writes == []


def test_a_cluster_with_an_open_interruption_is_kept_and_the_node_named():
    environment, _ = an_environment()
    interrupt(environment)
    result = run(environment, "clusters", "remove", "harbor")
    assert result.exit_code == 1
    assert "spot-interruption on node spot-1" in result.stderr
    assert environment.registry.get("harbor") is not None


def advise_and_release(environment: MemoryEnvironment) -> None:
    """Record a recommendation for spot-1, and release a pod of web on another node."""
    interrupt(environment, kind="rebalance-recommendation", seconds=None)
    api = environment.open(a_cluster())
    seen = api.observe()
    [web] = seen.workloads
    api.release(seen.of_workload[web.ref][0], seen.current[web.ref], "i-1@noon")


def changes(environment: MemoryEnvironment) -> tuple[bool, bool, int]:
    """Return whether spot-1 is cordoned and recorded on, and how many pods are released."""
    seen = environment.open(a_cluster()).observe()
    node = seen.node["spot-1"]
    return (
        node.unschedulable,
        node.interruption is not None or bool(node.taints),
        sum(pod.released for pod in seen.pods),
    )


def test_what_is_changed_in_a_cluster_is_put_back_before_it_is_removed():
    environment, _ = an_environment(mode=Mode.ACT)
    advise_and_release(environment)
    assert changes(environment) == (True, True, 1)
    result = run(environment, "clusters", "remove", "harbor", input="y\n")
    assert result.exit_code == 0, result.output
    assert "uncordon Node spot-1" in result.stdout
    assert "undo-release Pod default/web-" in result.stdout
    assert "2 changes made" in result.stdout
    assert changes(environment) == (False, False, 0)
    assert environment.registry.list() == []


def test_a_dry_run_says_what_would_be_put_back_and_writes_nothing():
    environment, counting = an_environment(mode=Mode.ACT)
    advise_and_release(environment)
    counting.writes.clear()
    result = run(environment, "clusters", "remove", "harbor", "--dry-run")
    assert result.exit_code == 0
    assert "would uncordon Node spot-1" in result.stdout
    assert "would undo-release Pod default/web-" in result.stdout
    assert counting.writes == []
    assert environment.registry.get("harbor") == a_cluster(mode=Mode.ACT)


def test_the_kill_switch_stops_the_functions_and_not_who_puts_things_back():
    environment, _ = an_environment(mode=Mode.ACT)
    environment.parameters["KillSwitch"] = "true"
    advise_and_release(environment)
    assert run(environment, "clusters", "remove", "harbor", "--yes").exit_code == 0
    assert changes(environment) == (False, False, 0)


def test_nothing_is_put_back_or_removed_without_a_yes():
    environment, counting = an_environment(mode=Mode.ACT)
    advise_and_release(environment)
    counting.writes.clear()
    assert run(environment, "clusters", "remove", "harbor", input="n\n").exit_code == 1
    assert counting.writes == []
    assert environment.registry.get("harbor") == a_cluster(mode=Mode.ACT)


def test_force_and_a_dry_run_are_not_given_together():
    environment, _ = an_environment()
    assert run(environment, "clusters", "remove", "harbor", "--force", "--dry-run").exit_code == 2


def test_force_removes_it_all_the_same_touches_nothing_and_names_what_is_open():
    environment, counting = an_environment()
    advise_and_release(environment)
    counting.writes.clear()
    result = run(environment, "clusters", "remove", "harbor", "--force")
    assert result.exit_code == 0
    assert "spot-1" in result.stderr
    assert environment.registry.list() == []
    assert counting.writes == []


def test_a_cluster_that_does_not_answer_is_removed_by_force_only():
    environment = MemoryEnvironment()
    environment.registry.add(a_cluster())
    result = run(environment, "clusters", "remove", "harbor")
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert run(environment, "clusters", "remove", "harbor", "--force").exit_code == 0
    assert environment.registry.list() == []


def test_a_cluster_is_bound_to_the_agent_that_is_heard_and_unbound_again():
    environment, _ = an_environment()
    agent = "a-d12436e2cf24b1d86001dfd9"
    for words, heard in (
        (("--agent", agent), agent),
        (("--nodes-per-hour", "2"), agent),
        (("--agent", "none"), None),
    ):
        said = run(environment, "clusters", "set", "harbor", *words)
        assert said.exit_code == 0
        cluster = environment.registry.get("harbor")
        assert cluster is not None
        assert cluster.agent == heard


def test_an_agent_that_no_service_names_so_is_refused():
    environment, _ = an_environment()
    said = run(environment, "clusters", "set", "harbor", "--agent", "shop of acme")
    assert said.exit_code == 2
    assert "a-d12436e2cf24b1d86001dfd9" in said.stderr
