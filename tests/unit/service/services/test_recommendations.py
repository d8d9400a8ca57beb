"""From a snapshot to an instruction, and from its result to what it saved."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.domain.errors import Conflict, Refused
from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll_service.domain.advice.advice_requests import configuration_of
from plimsoll_service.services import instructions, recommendations
from plimsoll_service.services.history import LAST, newest
from plimsoll_service.services.kept_advice import RECOMMENDATIONS, SAVINGS, read_recommendations
from plimsoll_service.services.recommendations import MOST_RECOMMENDATIONS, Advised, advise
from plimsoll_service.wire.advice import Advice
from plimsoll_service.wire.documents import decode, encode
from plimsoll_service.wire.instructions import Result
from plimsoll_service.wire.snapshot import LoadBalancer, Volume
from tests.support.advised import OLD, SIGNER, AdvisedCluster, harbor, prices, without_a
from tests.support.snapshots import GIB, NOW, amounts, wire_pods, wire_workload


@pytest.fixture
def service() -> AdvisedCluster:
    made = AdvisedCluster()
    made.advise(harbor())
    return made


NODE = "consolidate-node a"


def test_without_a_snapshot_there_is_no_advice():
    found = advise(AdvisedCluster().data, "harbor", prices=prices, signer=SIGNER, now=NOW)
    assert found is None


def test_a_cluster_is_shown_today_and_as_it_could_be(service):
    document = service.data.get("harbor", SAVINGS)
    advice = decode(document.body, Advice)
    assert (advice.today.nodes, advice.today.spot, advice.today.vcpus) == (3, 0, 4)
    assert advice.today.monthly == pytest.approx(2 * 0.096 * 730)
    assert advice.optimised.monthly < advice.today.monthly
    assert "us-east-1, on-demand of 2026" in advice.prices
    assert advice.unpriced == ("without a type",)


def test_each_recommendation_says_what_it_saves_and_why(service):
    found = service.all()[NODE]
    assert (found.state, found.executable) == ("open", True)
    assert found.monthly == pytest.approx(0.096 * 730, abs=0.01)
    assert "its pods (1) fit on b" in found.reason


def test_the_same_advice_again_changes_nothing(service):
    before = service.all()
    again = service.advise(harbor())
    assert again == Advised(found=len(before), changed=0, configuration=configuration_of(harbor()))
    assert service.all() == before


def test_what_is_not_advised_any_more_is_withdrawn_and_may_come_again(service):
    service.advise(without_a())
    assert service.all()[NODE].state == "withdrawn"
    service.advise(harbor())
    assert service.all()[NODE].state == "open"


def test_nothing_is_asked_of_an_executor_that_nobody_accepted(service):
    assert service.waiting() == []


def test_an_accepted_recommendation_becomes_a_signed_instruction_once(service):
    service.accept(NODE)
    (number,) = service.advise(harbor()).instructions
    assert service.advise(harbor()).instructions == ()
    (told,) = service.waiting()
    assert (told.id, told.number, told.cluster_id) == (service.all()[NODE].id, number, "harbor")
    assert (told.target.name, told.target.uid) == ("a", "uid-a")
    assert told.preconditions.most_pods == 1
    assert [each.uid for each in told.preconditions.workloads] == ["uid-web"]
    assert told.preconditions.destinations == ("uid-b",)
    assert [each.verb for each in told.plan.actions] == ["cordon", "evict"]


def test_it_is_done_when_its_executor_says_so_and_saves_when_the_node_is_gone(service):
    service.accept(NODE)
    service.advise(harbor())
    service.report("done")
    empty = replace(harbor(), pods=without_a().pods)
    cordoned = (replace(empty.nodes[0], unschedulable=True), empty.nodes[1])
    service.advise(replace(empty, nodes=cordoned))
    assert service.all()[NODE].state == "done"
    service.advise(replace(empty, nodes=cordoned))
    assert service.all()[NODE].seen_at is None
    service.advise(without_a())
    gone_at = service.time
    service.advise(without_a())
    assert service.all()[NODE].seen_at == gone_at


def test_what_its_owner_takes_back_is_not_seen_any_more(service):
    volume = a_volume()
    service.advise(harbor(volumes=(volume,)))
    service.accept("orphan-volume pv-1")
    service.advise(harbor())
    assert service.all()["orphan-volume pv-1"].seen_at == service.time
    service.advise(harbor(volumes=(volume,)))
    assert service.all()["orphan-volume pv-1"].seen_at is None


def test_the_forecast_that_an_older_version_called_measured_is_forgotten(service):
    service.accept(NODE)
    service.advise(harbor())
    service.report("done")
    service.advise(without_a())
    kept, version = read_recommendations(service.data, "harbor")
    old = replace(
        kept, recommendations=tuple(replace(r, measured=r.monthly) for r in kept.recommendations)
    )
    expires = service.time + timedelta(days=1)
    service.data.put("harbor", RECOMMENDATIONS, encode(old), version=version, expires=expires)
    service.advise(without_a())
    assert service.all()[NODE].measured is None


def test_a_recommendation_notes_what_it_takes_off_the_bill(service):
    found = service.all()[NODE].frees
    assert (found.instance, found.spot) == ("m5.large", False)
    service.advise(harbor(volumes=(a_volume(),)))
    frees = service.all()["orphan-volume pv-1"].frees
    assert (frees.volume, frees.volume_bytes) == ("gp3", a_volume().capacity)


@pytest.mark.parametrize("outcome", ["refused", "failed", "would-do"])
def test_what_its_executor_does_not_do_is_refused_and_advised_again_after_an_hour(service, outcome):
    service.accept(NODE)
    service.advise(harbor())
    service.report(outcome)
    service.advise(harbor())
    assert (service.all()[NODE].state, service.all()[NODE].note) == ("refused", f"{outcome}: so")
    with pytest.raises(Refused):
        service.accept(NODE)
    service.advise(harbor(), minutes=61)
    assert service.all()[NODE].state == "open"


def test_a_result_ahead_of_its_instruction_is_not_kept_and_makes_nothing_done(service):
    service.accept(NODE)
    id_ = service.all()[NODE].id
    soon = int(service.time.timestamp())
    ahead = [
        Result(id=id_, number=number, outcome="done", reason="so", at=NOW)
        for number in (1, *range(soon, soon + 300), 2**53)
    ]
    instructions.report(service.data, "harbor", ahead, service.time)
    service.advise(harbor())
    service.advise(harbor())
    assert service.all()[NODE].state == "accepted"
    (told,) = service.waiting()
    kept = service.data.list("harbor", "instruction#", "instruction#~")
    assert [int(each.key.partition("#")[2]) for each in kept] == [told.number]


def test_a_result_counts_also_after_its_instruction_has_ceased_to_wait(service):
    service.accept(NODE)
    service.advise(harbor())
    (told,) = service.waiting()
    service.advise(harbor(), minutes=40)
    assert service.waiting() == []
    done = Result(id=told.id, number=told.number, outcome="done", reason="so", at=NOW)
    for each in (done, replace(done, outcome="refused")):
        instructions.report(service.data, "harbor", [each], service.time)
    service.advise(harbor())
    assert service.all()[NODE].state == "done"


def test_what_was_signed_and_answered_is_forgotten_after_four_hundred_days(service):
    service.accept(NODE)
    service.advise(harbor())
    service.report("refused")
    service.time += timedelta(days=400)
    assert list(service.data.list("harbor", "instruction#", "instruction#~"))
    service.time += timedelta(days=1)
    assert not list(service.data.list("harbor", "instruction#", "instruction#~"))


def test_a_cluster_that_fell_silent_answers_with_what_it_had(service):
    before = newest(service.data, "harbor")
    for _ in range(2):
        service.advise(minutes=2 * 24 * 60)
    service.data.forget_snapshots()  # as the bucket does after fifteen days
    assert newest(service.data, "harbor") == before
    service.advise(minutes=30 * 24 * 60)
    assert service.all()[NODE].state == "open"
    service.advise(without_a())
    assert newest(service.data, "harbor") != before
    service.data.forget_snapshots()
    assert newest(service.data, "harbor") is None


def test_all_that_is_kept_of_a_cluster_expires(service):
    service.accept(NODE)
    idle = LoadBalancer(uid="l", kind="Service", namespace="shop", name="old", created_at=OLD)
    service.advise(harbor(load_balancers=(idle,)))
    service.report("refused")
    service.advise(minutes=2 * 24 * 60)
    assert service.data.get("harbor", SAVINGS) is not None
    assert service.data.get("harbor", LAST) is not None
    service.time += timedelta(days=401)
    assert list(service.data.list("harbor", "", "~")) == []


def test_an_instruction_that_nobody_answers_lapses(service):
    service.accept(NODE)
    service.advise(harbor())
    service.advise(harbor(), minutes=61)
    assert service.all()[NODE].state == "refused"
    assert service.waiting() == []


def test_an_accepted_recommendation_that_does_not_hold_any_more_is_refused(service):
    service.accept(NODE)
    full = replace(harbor().pods[1], requests=amounts(1900, GIB))
    service.advise(replace(harbor(), pods=(harbor().pods[0], full)))
    assert service.waiting() == []
    assert service.all()[NODE].note == "its pods fit nowhere else as safely as here"


def test_no_instruction_is_made_of_an_old_snapshot(service):
    service.accept(NODE)
    assert service.advise(minutes=11).instructions == ()
    assert service.all()[NODE].state == "accepted"


def test_without_a_signer_nothing_is_issued(service):
    service.accept(NODE)
    assert service.advise(harbor(), signed=False).instructions == ()


def test_numbers_rise(service):
    service.accept(NODE)
    (first,) = service.advise(harbor()).instructions
    service.report("refused")
    service.advise(harbor())
    service.advise(harbor(), minutes=61)
    service.accept(NODE)
    (second,) = service.advise(harbor()).instructions
    assert second > first


def test_numbers_rise_also_within_a_second(service):
    service.accept(NODE)
    (first,) = service.advise(harbor()).instructions
    service.time -= timedelta(minutes=1)  # another function's clock is behind
    found = recommendations.next_number(service.data, "harbor", service.time)
    assert found == first + 1
    assert recommendations.next_number(service.data, "harbor", service.time) == first + 2


def test_who_loses_a_race_has_changed_nothing_and_the_next_run_sees_to_it(service, monkeypatch):
    service.accept(NODE)
    real = service.data.put

    def put(cluster: str, key: str, body: bytes, **how: Any):
        if key == RECOMMENDATIONS:
            raise Conflict("somebody else wrote it")
        return real(cluster, key, body, **how)

    with monkeypatch.context() as patch:
        patch.setattr(type(service.data), "put", lambda _, *args, **how: put(*args, **how))
        with pytest.raises(Conflict):
            service.advise(harbor())
    assert service.waiting() == []
    service.advise(harbor())
    assert len(service.waiting()) == 1


def test_who_accepts_while_a_run_writes_is_heard(service, monkeypatch):
    real, others = service.data.put, [1]

    def put(cluster: str, key: str, body: bytes, **how: Any):
        if others.pop() if others else False:
            real(cluster, key, service.data.get(cluster, key).body, **how)
        return real(cluster, key, body, **how)

    with monkeypatch.context() as patch:
        patch.setattr(type(service.data), "put", lambda _, *args, **how: put(*args, **how))
        assert service.accept(NODE).state == "accepted"
    assert service.all()[NODE].state == "accepted"


def test_of_twenty_thousand_volumes_those_that_save_most_are_advised_in_one_write_and_the_rest_counted(
    monkeypatch,
):
    service = AdvisedCluster()
    volumes = tuple(
        Volume(
            uid=f"v-{n}",
            name=f"pv-{n}",
            phase="Released",
            capacity=(n + 1) * GIB,
            type="gp3",
            since=OLD,
            created_at=OLD,
        )
        for n in range(20_000)
    )
    written: list[str] = []
    real = service.data.put

    def put(cluster: str, key: str, body: bytes, **how: Any):
        written.append(key)
        return real(cluster, key, body, **how)

    monkeypatch.setattr(type(service.data), "put", lambda _, *args, **how: put(*args, **how))
    service.advise(harbor(volumes=volumes))
    found, _ = read_recommendations(service.data, "harbor")
    assert written.count(RECOMMENDATIONS) == 1
    assert len(written) < 10
    assert len(found.recommendations) == MOST_RECOMMENDATIONS
    assert found.left_out + MOST_RECOMMENDATIONS > 20_000
    assert "orphan-volume pv-19999" in service.all()
    service.accept("orphan-volume pv-19999")
    service.advise(harbor(volumes=volumes[:-1]))
    assert service.all()["orphan-volume pv-19999"].state == "done"


def test_what_was_accepted_is_kept_whatever_saves_more(service):
    service.accept(NODE)
    volumes = tuple(
        Volume(
            uid=f"v-{n}",
            name="v",
            phase="Released",
            capacity=2**50,
            type="gp3",
            since=OLD,
            created_at=OLD,
        )
        for n in range(MOST_RECOMMENDATIONS)
    )
    service.advise(harbor(volumes=volumes))
    assert service.all()[NODE].state == "accepted"
    assert len(service.waiting()) == 1


def test_what_is_over_is_forgotten_after_ninety_days(service):
    service.advise(without_a())
    service.advise(without_a(), minutes=89 * 24 * 60)
    assert service.all()[NODE].state == "withdrawn"
    service.advise(without_a(), minutes=2 * 24 * 60)
    assert NODE not in service.all()


def a_volume(**changes: Any) -> Volume:
    """Return a volume that was released long ago."""
    facts: dict[str, Any] = {
        "uid": "v",
        "name": "pv-1",
        "phase": "Released",
        "capacity": 100 * GIB,
        "type": "gp3",
    }
    return Volume(**facts | {"since": OLD, "created_at": OLD} | changes)


def test_what_costs_and_serves_nobody_is_named():
    volume = a_volume()
    balancer = LoadBalancer(uid="l", kind="Service", namespace="shop", name="old", created_at=OLD)
    service = AdvisedCluster()
    seen = harbor(
        volumes=(volume, replace(volume, uid="w", phase="Bound", name="pv-2")),
        load_balancers=(balancer, replace(balancer, uid="m", name="new", ready_endpoints=2)),
    )
    service.advise(seen)
    service.advise(seen, minutes=DAY_MINUTES)
    found = service.all()
    assert found["orphan-volume pv-1"].monthly == pytest.approx(8.0)
    assert found["idle-load-balancer old"].monthly == pytest.approx(0.0225 * 730, abs=0.01)
    assert not found.keys() & {"orphan-volume pv-2", "idle-load-balancer new"}
    service.accept("orphan-volume pv-1")
    service.advise(harbor(load_balancers=(balancer,)))
    done = service.all()["orphan-volume pv-1"]
    assert done.state == "done"
    assert done.seen_at == service.time


DAY_MINUTES = 24 * 60


def idle(service: AdvisedCluster, *balancers: LoadBalancer, minutes: int = 0) -> list[str]:
    """Return which load balancers are advised to be deleted after so many more minutes."""
    service.advise(harbor(load_balancers=balancers), minutes=minutes)
    open_ = {name for name, each in service.all().items() if each.state == "open"}
    return sorted(name for name in open_ if name.startswith("idle-load-balancer"))


def test_a_load_balancer_that_serves_now_and_then_is_not_idle():
    balancer = LoadBalancer(uid="l", kind="Service", namespace="shop", name="old", created_at=OLD)
    service = AdvisedCluster()
    assert idle(service, balancer) == []
    assert idle(service, balancer, minutes=DAY_MINUTES - 10) == []
    assert idle(service, replace(balancer, ready_endpoints=1), minutes=5) == []
    assert idle(service, balancer, minutes=5) == []
    assert idle(service, balancer, minutes=DAY_MINUTES - 5) == []
    assert idle(service, balancer, minutes=5) == ["idle-load-balancer old"]


def test_a_shared_load_balancer_is_advised_once_and_only_if_nobody_uses_it():
    shared = LoadBalancer(
        uid="a", kind="Ingress", namespace="shop", name="a", address="x.elb", created_at=OLD
    )
    other = replace(shared, uid="b", name="b")
    service = AdvisedCluster()
    used = replace(other, ready_endpoints=1)
    assert idle(service, shared, used) == []
    assert idle(service, shared, used, minutes=DAY_MINUTES) == []
    assert idle(service, shared, other, minutes=5) == []
    assert idle(service, shared, other, minutes=DAY_MINUTES) == ["idle-load-balancer a"]
    found = service.all()["idle-load-balancer a"]
    assert found.monthly == pytest.approx(0.0225 * 730, abs=0.01)
    assert found.patch.count("kubectl delete ingress --namespace shop") == 2


@pytest.mark.parametrize("type_", ["", "pd-ssd", "efs-ap"])
def test_a_volume_of_another_storage_than_ebs_is_neither_priced_nor_offered_for_deletion(type_):
    """An unclaimed volume of NFS may hold what several clusters share, and costs none of EBS's prices."""
    service = AdvisedCluster()
    foreign = a_volume(type=type_)
    service.advise(harbor(volumes=(foreign,)))
    assert "orphan-volume pv-1" not in service.all()


