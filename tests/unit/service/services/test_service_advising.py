"""Requests for advice: answered once, however often and however late they come."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.domain.errors import Conflict, Temporary
from plimsoll_service.domain.advice.advice_requests import (
    LONGEST_RUN,
    AdviceRequest,
    configuration_of,
)
from plimsoll_service.domain.analysis import PriceTable
from plimsoll_service.services.advice_runs import TIME, AdviceSchedule, AdviceService
from plimsoll_service.services.history import last_advice
from plimsoll_service.services.kept_advice import SAVINGS
from plimsoll_service.services.recommendations import FRESH
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.advice import Advice
from plimsoll_service.wire.documents import decode
from plimsoll_simulation.fake_aws.service_stores import (
    MemoryAdviceQueue,
    MemoryMembers,
    MemoryTenantData,
)
from tests.support.advised import SIGNER, AdvisedCluster, harbor, prices, without_a
from tests.support.enrolled import Key, admitted, invitation
from tests.support.snapshots import NOW, amounts, wire_node

SECOND = timedelta(seconds=1)


@dataclass
class OneTenant:
    """The data of a tenant, as one of two functions sees it that work at once."""

    data: Any

    def of(self, _tenant: str) -> Any:
        return self.data


@dataclass
class Overtaken:
    """Data of which somebody else writes a document just before we do, so many times."""

    data: MemoryTenantData
    happens: Any
    key: str
    times: int = 1

    def put(self, cluster: str, key: str, body: bytes, **more: Any) -> Any:
        if key.startswith(self.key) and self.times:
            self.times -= 1
            self.happens()
        return self.data.put(cluster, key, body, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.data, name)


@dataclass
class Advised:
    cluster: AdvisedCluster = field(default_factory=AdvisedCluster)

    def __post_init__(self) -> None:
        self.cluster.push(harbor())

    def service(self, data: Any = None) -> AdviceService:
        return AdviceService(
            tenants=OneTenant(data or self.cluster.data),
            prices=prices,
            signer=lambda: SIGNER,
            clock=self.cluster,
        )

    def request(self, after: timedelta = timedelta()) -> AdviceRequest:
        return AdviceRequest(tenant="acme", cluster="harbor", at=self.cluster.time + after)


def test_of_a_burst_of_requests_the_first_answers_the_others():
    advised = Advised()
    burst = [advised.request(n * SECOND) for n in (0, 0, 1, 2)]
    advised.cluster.time += 4 * SECOND  # they waited in the queue
    assert [advised.service().answer(each) is not None for each in burst] == [
        True,
        False,
        False,
        False,
    ]


def test_a_request_is_answered_that_was_made_while_the_last_run_read():
    advised = Advised()
    assert advised.service().answer(advised.request())
    assert advised.service().answer(advised.request())


def test_without_a_snapshot_there_is_no_advice_and_nothing_is_written():
    advised = Advised()
    quay = AdviceRequest(tenant="acme", cluster="quay", at=NOW)
    assert advised.service().answer(quay) is None
    assert last_advice(advised.cluster.data, "quay") == (None, 0)


def test_an_agent_is_silent_that_sent_nothing_for_ten_minutes_or_never():
    advised = Advised()
    advised.cluster.time += timedelta(minutes=10)
    assert not advised.service().is_silent(advised.request())
    advised.cluster.time += SECOND
    assert advised.service().is_silent(advised.request())
    advised.cluster.push(harbor())
    assert not advised.service().is_silent(advised.request())
    assert advised.service().is_silent(AdviceRequest(tenant="acme", cluster="quay", at=NOW))


@pytest.mark.parametrize("key", [SAVINGS, "recommendations", "last-number", "advised"])
def test_two_runs_at_once_issue_one_instruction(key):
    """Each of the documents is written by the other run just before ours writes it."""
    advised = Advised()
    advised.service().answer(advised.request())
    advised.cluster.accept("consolidate-node a")
    advised.cluster.time += 2 * SECOND
    advised.cluster.push(replace(harbor(), nodes=(*harbor().nodes, wire_node("new"))))

    def other() -> None:  # ours is taken for dead by then
        advised.cluster.time += LONGEST_RUN
        advised.service().answer(advised.request())

    advised.service(Overtaken(advised.cluster.data, other, key)).answer(advised.request())
    assert len(advised.cluster.waiting()) == 1
    assert (
        advised.cluster.all()["consolidate-node a"].instruction
        == advised.cluster.waiting()[0].number
    )


def test_a_cluster_of_which_others_write_without_end_comes_back_later():
    def conflict() -> None:
        raise Conflict("again")

    advised = Advised()
    contended = Overtaken(advised.cluster.data, conflict, "advised", times=99)
    with pytest.raises(Temporary):
        advised.service(contended).answer(advised.request())


def test_a_run_that_dies_anywhere_is_made_good_by_the_next():
    """Killed before each of its writes in turn, with an accepted recommendation in hand."""
    for writes in count():
        advised = Advised()
        advised.service().answer(advised.request())
        advised.cluster.accept("consolidate-node a")
        advised.cluster.time += 2 * SECOND
        left = writes

        class Dying(Overtaken):
            def put(self, *args: Any, **more: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
                return self.data.put(*args, **more)

        dying = Dying(advised.cluster.data, None, "")
        try:
            advised.service(dying).answer(advised.request())
        except KeyboardInterrupt:
            advised.cluster.time += LONGEST_RUN
            advised.service().answer(advised.request())
        else:
            assert writes > 3, "it dies between a number, its recommendation and its instruction"
            break
        assert len(advised.cluster.waiting()) <= 1
        advised.cluster.advise(harbor(), minutes=61)
        found = advised.cluster.all()["consolidate-node a"]
        assert found.state == "refused", "nobody carried it out, so it may be advised anew"


def killed(advised: Advised) -> None:
    """Let a run be killed while it analyses."""

    def die(_region: str | None) -> Any:
        raise KeyboardInterrupt

    class Gone(Overtaken):
        """The data of a process that is no more: after the read of prices it writes nothing."""

        def put(self, cluster: str, key: str, body: bytes, **more: Any) -> Any:
            if self.times:
                self.times -= 1
                return self.data.put(cluster, key, body, **more)
            raise KeyboardInterrupt

    gone = Gone(advised.cluster.data, None, "", times=1)
    with pytest.raises(KeyboardInterrupt):
        dataclasses.replace(advised.service(gone), prices=die).answer(advised.request())


def test_runs_that_are_killed_hold_up_the_next_one_for_longer_each_time_until_one_ends():
    advised = Advised()
    for pause in (LONGEST_RUN, 2 * LONGEST_RUN, 4 * LONGEST_RUN):
        killed(advised)
        advised.cluster.time += pause - SECOND
        assert advised.service().answer(advised.request()) is None
        advised.cluster.time += SECOND
    found = advised.service().answer(advised.request())
    assert found is not None
    assert found.killed == 3
    killed(advised)
    advised.cluster.time += LONGEST_RUN
    found = advised.service().answer(advised.request())
    assert found is not None
    assert found.killed == 1


def test_of_one_cluster_a_single_run_is_at_work():
    advised, others = Advised(), []

    def reading(region: str | None) -> PriceTable:
        others.append(advised.service().answer(advised.request()))
        return prices(region)

    service = dataclasses.replace(advised.service(), prices=reading)
    assert service.answer(advised.request()) is not None
    assert others == [None]


def test_a_run_that_fails_is_tried_again_at_once():
    advised = Advised()

    def away(_region: str | None) -> PriceTable:
        raise Temporary("the price list is away")

    with pytest.raises(Temporary):
        dataclasses.replace(advised.service(), prices=away).answer(advised.request())
    assert advised.service().answer(advised.request()) is not None


def test_what_a_run_has_no_time_for_stands_as_it_was_advised_before():
    advised = Advised()
    advised.service().answer(advised.request())
    before = advised.cluster.all()
    savings = advised.cluster.data.get("harbor", SAVINGS)
    assert savings is not None
    advised.cluster.accept("consolidate-node a")
    advised.cluster.time += 2 * SECOND
    advised.cluster.push(harbor())

    def slow(region: str | None) -> PriceTable:
        advised.cluster.time += TIME + SECOND
        return prices(region)

    found = dataclasses.replace(advised.service(), prices=slow).answer(advised.request())
    assert found is not None
    assert found.unreached == ("consolidate-node", "instance-mix")
    assert {name: each.state for name, each in advised.cluster.all().items()} == {
        name: "accepted" if name == "consolidate-node a" else each.state
        for name, each in before.items()
    }
    kept = stored(advised.cluster.data, "harbor", SAVINGS, Advice)[0]
    assert kept is not None
    told = decode(savings.body, Advice)
    assert (kept.unreached, kept.optimised) == (found.unreached, told.optimised)
    assert advised.cluster.waiting() == []
    advised.cluster.time += 2 * SECOND
    advised.service().answer(advised.request())
    assert len(advised.cluster.waiting()) == 1


def test_an_accepted_one_that_waits_for_a_fresh_snapshot_lets_the_next_ask_again():
    advised = Advised()
    advised.service().answer(advised.request())
    advised.cluster.accept("consolidate-node a")
    advised.cluster.time += FRESH + SECOND
    advised.service().answer(advised.request())
    last, _ = last_advice(advised.cluster.data, "harbor")
    assert last is not None
    assert not last.configuration
    advised.cluster.push(harbor())
    advised.service().answer(advised.request())
    last, _ = last_advice(advised.cluster.data, "harbor")
    assert last is not None
    assert last.configuration == configuration_of(harbor())
    assert len(advised.cluster.waiting()) == 1


@pytest.mark.parametrize(
    ("change", "asks"),
    [
        (without_a(), True),
        (
            replace(
                harbor(),
                nodes=(replace(harbor().nodes[0], unschedulable=True), *harbor().nodes[1:]),
            ),
            True,
        ),
        (
            replace(
                harbor(),
                workloads=(
                    replace(harbor().workloads[0], requests=amounts(7)),
                    harbor().workloads[1],
                ),
            ),
            True,
        ),
        (replace(harbor(), workloads=harbor().workloads[1:]), True),
        (
            replace(
                harbor(),
                workloads=(replace(harbor().workloads[0], replicas=9), harbor().workloads[1]),
            ),
            False,
        ),
        (replace(harbor(), pods=harbor().pods[1:]), False),
        (replace(harbor(), nodes=harbor().nodes[::-1]), False),
    ],
    ids=["node gone", "cordoned", "requests", "workload gone", "scaled", "pod gone", "other order"],
)
def test_only_what_cannot_wait_for_the_schedule_makes_another_configuration(change, asks):
    assert (configuration_of(change) != configuration_of(harbor())) is asks


def test_the_schedule_asks_for_each_cluster_by_a_message_of_its_own():
    members, queue = MemoryMembers(), MemoryAdviceQueue()
    agents = [
        admitted(members, Key(n), invitation(tenant, now=NOW))
        for n, tenant in ((1, "acme"), (2, "globex"))
    ]
    assert AdviceSchedule(members=members, queue=queue, clock=AdvisedCluster()).run() == 2
    assert {(r.tenant, r.cluster, r.at) for r in queue.sent} == {
        (a.tenant, a.subject, NOW) for a in agents
    }


def test_what_is_said_of_the_last_advice_expires():
    advised = Advised()
    advised.cluster.advise(harbor())
    assert advised.service().answer(advised.request()) is not None
    assert last_advice(advised.cluster.data, "harbor")[0] is not None
    advised.cluster.time += timedelta(days=401)
    assert list(advised.cluster.data.list("harbor", "", "~")) == []
