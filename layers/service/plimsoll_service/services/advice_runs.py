"""Requests for advice: who answers them, one run of a cluster at a time, and the schedule that sends them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from plimsoll.domain.errors import Conflict, Temporary
from plimsoll_service.domain.advice import AdviceRequest, LastAdvice
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.cluster_rows import SILENCE
from plimsoll_service.services.history import ADVISED, last_advice, newest_said
from plimsoll_service.services.kept_advice import ATTEMPTS
from plimsoll_service.services.ports import AdviceQueue, Clock, Members, TenantData, Tenants
from plimsoll_service.services.recommendations import Advised, Prices, advise
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.instructions import Signer

TIME: Final = timedelta(seconds=70)
"""For the analysis, of the 120 s of the function; the prices of a region are read in it, and what follows is written."""
NEVER: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Before all requests: no run has ended yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceService:
    """Answers requests for advice."""

    tenants: Tenants
    prices: Prices
    signer: Callable[[], Signer]
    clock: Clock

    def answer(self, request: AdviceRequest) -> Advised | None:
        """Advise a cluster; None: a run after the request did, one is at work, or no snapshot of it is there.

        One run of a cluster is at work at a time, and one that was killed holds up the next ones for longer each
        time: else each snapshot of a cluster that takes too long would occupy a worker. A request that comes
        meanwhile is answered by the next one of the schedule.

        Two runs at once are safe all the same: each document is written over the version that was read, so that
        only one of them issues an instruction.

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
        said = newest_said(self.tenants.of(request.tenant), request.cluster)
        return said is None or self.clock.now() - said.received_at > SILENCE

    def _answer(self, data: TenantData, request: AdviceRequest) -> Advised | None:
        last, version = last_advice(data, request.cluster)
        if last is not None and last.answers(request):
            return None
        now = self.clock.now()
        last = last or LastAdvice(at=NEVER, configuration="")
        rest = last.rests_until()
        if rest is not None and now < rest:
            return None
        if newest_said(data, request.cluster) is None:
            return None
        expires = now + Span.DAY.kept
        # Before anything is read: a run that is killed writes nothing later.
        begun = data.put(
            request.cluster, ADVISED, encode(last.begun(now)), version=version, expires=expires
        )
        ended = last
        try:
            advised = advise(
                data,
                request.cluster,
                prices=self.prices,
                signer=self.signer(),
                now=now,
                out_of_time=lambda: self.clock.now() - now > TIME,
            )
            if advised is None:
                return None
            ended = LastAdvice(at=now, configuration=advised.configuration)
            return dataclasses.replace(advised, killed=last.unfinished)
        finally:  # after an error, too: the next attempt need not wait
            data.put(
                request.cluster, ADVISED, encode(ended), version=begun.version, expires=expires
            )


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
