"""Notices of one instance become one interruption, whatever their order and number."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import (
    MARGIN,
    URGENCY,
    Interruption,
    LifecycleHook,
    NewerRecord,
    actionable,
    from_record,
    in_this_life,
    marked,
    merge,
    needs_heartbeat,
    to_record,
    waits_for_hooks,
    with_ends,
)
from plimsoll.domain.interruptions.model import NOTICES_PER_KIND, join
from plimsoll.domain.notices import (
    Effect,
    HealthScheduledChange,
    InstanceNotice,
    LifecycleTerminate,
    RebalanceRecommendation,
    SpotInterruption,
    StateChange,
    Unknown,
)
from plimsoll.domain.notices.capacity_reservation import CapacityReservationInterruption
from plimsoll.domain.notices.lifecycle import LifecycleLaunch, TestNotification
from tests.support.builders import NOON
from tests.support.observations import interrupted
from tests.support.strategies import (
    ACCOUNT,
    INSTANCE,
    NODE,
    START,
    fine_moments,
    instance_notices,
    interruption_notices,
    interruptions,
    moments,
)

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def about(at: float, id_: str = "e1"):
    return {
        "instance": INSTANCE,
        "time": after(at),
        "account": ACCOUNT,
        "region": "us-east-1",
        "id": id_,
    }


def spot(at: float, action: str = "terminate", id_: str = "spot") -> SpotInterruption:
    return SpotInterruption(**about(at, id_), action=action)


def rebalance(at: float, id_: str = "rebalance") -> RebalanceRecommendation:
    return RebalanceRecommendation(**about(at, id_))


def terminate(at: float, hook: str = "plimsoll") -> LifecycleTerminate:
    return LifecycleTerminate(**about(at, f"token-{hook}"), group="spot-a", hook=hook, token="t")


def state(at: float, to: str) -> StateChange:
    return StateChange(**about(at, f"state-{to}"), state=to)


def health(at: float, starts: float | None, *, closed=False, id_="h1", arn="arn:a"):
    return HealthScheduledChange(
        **about(at, id_),
        change="retirement",
        code="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
        arn=arn,
        starts=None if starts is None else after(starts),
        closed=closed,
    )


def merged(*notices: InstanceNotice, launched: datetime | None = START) -> Interruption:
    result: Interruption | None = None
    for notice in notices:
        result = merge(result, notice, node=NODE, launched=launched)
    assert result is not None
    return result


# Order and repetition


@given(data=st.data(), notices=st.lists(interruption_notices, min_size=1, max_size=8))
def test_any_permutation_and_any_duplication_give_the_same_interruption(data, notices):
    again = data.draw(st.lists(st.sampled_from(notices), max_size=8))
    shuffled = data.draw(st.permutations([*notices, *again]))
    assert merged(*shuffled) == merged(*notices)


@given(
    data=st.data(),
    kind=st.sampled_from([spot, rebalance]),
    times=st.lists(
        st.integers(0, 30), min_size=NOTICES_PER_KIND + 1, max_size=3 * NOTICES_PER_KIND
    ),
)
def test_more_notices_than_are_kept_give_the_same_interruption_in_any_order(data, kind, times):
    notices = [kind(time, id_=f"e{index}") for index, time in enumerate(times)]
    shuffled = data.draw(st.permutations(notices))
    assert merged(*shuffled) == merged(*notices)
    assert len(merged(*notices).notices) == NOTICES_PER_KIND


@given(
    data=st.data(),
    notices=st.lists(st.tuples(interruption_notices, st.booleans()), min_size=1, max_size=6),
)
def test_a_launch_time_learned_late_gives_the_same_interruption(data, notices):
    launched = after(1800)
    last = spot(2000, id_="last")

    def play(order: list[tuple[InstanceNotice, bool]]) -> Interruption | None:
        result: Interruption | None = None
        for notice, known in order:
            if known and notice.time < launched and result is None:
                continue  # nothing to open, as its verdict says
            result = merge(result, notice, node=NODE, launched=launched if known else None)
        return result

    order: list[tuple[InstanceNotice, bool]] = [*notices, (last, True)]
    assert play(data.draw(st.permutations(order))) == play(order)


@given(data=st.data(), launched=st.sampled_from([START, None]))
def test_joining_is_commutative_associative_and_idempotent(data, launched):
    a, b, c = (data.draw(interruptions(launched=launched)) for _ in range(3))
    assert join(a, b) == join(b, a)
    assert join(join(a, b), c) == join(a, join(b, c))
    assert join(a, a) == a
    assert join(a, join(a, b)) == join(a, b)


@given(notices=st.lists(interruption_notices, min_size=1, max_size=6))
def test_merging_one_by_one_is_joining_what_each_says(notices):
    assert merged(*notices) == reduce(join, (merged(notice) for notice in notices))


@given(interruption=interruptions(), notice=interruption_notices)
def test_a_notice_never_makes_a_deadline_later_unless_it_is_about_the_same_thing(
    interruption, notice
):
    if isinstance(notice, HealthScheduledChange | LifecycleTerminate) or not interruption.deadline:
        return
    if len([n for n in interruption.notices if n.kind == notice.kind]) >= NOTICES_PER_KIND:
        return
    if any((n.kind, n.id) == (notice.kind, notice.id) for n in interruption.notices):
        return
    deadline = merge(interruption, notice, node=NODE, launched=START).deadline
    assert deadline is not None
    assert deadline <= interruption.deadline


def test_two_instances_or_two_lives_are_not_joined():
    one = merged(spot(0))
    with pytest.raises(ValueError, match="is not"):
        join(one, replace(one, instance="i-12345678"))
    with pytest.raises(ValueError, match="is not"):
        join(one, replace(one, launched=after(10)))


def test_an_interruption_has_a_notice():
    with pytest.raises(ValueError, match="no notice"):
        Interruption(instance=INSTANCE, launched=None, node=NODE, notices=())


# Deadline and kind


def test_the_margin_is_taken_off_once_however_often_it_is_merged():
    expected = after(120) - MARGIN
    interruption = merged(spot(0), spot(0), spot(0))
    assert interruption.deadline == expected
    again = from_record(to_record(join(interruption, interruption)))
    assert again.deadline == expected


@pytest.mark.parametrize(
    ("notices", "ends"),
    [
        ([rebalance(0)], None),
        ([spot(0, "hibernate")], 0),
        ([rebalance(0), health(5, 86400), spot(60), terminate(70)], 180),
        ([CapacityReservationInterruption(**about(0), terminates=after(90))], 90),
        ([health(0, 1000), health(10, 5000, id_="h2")], 5000),
    ],
    ids=["advice", "hibernation", "the earliest", "named itself", "moved"],
)
def test_the_earliest_hard_end_is_the_deadline(notices, ends):
    expected = None if ends is None else after(ends) - MARGIN
    assert merged(*notices).deadline == expected


def test_the_most_urgent_notice_names_the_kind_and_the_first_the_time():
    interruption = merged(rebalance(0), health(5, 86400), spot(60), terminate(70))
    assert interruption.kind == interruption.taint == "spot-interruption"
    assert interruption.noticed == after(0)


def test_every_kind_has_its_urgency_and_fits_a_taint():
    assert URGENCY[0] == "spot-interruption"
    assert URGENCY.index("state-change") > URGENCY.index("rebalance-recommendation")
    assert len(set(URGENCY)) == len(URGENCY)
    for kind in URGENCY:
        assert re.fullmatch(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?", kind)


def test_a_state_change_names_the_kind_only_where_nothing_else_does():
    assert merged(rebalance(0), state(5, "shutting-down")).kind == "rebalance-recommendation"
    assert merged(state(5, "shutting-down")).kind == "state-change"


# Lifecycle hooks


def test_the_end_of_a_hook_is_a_guess_until_it_was_read_and_a_copy_of_the_notice_changes_nothing():
    guess = merged(terminate(0, "plimsoll"), terminate(2, "logs"))
    assert (guess.deadline, guess.guessed) == (after(300) - MARGIN, True)

    waits = {"plimsoll": timedelta(seconds=60), "logs": timedelta(hours=1)}
    known = with_ends(guess, waits)
    assert (known.deadline, known.guessed) == (after(60) - MARGIN, False)
    assert join(known, guess) == known
    assert merge(known, terminate(0, "plimsoll"), node=NODE) == known
    assert not merged(terminate(0), spot(1)).guessed

    held = with_ends(known, {"plimsoll": timedelta(hours=2)}, heartbeat=after(30))
    assert held.deadline == after(2 + 3600) - MARGIN
    assert join(held, known) == join(known, held) == held
    assert with_ends(held, waits) == held
    assert from_record(to_record(held)) == held


@pytest.mark.parametrize(
    ("beaten", "now", "needed"),
    [(None, 1, True), (21, 40, False), (21, 42, True), (580, 601, False)],
)
def test_a_hook_gets_a_heartbeat_at_once_then_after_a_third_of_its_timeout_and_none_when_it_waits_no_longer(
    beaten, now, needed
):
    hook = LifecycleHook(
        group="spot-a",
        name="plimsoll",
        timeout=timedelta(seconds=60),
        longest=timedelta(seconds=600),
        ours=True,
    )
    interruption = merged(terminate(0, "plimsoll"))
    if beaten is not None:
        interruption = with_ends(interruption, {"plimsoll": hook.longest}, heartbeat=after(beaten))
    assert needs_heartbeat(interruption, hook, after(now)) is needed


# Health changes its mind


def test_a_health_event_called_off_withdraws_the_interruption():
    interruption = merged(health(10, None, closed=True, id_="h2"), health(0, 1000))
    assert interruption.withdrawn
    assert interruption.deadline is None
    assert interruption.kind == "health-scheduled-change"


def test_calling_off_one_health_event_leaves_what_else_was_announced():
    interruption = merged(
        health(0, 1000),
        health(1, 2000, id_="other", arn="arn:b"),
        health(9, 1, closed=True, id_="h2"),
    )
    assert not interruption.withdrawn
    assert interruption.deadline == after(2000) - MARGIN
    assert not merged(health(0, 1, closed=True), rebalance(1)).withdrawn


# Phases and marks


def test_an_interruption_goes_from_open_to_empty_to_gone_to_closed():
    interruption = merged(spot(0))
    phases = [interruption.phase]
    for mark in ({"emptied": after(60)}, {"gone": after(120)}, {"closed": after(130)}):
        interruption = marked(interruption, **mark)
        phases.append(interruption.phase)
    assert phases == ["open", "empty", "gone", "closed"]


@pytest.mark.parametrize("to", ["terminated", "stopped"])
def test_an_instance_proven_gone_is_gone_since_then(to):
    interruption = merged(spot(0), state(118, to))
    assert (interruption.phase, interruption.gone) == ("gone", after(118))


@pytest.mark.parametrize("to", ["shutting-down", "stopping"])
def test_an_instance_that_shuts_down_is_at_its_deadline_but_not_gone(to):
    interruption = merged(rebalance(0), state(50, to))
    assert (interruption.phase, interruption.deadline) == ("open", after(50) - MARGIN)


def test_a_mark_keeps_its_first_time():
    interruption = marked(merged(spot(0)), cordoned=after(2), emptied=after(3))
    interruption = marked(interruption, cordoned=after(9), emptied=after(9))
    assert (interruption.cordoned, interruption.emptied) == (after(2), after(3))


def test_a_notice_after_the_closing_opens_it_again_until_it_is_closed_again():
    closed = marked(merged(rebalance(0)), emptied=after(50), closed=after(60))
    reopened = merge(closed, spot(90), node=NODE, launched=START)
    assert reopened.phase == "empty"
    assert marked(reopened, closed=after(100)).phase == "closed"


def test_an_old_notice_that_comes_late_leaves_it_closed():
    closed = marked(merged(spot(10)), closed=after(60))
    assert merge(closed, rebalance(0), node=NODE, launched=START).phase == "closed"


# Lives of an instance


def test_a_notice_from_before_the_launch_is_of_a_former_life():
    verdict = actionable(spot(0), launched=after(30))
    assert verdict.effect is Effect.NOTHING
    assert "former life" in verdict.reason


def test_a_notice_of_the_second_of_the_launch_is_of_this_life():
    assert actionable(spot(30), launched=after(30.9)).effect is Effect.DRAIN


def test_a_notice_of_a_former_life_changes_nothing():
    interruption = merged(spot(60), launched=after(30))
    assert merge(interruption, spot(10, id_="old"), node=NODE, launched=after(30)) == interruption
    assert merge(interruption, spot(10, id_="old"), node=NODE, launched=None) == interruption
    assert merge(interruption, spot(10, id_="old"), node=NODE, launched=START) == interruption


def test_a_notice_of_a_former_life_opens_nothing():
    with pytest.raises(ValueError, match="opens no interruption"):
        merge(None, spot(0), node=NODE, launched=after(30))


def test_the_record_of_a_former_life_is_replaced():
    former = marked(merged(spot(0)), cordoned=after(1), gone=after(120), closed=after(130))
    reborn = merge(former, rebalance(900), node=NODE, launched=after(600))
    assert reborn == merged(rebalance(900), launched=after(600))


@pytest.mark.parametrize("launched", [None, START])
def test_of_a_record_by_an_index_that_lags_behind_only_what_is_newer_and_the_cordon_are_kept(
    launched,
):
    record = merged(spot(0), state(120, "stopped"), rebalance(700), launched=launched)
    record = marked(record, cordoned=after(1), closed=after(130))
    kept = in_this_life(record, launched=after(600))
    assert kept == marked(merged(rebalance(700), launched=after(600)), cordoned=after(1))
    assert in_this_life(record, launched=after(800)) is None
    assert in_this_life(record, launched=None) == record


def test_a_record_of_the_present_life_or_a_later_one_is_kept_as_it_is():
    interruption = merged(spot(60), launched=after(30))
    assert in_this_life(interruption, launched=after(30.5)) == interruption
    assert in_this_life(interruption, launched=START) == interruption


# What leads to a drain


@pytest.mark.parametrize(
    ("notice", "effect", "words"),
    [
        (spot(0), Effect.DRAIN, "spot reclaims it (terminate) at 2026-11-17T14:02:00Z"),
        (spot(0, "hibernate"), Effect.DRAIN, "without lead time"),
        (rebalance(0), Effect.DRAIN, "names no deadline"),
        (terminate(0), Effect.DRAIN, "spot-a terminates it; the hook plimsoll waits"),
        (health(0, 600), Effect.DRAIN, "its hardware is retired at 2026-11-17T14:10:00Z"),
        (health(0, None), Effect.DRAIN, "at a time not known"),
        (health(0, 600, closed=True), Effect.WITHDRAW, "called off"),
        (state(0, "shutting-down"), Effect.DRAIN, "already"),
        (state(0, "terminated"), Effect.GONE, "it is terminated"),
        (state(0, "stopped"), Effect.GONE, "it is stopped"),
        (state(0, "running"), Effect.NOTHING, "it is running"),
        (state(0, "pending"), Effect.NOTHING, "it is pending"),
        (
            LifecycleLaunch(**about(0), group="spot-a", hook="h", token=None),
            Effect.NOTHING,
            "spot-a launches it",
        ),
    ],
)
def test_a_notice_leads_to_its_effect_with_the_reason_in_words(notice, effect, words):
    verdict = actionable(notice, launched=START)
    assert verdict.effect is effect
    assert words in verdict.reason


@pytest.mark.parametrize(
    ("notice", "words"),
    [
        (TestNotification(group="spot-a", time=START), "tests the queue"),
        (
            Unknown(source="aws.s3", detail_type="Object Created", why="not ours", time=START),
            "Object Created from aws.s3: not ours",
        ),
    ],
)
def test_what_is_about_no_instance_is_acknowledged_with_its_reason(notice, words):
    verdict = actionable(notice, launched=after(30))
    assert verdict.effect is Effect.NOTHING
    assert words in verdict.reason


@given(notice=instance_notices, launched=st.none() | moments)
def test_a_notice_merges_exactly_when_its_verdict_says_so(notice, launched):
    if actionable(notice, launched=launched).merges:
        assert merge(None, notice, node=NODE, launched=launched).notices[0].id == notice.id
    else:
        with pytest.raises(ValueError, match="opens no interruption"):
            merge(None, notice, node=NODE, launched=launched)


# The record on the Node


@given(interruption=interruptions(times=fine_moments) | interruptions(launched=None))
def test_a_record_is_read_back_as_it_was_written(interruption):
    text = to_record(interruption)
    assert from_record(text) == interruption
    assert to_record(from_record(text)) == text


@given(notices=st.lists(interruption_notices, min_size=1, max_size=60))
def test_a_record_stays_small(notices):
    assert len(to_record(merged(*notices))) < 16_384


def test_a_record_can_be_read_by_people():
    said = json.loads(to_record(marked(merged(rebalance(0), spot(60)), cordoned=after(61))))
    assert said["v"] == 1
    assert (said["kind"], said["phase"]) == ("spot-interruption", "open")
    assert said["deadline"] == "2026-11-17T14:02:58Z"
    assert said["cordoned"] == "2026-11-17T14:01:01Z"
    assert "gone" not in said


def test_a_record_ignores_what_it_can_derive_and_keys_it_does_not_know():
    said = json.loads(to_record(merged(spot(0))))
    said |= {"deadline": "2030-01-01T00:00:00Z", "kind": "nonsense", "later": {"key": 1}}
    assert from_record(json.dumps(said)) == merged(spot(0))


def test_a_kind_that_is_not_known_yet_is_kept_and_comes_after_all():
    said = json.loads(to_record(merged(rebalance(0))))
    said["notices"].append({"kind": "solar-flare", "time": "2026-11-17T14:00:30Z", "id": "x"})
    read = from_record(json.dumps(said))
    assert read.kind == "rebalance-recommendation"
    assert [n.kind for n in read.notices] == ["rebalance-recommendation", "solar-flare"]


def test_a_record_of_a_newer_version_is_left_to_whoever_wrote_it():
    with pytest.raises(NewerRecord, match="version 2"):
        from_record('{"v": 2, "shape": "unknown"}')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "nested"),
        ("[]", "must be a JSON object"),
        ("{}", "v: must be the version"),
        ('{"v": true}', "v: must be the version"),
        ('{"v": "1"}', "v: must be the version"),
        ('{"v": 1}', "notices: must hold"),
        ('{"v": 1, "notices": [7]}', "notices[0]: must be an object"),
        ('{"v": 1, "notices": [{}]}', "instance: must be a string"),
        ('{"v": 1, "notices": [{}], "instance": "i-12345678"}', "node: must be a string"),
        (
            '{"v": 1, "notices": [{}], "instance": "i-12345678", "node": "n"}',
            "notices[0].kind: must be a string",
        ),
        (" " * 300_000, "more than 262144"),
    ],
)
def test_what_is_no_record_is_refused_in_words(text, words):
    with pytest.raises(BadInput) as refused:
        from_record(text)
    assert words in str(refused.value)


def test_times_are_written_in_utc_whatever_zone_they_were_told_in():
    elsewhere = merged(spot(0)).notices[0].time.astimezone()
    interruption = marked(merged(spot(0)), cordoned=elsewhere)
    said = json.loads(to_record(interruption))
    assert said["cordoned"] == "2026-11-17T14:00:00Z"
    assert from_record(to_record(interruption)).cordoned == START.astimezone(UTC)


def test_a_record_keeps_the_trace_of_a_notice_and_reads_anything_else_there_as_none():
    said = json.loads(to_record(merge(None, spot(0), node=NODE, traceparent=TRACE)))
    assert from_record(json.dumps(said)).notices[0].traceparent == TRACE
    for other in ("x" * 100_000, TRACE.upper(), f"{TRACE}-more", {"nested": [TRACE]}, 7):
        said["notices"][0]["traceparent"] = other
        assert from_record(json.dumps(said)).notices[0].traceparent is None


@pytest.mark.parametrize(
    ("kind", "waits"), [("lifecycle-terminate", True), ("spot-interruption", False)]
)
def test_only_an_instance_that_a_hook_holds_waits_for_hooks_until_it_is_drained(kind, waits):
    record = interrupted("spot", kind=kind).interruption
    assert record is not None

    assert waits_for_hooks(record) is waits
    assert not waits_for_hooks(marked(record, emptied=NOON))
