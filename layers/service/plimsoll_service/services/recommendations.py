"""Advice about a cluster: analysed, kept, accepted, and made into instructions.

The document `savings` holds the newest advice, and `recommendation#ID` a recommendation. Accepting
one is a word in that document. Only `advise` signs, with a key that no other function may use: the API,
which anybody can reach, cannot make an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from plimsoll.domain.errors import Conflict, NotFound, Temporary
from plimsoll_service.domain.advice import (
    AdviceRequest,
    LastAdvice,
    accepted,
    awaits_instruction,
    configuration_of,
    instruction_for,
    lapsed,
    merged,
    refused,
    resolved,
)
from plimsoll_service.domain.analysis import HISTORY, YOUNGEST, Analysis, PriceTable, View, analyse
from plimsoll_service.services.history import ADVISED, last_advice, last_heard, newest, usage
from plimsoll_service.services.instructions import post, result_of
from plimsoll_service.services.ports import (
    AdviceQueue,
    Clock,
    Document,
    Members,
    TenantData,
    Tenants,
)
from plimsoll_service.wire.advice import Recommendation
from plimsoll_service.wire.documents import decode, encode
from plimsoll_service.wire.instructions import Signer, sign

type Prices = Callable[[str | None], PriceTable]
"""Returns the prices of a region."""

SAVINGS: Final = "savings"
NUMBER: Final = "instruction-number"
"""The document whose version is the number of the last instruction to a cluster."""
FRESH: Final = timedelta(minutes=10)
"""From an older snapshot no instruction is made."""
SILENCE: Final = timedelta(minutes=10)
"""For how long an agent, which sends a snapshot each minute, may send none."""
KEPT: Final = timedelta(days=90)
"""How long a recommendation that is not advised any more is kept."""
ATTEMPTS: Final = 3
"""How often a run begins anew after others wrote about its cluster."""
_PREFIX: Final = "recommendation#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """What a run did."""

    found: int
    """Recommendations that the analysis made."""
    changed: int
    """Those that are new, or changed."""
    configuration: str
    """Of the snapshot that it is made of; empty where an accepted one waits for a later snapshot."""
    instructions: tuple[int, ...] = ()
    """Numbers of the instructions that were issued."""
    lost: tuple[str, ...] = ()
    """Ids of recommendations that somebody else wrote meanwhile: the next run sees to them."""


def advise(
    data: TenantData, cluster: str, *, prices: Prices, signer: Signer | None, now: datetime
) -> Advised | None:
    """Analyse a cluster, keep what was found, and issue instructions for what was accepted.

    Args:
        data: of its tenant.
        cluster: its id.
        prices: of the region that the nodes are in.
        signer: signs instructions; None: none are issued.
        now: the time.

    Returns:
        What was done, or None: no snapshot of the cluster is there.
    """
    known = newest(data, cluster)
    if known is None:
        return None
    view = View(seen=known.snapshot)
    analysis = analyse(
        view,
        prices(view.region),
        week=usage(data, cluster, now - HISTORY, now),
        earlier=usage(data, cluster, now - HISTORY, now - YOUNGEST),
    )
    before, body = data.get(cluster, SAVINGS), encode(analysis.advice)
    if before is None or before.body != body:
        data.put(cluster, SAVINGS, body, version=before.version if before else 0)
    run = _Run(data, cluster)
    run.keep(lapsed(_resolved(data, cluster, each, now), now) for each in list(run.kept.values()))
    run.keep(list(merged(run.kept, analysis.recommendations, view)))
    issued = []
    is_fresh = now - view.at <= FRESH
    waiting = [each for each in run.kept.values() if awaits_instruction(each)]
    if signer is not None and is_fresh:
        for each in waiting:
            issued += run.issue(each, analysis, view, signer=signer, now=now)
    return Advised(
        found=len(analysis.recommendations),
        changed=len(run.changed),
        configuration="" if waiting and not is_fresh else configuration_of(known.snapshot),
        instructions=tuple(issued),
        lost=tuple(run.lost),
    )


def accept(data: TenantData, cluster: str, id_: str, by: str, now: datetime) -> Recommendation:
    """Accept a recommendation, and return it. Again is once.

    Raises:
        NotFound: there is none of that id.
        Refused: it is not open.
        Conflict: it was written meanwhile: try again.
    """
    found = data.get(cluster, _PREFIX + id_)
    if found is None:
        raise NotFound(f"there is no recommendation {id_[:64]!r}")
    before = decode(found.body, Recommendation)
    after = accepted(before, now)
    if after != before:
        after = replace(after, note=f"accepted by {by[:256]}")
        data.put(cluster, found.key, encode(after), version=found.version)
    return after


def recommendations(data: TenantData, cluster: str) -> tuple[Recommendation, ...]:
    """Return the recommendations of a cluster, the one that saves most first."""
    found = [decode(document.body, Recommendation) for document in _documents(data, cluster)]
    return tuple(sorted(found, key=lambda each: (-each.monthly, each.id)))


def _documents(data: TenantData, cluster: str) -> list[Document]:
    return list(data.list(cluster, _PREFIX, _PREFIX + "~", limit=10_000))


def _resolved(
    data: TenantData, cluster: str, each: Recommendation, now: datetime
) -> Recommendation:
    if each.state != "accepted" or not each.instruction:
        return each
    result = result_of(data, cluster, each.instruction)
    return each if result is None else resolved(each, result, now)


class _Run:
    """The recommendations of a cluster during one run, each over the version that was read."""

    def __init__(self, data: TenantData, cluster: str) -> None:
        self._data = data
        self._cluster = cluster
        self._documents: dict[str, Document] = {}
        self.kept: dict[str, Recommendation] = {}
        self.changed: set[str] = set()
        self.lost: list[str] = []
        for document in _documents(data, cluster):
            each = decode(document.body, Recommendation)
            self.kept[each.id] = each
            self._documents[each.id] = document

    def keep(self, each_after: Iterable[Recommendation]) -> None:
        """Write those that differ from what is kept."""
        for after in each_after:
            if after != self.kept.get(after.id):
                self._write(after)

    def issue(
        self,
        each: Recommendation,
        analysis: Analysis,
        view: View,
        *,
        signer: Signer,
        now: datetime,
    ) -> list[int]:
        """Make an instruction of an accepted recommendation, if the cluster still allows it.

        The number is written down first: a run that dies between leaves no instruction that nobody knows
        of, and the recommendation is refused once its time is over.
        """
        nodes = {found.node.uid: found for found in analysis.consolidations.found}
        found = nodes.get(each.about.uid)
        if found is None:
            why = analysis.consolidations.kept.get(each.about.name, "the node is gone")
            self._write(refused(each, why, now))
            return []
        number = self._next_number()
        if not self._write(replace(each, instruction=number, changed_at=now)):
            return []
        instruction = instruction_for(each, found, view, number, now)
        signed = sign(instruction, signer)
        post(self._data, self._cluster, number, signed, instruction.expires_at)
        return [number]

    def _next_number(self) -> int:
        last = self._data.get(self._cluster, NUMBER)
        made = self._data.put(self._cluster, NUMBER, b"{}", version=last.version if last else 0)
        return made.version

    def _write(self, after: Recommendation) -> bool:
        before = self._documents.get(after.id)
        over = after.state in {"withdrawn", "refused"}
        try:
            self._documents[after.id] = self._data.put(
                self._cluster,
                _PREFIX + after.id,
                encode(after),
                version=before.version if before else 0,
                expires=after.changed_at + KEPT if over else None,
            )
        except Conflict:
            self.lost.append(after.id)
            self.kept.pop(after.id, None)
            return False
        self.kept[after.id] = after
        self.changed.add(after.id)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceService:
    """Answers requests for advice."""

    tenants: Tenants
    prices: Prices
    signer: Callable[[], Signer]
    clock: Clock

    def answer(self, request: AdviceRequest) -> Advised | None:
        """Advise a cluster; None: a run after the request did, or no snapshot of the cluster is there.

        Two runs at once are safe: each document is written over the version that was read, so that only
        one of them issues an instruction.

        Raises:
            Temporary: others wrote about the cluster meanwhile, again and again.
        """
        data = self.tenants.of(request.tenant)
        for _ in range(ATTEMPTS):
            try:
                return self._answer(data, request)
            except Conflict:
                continue
        raise Temporary(f"others wrote about {request.cluster} {ATTEMPTS} times meanwhile")

    def is_silent(self, request: AdviceRequest) -> bool:
        """Whether the agent of a cluster has sent no snapshot for long, or never."""
        heard = last_heard(self.tenants.of(request.tenant), request.cluster)
        return heard is None or self.clock.now() - heard > SILENCE

    def _answer(self, data: TenantData, request: AdviceRequest) -> Advised | None:
        last, version = last_advice(data, request.cluster)
        if last is not None and last.answers(request):
            return None
        now = self.clock.now()
        advised = advise(data, request.cluster, prices=self.prices, signer=self.signer(), now=now)
        if advised is not None:
            made = LastAdvice(at=now, configuration=advised.configuration)
            data.put(request.cluster, ADVISED, msgspec.json.encode(made), version=version)
        return advised


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceSchedule:
    """Asks for advice about each enrolled cluster."""

    members: Members
    queue: AdviceQueue
    clock: Clock

    def run(self) -> int:
        """Send a request for each cluster; return how many."""
        now = self.clock.now()
        agents = self.members.agents()
        self.queue.send([AdviceRequest(tenant=a.tenant, cluster=a.subject, at=now) for a in agents])
        return len(agents)
