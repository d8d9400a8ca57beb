"""Instructions that were signed: kept with what became of them, and checked offline."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.domain.errors import NotFound
from plimsoll_agent.identity import PinnedKey
from plimsoll_service.adapters.signers import LocalSigner
from plimsoll_service.services.instructions import (
    LOG,
    LOG_FILTERS,
    instruction_rows,
    report,
    signed_instruction,
)
from plimsoll_service.services.paging import page_request
from plimsoll_service.wire.documents import decode, encode
from plimsoll_service.wire.instruction_log import InstructionRows, SignedRow, faults
from plimsoll_service.wire.instructions import Instruction, Result, sign, succeed
from tests.support.advised import SIGNER, AdvisedCluster, harbor

NODE = "consolidate-node a"
NEXT = LocalSigner.of("second", bytes(range(1, 33)))
PINNED = {SIGNER.key_id: PinnedKey(SIGNER.public_key())}


@pytest.fixture
def cluster() -> AdvisedCluster:
    """A cluster with one instruction that waits."""
    made = AdvisedCluster()
    made.advise(harbor())
    made.accept(NODE)
    made.advise(harbor())
    return made


def page(cluster: AdvisedCluster, **query: str) -> InstructionRows:
    asked = page_request(query, prefix=LOG, filters=LOG_FILTERS)
    return instruction_rows(cluster.data, "harbor", asked, cluster.time)


def row(cluster: AdvisedCluster) -> SignedRow:
    """Return the only instruction as it lies in a file."""
    (found,) = page(cluster).items
    told = signed_instruction(cluster.data, "harbor", str(found.number), cluster.time)
    return decode(encode(told), SignedRow)


def test_an_instruction_is_listed_with_what_was_signed(cluster):
    (found,) = page(cluster).items
    (waiting,) = cluster.waiting()
    assert (found.number, found.id) == (waiting.number, cluster.all()[NODE].id)
    assert (found.kind, found.target) == ("consolidate-node", "a")
    assert found.expires_at - found.issued_at == timedelta(minutes=30)
    assert (found.key_id, len(found.digest), found.outcome) == ("rig", 64, "waiting")


def test_its_result_does_not_take_it_away(cluster):
    cluster.report("refused")
    for _ in range(2):
        cluster.advise(harbor(), minutes=45 * 24 * 60)
        found = row(cluster)
        assert (found.outcome, found.reason) == ("refused", "so")
        assert list(faults(found, PINNED, PinnedKey)) == []


def test_what_its_executor_never_answered_says_so(cluster):
    cluster.time += timedelta(minutes=31)
    assert [each.outcome for each in page(cluster).items] == ["unanswered"]
    assert page(cluster, outcome="done").items == ()


def test_a_result_ninety_days_late_counts_for_nothing(cluster):
    (told,) = cluster.waiting()
    cluster.time += timedelta(days=91)
    late = Result(id=told.id, number=told.number, outcome="done", reason="", at=cluster.time)
    report(cluster.data, "harbor", [late], cluster.time)
    assert row(cluster).outcome == "unanswered"


def test_many_instructions_are_read_by_pages_newest_first(cluster):
    for _ in range(4):
        cluster.report("refused")
        cluster.advise(harbor())
        cluster.advise(harbor(), minutes=61)
        cluster.accept(NODE)
        cluster.advise(harbor())
    seen: list[int] = []
    after: dict[str, str] = {}
    while True:
        found = page(cluster, limit="2", **after)
        seen += [each.number for each in found.items]
        if found.next is None:
            break
        after = {"after": found.next}
    assert len(seen) == 5
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("number", ["0", "1", "x", "9" * 17, "-1", "\u0661"])
def test_what_was_never_signed_is_not_found(cluster, number):
    with pytest.raises(NotFound):
        signed_instruction(cluster.data, "harbor", number, cluster.time)


def forged(found: SignedRow, **changes: Any) -> SignedRow:
    """Return a row whose signed bytes say something else."""
    said = replace(decode(found.signed.payload, Instruction), **changes)
    return replace(found, signed=replace(found.signed, payload=encode(said)))


def test_what_is_wrong_with_an_instruction_is_said(cluster):
    found = row(cluster)
    assert list(faults(found, PINNED, PinnedKey)) == []
    other = {"rig": PinnedKey(NEXT.public_key())}
    assert next(faults(found, other, PinnedKey)).startswith("the signature is not by the key 'rig'")
    assert list(faults(found, {"x": PINNED["rig"]}, PinnedKey)) == [
        "the key 'rig' is not pinned; given are x"
    ]
    digest, signature = faults(forged(found, number=7), PINNED, PinnedKey)
    assert digest.startswith("the digest is of other bytes")
    assert signature.startswith("the signature is not by the key 'rig'")
    assert list(faults(replace(found, target="b", number=7), PINNED, PinnedKey)) == [
        f"number is 7, and {found.number} was signed",
        "target is b, and a was signed",
    ]


def test_a_key_that_a_pinned_one_signed_as_its_successor_is_known(cluster):
    found = row(cluster)
    successor = succeed(SIGNER, NEXT.key_id, NEXT.public_key())
    instruction = decode(found.signed.payload, Instruction)
    signed = sign(instruction, LocalSigner(NEXT.key_id, NEXT._key, successor))
    rotated = replace(found, key_id="second", signed=signed)
    assert list(faults(rotated, PINNED, PinnedKey)) == []
    unsigned = replace(successor, signature=bytes(64))
    broken = replace(rotated, signed=replace(signed, successor=unsigned))
    assert list(faults(broken, PINNED, PinnedKey)) == [
        "the key 'second' is not pinned; given are rig"
    ]
