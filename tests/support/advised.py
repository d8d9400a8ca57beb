"""A cluster that the service has analysed, in memory: `harbor`, where the pod on node a fits on b."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.adapters.signers import LocalSigner, is_signed
from plimsoll_service.domain.analysis.prices import PriceTable
from plimsoll_service.domain.snapshots.arrivals import Newest
from plimsoll_service.domain.snapshots.rollups import Span
from plimsoll_service.services import decisions, instructions
from plimsoll_service.services.history import NEWEST
from plimsoll_service.services.kept_advice import read_recommendations
from plimsoll_service.services.recommendations import Advised, advise
from plimsoll_service.wire.advice import Recommendation
from plimsoll_service.wire.instructions import Instruction, Outcome, Result, verify
from plimsoll_service.wire.snapshot import Snapshot, encode
from plimsoll_simulation.fake_aws.service_stores import MemoryTenantData
from tests.support.enrolled import person_of
from tests.support.snapshots import (
    GIB,
    NOW,
    amounts,
    wire_node,
    wire_pods,
    wire_snapshot,
    wire_workload,
)

OLD = NOW - timedelta(days=2)


def prices(_region: str | None) -> PriceTable:
    """Return those that are shipped."""
    return price_table()


SIGNER = LocalSigner.of("rig", bytes(range(32)))


@dataclass(frozen=True)
class Pinned:
    """A public key, as an executor pins it."""

    public: bytes

    def verify(self, signature: bytes, message: bytes) -> bool:
        return is_signed(self.public, signature, message)


@dataclass
class AdvisedCluster:
    """The service with one cluster in memory. Each push and each run is a minute after the last."""

    time: datetime = NOW
    sequence: int = 0
    data: MemoryTenantData = field(init=False)

    def __post_init__(self) -> None:
        self.data = MemoryTenantData(self)

    def now(self) -> datetime:
        return self.time

    def push(self, seen: Snapshot) -> None:
        self.sequence += 1
        seen = replace(seen, sequence=self.sequence, taken_at=self.time)
        self.data.put_snapshot("harbor", seen.epoch, seen.sequence, encode(seen))
        said = Newest(
            epoch=seen.epoch,
            sequence=seen.sequence,
            base=0,
            taken_at=self.time,
            received_at=self.time,
        )
        known = self.data.get("harbor", NEWEST)
        body = msgspec.json.encode(said)
        version, expires = known.version if known else 0, self.time + Span.DAY.kept
        self.data.put("harbor", NEWEST, body, version=version, expires=expires)

    def advise(
        self, seen: Snapshot | None = None, *, minutes: int = 1, signed: bool = True
    ) -> Advised:
        self.time += timedelta(minutes=minutes)
        if seen is not None:
            self.push(seen)
        signer = SIGNER if signed else None
        found = advise(self.data, "harbor", prices=prices, signer=signer, now=self.time)
        assert found is not None
        return found

    def all(self) -> dict[str, Recommendation]:
        """Return the recommendations by kind and name, as in `consolidate-node a`."""
        kept, _ = read_recommendations(self.data, "harbor")
        return {f"{each.kind} {each.about.name}": each for each in kept.recommendations}

    def accept(self, name: str, who: str = "ada") -> Recommendation:
        """Accept a recommendation as it is now."""
        found = self.all()[name]
        by = person_of(who, now=self.time)
        return decisions.accept(
            self.data, "harbor", found.id, by=by, seen=found.version, now=self.time
        )

    def waiting(self) -> list[Instruction]:
        """Return what the executor of the cluster would be given."""
        pinned = {SIGNER.key_id: Pinned(SIGNER.public_key())}
        found = instructions.pending(self.data, "harbor").instructions
        return [verify(each, pinned) for each in found]

    def report(self, outcome: Outcome) -> None:
        (told,) = self.waiting()
        result = Result(id=told.id, number=told.number, outcome=outcome, reason="so", at=self.time)
        instructions.report(self.data, "harbor", [result], self.time)


def harbor(**changes: Any) -> Snapshot:
    """Return a cluster in which the pod on a fits on b; odd takes none, and has no price."""
    web = wire_workload("web", max_unavailable=1, requests=amounts(100, GIB // 4))
    cart = wire_workload("cart", max_unavailable=1)
    facts: dict[str, Any] = {
        "cluster_id": "harbor",
        "nodes": (
            wire_node("a", created_at=OLD),
            wire_node("b", created_at=OLD),
            replace(wire_node("odd", allocatable=amounts(), created_at=OLD), labels={}),
        ),
        "workloads": (web, cart),
        "pods": (*wire_pods(web, "a"), *wire_pods(cart, "b")),
        "usage": (),
    }
    return wire_snapshot(**facts | changes)


def without_a() -> Snapshot:
    """Return the same cluster once node a is gone."""
    seen = harbor()
    moved = tuple(replace(pod, node="b") for pod in seen.pods)
    return replace(seen, nodes=seen.nodes[1:], pods=moved)