@pytest.mark.parametrize(
    ("changes", "advised"),
    [
        ({"since": NOW - timedelta(minutes=1)}, False),
        ({"since": NOW - timedelta(days=1)}, True),
        ({"since": None}, False),
        ({"phase": "Available", "since": None}, True),
        ({"phase": "Available", "since": None, "created_at": NOW}, False),
        ({"phase": "Bound"}, False),
        ({"reclaim": "Retain"}, False),
    ],
    ids=["just now", "a day", "untold", "never claimed", "new", "claimed", "kept, untold where"],
)
def test_a_volume_is_unused_by_the_time_of_its_release_and_not_of_its_creation(changes, advised):
    service = AdvisedCluster()
    service.advise(harbor(volumes=(a_volume(**changes),)))
    assert ("orphan-volume pv-1" in service.all()) is advised


def test_a_volume_that_outlives_its_persistent_volume_is_named_and_nothing_is_booked_as_saved():
    kept = a_volume(reclaim="Retain", ebs="vol-0a1")
    services = {True: AdvisedCluster(), False: AdvisedCluster()}
    for is_accepted, service in services.items():
        service.advise(harbor(volumes=(kept,)))
        found = service.all()["orphan-volume pv-1"]
        first, second = found.patch.split(" && ")
        assert first.startswith("aws ec2 delete-volume --volume-id vol-0a1")
        assert second == "kubectl delete persistentvolume pv-1"
        assert "keeps vol-0a1 in EBS, billed" in found.reason
        if is_accepted:
            service.accept("orphan-volume pv-1")
        service.advise(harbor())
    done, lost = (each.all()["orphan-volume pv-1"] for each in services.values())
    assert (done.state, done.seen_at) == ("done", None)
    assert lost.state == "withdrawn"
    assert "does not show whether AWS still bills the volume" in done.note
    assert lost.note == done.note


def test_a_floor_is_advised_where_none_is_stated_and_done_once_it_is():
    web = wire_workload("web", replicas=4)
    seen = harbor(workloads=(web,), pods=wire_pods(web, "a", "a", "b", "b"))
    service = AdvisedCluster()
    service.advise(seen)
    found = service.all()["allow-spot web"]
    assert json.loads(found.patch) == {"metadata": {"annotations": {MIN_ON_DEMAND: "50%"}}}
    assert found.monthly > 0
    service.accept("allow-spot web")
    stated = replace(web, annotations={MIN_ON_DEMAND: "75%"})
    service.advise(replace(seen, workloads=(stated,)))
    assert service.all()["allow-spot web"].state == "done"
