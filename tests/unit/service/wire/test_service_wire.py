"""What agent and service tell one another: bounded, typed, and signed where it acts."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll_service.wire import documents, instructions, snapshot
from plimsoll_service.wire.documents import Malformed, Unwritable
from plimsoll_service.wire.gpu import MOST_SAMPLES, GpuSample
from plimsoll_service.wire.instructions import (
    Instruction,
    Plan,
    Preconditions,
    SignedInstruction,
    Successor,
    Target,
    Untrusted,
)
from plimsoll_service.wire.snapshot import Snapshot, Usage
from tests.support.snapshots import NOW, wire_node, wire_pods, wire_snapshot, wire_workload


def test_a_snapshot_travels_as_it_is():
    sent = wire_snapshot()
    assert snapshot.decode(snapshot.encode(sent)) == sent


def test_equal_snapshots_travel_as_equal_bytes():
    assert snapshot.encode(wire_snapshot()) == snapshot.encode(wire_snapshot())


def test_what_an_older_agent_tells_is_read_and_nothing_is_known_of_its_containers():
    document = json.loads(documents.encode(wire_snapshot()))
    document["usage"] = [usage[:3] for usage in document["usage"]]
    for workload in document["workloads"]:
        workload["containers"] = ["main"]
        del workload["template"], workload["limit_ranges"]
    found = snapshot.parse(json.dumps(document).encode())
    assert [(w.template, w.limit_ranges) for w in found.workloads] == [((), None)]
    assert [each.containers for each in found.usage] == [()]
    assert [pod.restarted for pod in found.pods] == [(), ()]


def a_gpu(pod: str = "", **changes: Any) -> GpuSample:
    return GpuSample(**{"node": "a", "gpu": "GPU-1", "model": "H200", "pod": pod} | changes)


def test_gpus_travel_whole_in_a_delta_and_an_older_agent_tells_of_none():
    first = wire_snapshot(gpus=(a_gpu(), a_gpu("p1", duty=1)), gpus_left_out=2)
    second = replace(first, sequence=2, gpus=(a_gpu("p2", duty=3),), gpus_left_out=0)
    sent = snapshot.decode(snapshot.encode(snapshot.delta(first, second)))
    base = snapshot.decode_objects(snapshot.encode(first))
    assert _sorted(snapshot.apply(base, sent)) == _sorted(second)
    older = snapshot.decode(snapshot.encode(wire_snapshot()))
    assert (older.gpus, older.gpus_left_out, older.pods[0].gpus) == ((), 0, {})


def test_a_gpu_that_is_told_twice_of_one_pod_is_refused_by_its_place():
    twice = wire_snapshot(gpus=(a_gpu("p1", duty=1), a_gpu("p1", duty=2)))
    with pytest.raises(Malformed, match=r"`\$\.gpus`"):
        snapshot.parse(msgspec.json.encode(twice))
    with pytest.raises(Unwritable, match=r"`\$\.gpus`"):
        snapshot.encode(twice)
    instances = wire_snapshot(gpus=(a_gpu("p1"), a_gpu("p1", instance="1g.10gb", instance_id="7")))
    assert snapshot.decode(snapshot.encode(instances)) == instances


def test_more_gpus_than_a_snapshot_holds_are_refused():
    many = tuple(a_gpu(gpu=f"GPU-{n}") for n in range(MOST_SAMPLES + 1))
    with pytest.raises(Unwritable, match=r"`\$\.gpus`"):
        snapshot.encode(wire_snapshot(gpus=many))
    assert len(snapshot.encode(wire_snapshot(gpus=many[:MOST_SAMPLES]))) < 2**20


def test_what_a_newer_agent_adds_is_dropped():
    document = json.loads(documents.encode(wire_snapshot())) | {"env": {"PASSWORD": "1"}}
    found = snapshot.parse(json.dumps(document).encode())
    assert found == wire_snapshot()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"version": 2}, "$.version"),
        ({"sequence": 0}, "$.sequence"),
        ({"base": 1}, "$.base"),
        ({"taken_at": "2026-11-22T12:00:00"}, "$.taken_at"),
        ({"nodes": [{}]}, "$.nodes[0]"),
        ({"nodes": None}, "$.nodes"),
        ({"cluster_id": ""}, "$.cluster_id"),
        ({"cluster_id": "x" * 257}, "$.cluster_id"),
        ({"usage": [["a", -1, 0]]}, "$.usage[0][1]"),
        ({"usage": [["a", 1.5, 0]]}, "$.usage[0][1]"),
        ({"usage": [["a", 2**53 + 1, 0]]}, "$.usage[0][1]"),
        ({"usage": [["a", 1, 1], ["a", 1, 1]]}, "$.usage"),
        ({"usage": [["a", 1, 1, [["main", -1, 0]]]]}, "$.usage[0][3][0][1]"),
        ({"usage": [["a", 1, 1, [["main", 1, 0]] * 21]]}, "$.usage[0][3]"),
        ({"deleted": [["pods", "a"]]}, "$.deleted"),
        ({"pods": [{}] * 30_001}, "$.pods"),
    ],
)
def test_what_is_no_snapshot_is_refused_by_its_place(change, named):
    document = json.loads(documents.encode(wire_snapshot())) | change
    with pytest.raises(Malformed, match=named.replace("$", r"\$").replace("[", r"\[")):
        snapshot.parse(json.dumps(document).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        gzip.compress(b"{}")[:-1],
        gzip.compress(b"{}") + b"more",
        gzip.compress(b"[" * 200_000),
        gzip.compress(b'{"version":\xff}'),
        gzip.compress(b"0" * (documents.MOST_BYTES + 1)),
    ],
    ids=["empty", "plain", "cut-off", "trailing", "deep", "no-utf-8", "bomb"],
)
def test_broken_bodies_are_refused(body):
    with pytest.raises(Malformed):
        snapshot.decode(body)


objects = st.builds(
    lambda counts: tuple(
        pod
        for name, count in counts.items()
        for pod in wire_pods(wire_workload(name), *(["a"] * count))
    ),
    st.dictionaries(st.sampled_from(["web", "cart", "mail"]), st.integers(0, 3)),
)


@given(before=objects, middle=objects, after=objects, cpu=st.integers(0, 9))
def test_the_newest_delta_and_its_base_are_the_whole_truth(before, middle, after, cpu):
    base = wire_snapshot(pods=before)
    lost = wire_snapshot(sequence=2, pods=middle)
    now = wire_snapshot(
        sequence=3, pods=after, usage=(Usage(uid="uid-web-0", cpu_m=cpu, memory=0),)
    )
    assert snapshot.delta(base, lost).base == snapshot.delta(base, now).base
    sent = snapshot.decode(snapshot.encode(snapshot.delta(base, now)))
    assert _sorted(snapshot.apply(base, sent)) == _sorted(now)


def _sorted(whole: Snapshot) -> Snapshot:
    return replace(whole, pods=tuple(sorted(whole.pods, key=lambda pod: pod.uid)))


def test_a_delta_holds_only_what_differs():
    base = wire_snapshot()
    cordoned = wire_node("b", unschedulable=True)
    found = snapshot.delta(base, wire_snapshot(sequence=2, nodes=(wire_node("a"), cordoned)))
    assert (found.nodes, found.pods, found.workloads) == ((cordoned,), (), ())


@pytest.mark.parametrize("wrong", [{"sequence": 2}, {"epoch": "another"}, {"cluster_id": "pier"}])
def test_a_delta_is_not_applied_to_another_base(wrong):
    base = wire_snapshot()
    change = snapshot.delta(base, wire_snapshot(sequence=3))
    with pytest.raises(Malformed, match="base"):
        snapshot.apply(replace(base, **wrong), change)


@dataclass(frozen=True)
class Key:
    """An Ed25519 key, as signer and as what is pinned."""

    private: Ed25519PrivateKey
    key_id: str = "first"
    successor: Successor | None = None

    @classmethod
    def number(cls, number: int, key_id: str = "first") -> Key:
        return cls(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32), key_id)

    def sign(self, message: bytes) -> bytes:
        return self.private.sign(message)

    def verify(self, signature: bytes, message: bytes) -> bool:
        public: Ed25519PublicKey = self.private.public_key()
        try:
            public.verify(signature, message)
        except InvalidSignature:
            return False
        return True


OURS = Key.number(1)
PINNED = {OURS.key_id: OURS}


def an_instruction(**changes) -> Instruction:
    return replace(
        Instruction(
            id="r-1",
            cluster_id="harbor",
            number=7,
            issued_at=NOW,
            expires_at=NOW + timedelta(minutes=30),
            kind="consolidate-node",
            target=Target(name="a", uid="uid-a"),
            preconditions=Preconditions(most_pods=3),
            plan=Plan(reason="its pods fit on b"),
        ),
        **changes,
    )


def test_a_signed_instruction_is_read_as_it_was_written():
    signed = instructions.sign(an_instruction(), OURS)
    sent = documents.decode(documents.encode(signed), SignedInstruction)
    assert instructions.verify(sent, PINNED) == an_instruction()


def test_an_instruction_that_was_changed_on_its_way_is_not_trusted():
    signed = instructions.sign(an_instruction(), OURS)
    payload = signed.payload.replace(b'"uid-a"', b'"uid-b"')
    with pytest.raises(Untrusted):
        instructions.verify(replace(signed, payload=payload), PINNED)


@pytest.mark.parametrize("thief", [Key.number(2), Key.number(2, "second")])
def test_an_instruction_by_another_key_is_not_trusted(thief):
    with pytest.raises(Untrusted):
        instructions.verify(instructions.sign(an_instruction(), thief), PINNED)


def test_a_signature_over_the_payload_for_another_purpose_is_not_trusted():
    payload = documents.encode(an_instruction())
    signed = SignedInstruction(payload=payload, key_id="first", signature=OURS.sign(payload))
    with pytest.raises(Untrusted):
        instructions.verify(signed, PINNED)


@pytest.mark.parametrize("life", [timedelta(0), timedelta(hours=-1), timedelta(hours=2)])
def test_an_instruction_lives_an_hour_at_most(life):
    signed = instructions.sign(an_instruction(expires_at=NOW + life), OURS)
    with pytest.raises(Malformed, match="expires_at"):
        instructions.verify(signed, PINNED)


def test_what_is_signed_is_short_enough_for_kms():
    assert len(instructions.message_of(b"x" * 1_000_000)) < 4096
