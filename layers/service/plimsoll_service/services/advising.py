"""Advice about one cluster for each request, and the schedule that asks for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from plimsoll.domain.errors import Conflict, Temporary
from plimsoll_service.domain.advice import AdviceRequest, LastAdvice
from plimsoll_service.services.history import ADVISED, last_advice
from plimsoll_service.services.ports import AdviceQueue, Clock, Members, TenantData, Tenants
from plimsoll_service.services.recommendations import Advised, Prices, advise
from plimsoll_service.wire.instructions import Signer

ATTEMPTS: Final = 3


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
