"""What happens to a role, and what its policies do about it: Volcano's events and actions, as a table of cases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plimsoll_batch.domain.jobs.lifecycle import Action, Event, Lifecycle, Policy
from tests.support.queue_scenes import Scene, a_job, killed_at_each_write, record, stop_of
from tests.support.role_scenes import (
    PS,
    WORKERS,
    a_policed_training,
    ended,
    evict,
    fail,
    settle,
)


def a_policy(event: Event, action: Action, seconds: int = 0, **more: object) -> Policy:
    return Policy(event=event, action=action, timeout=timedelta(seconds=seconds), **more)  # type: ignore[arg-type] # a test names what it is about


def started(*policies: Policy, nodes: int = 6, **more) -> Scene:
    scene = Scene(nodes=nodes, pod_stop=1)
    scene.submit(*a_policed_training(policies, **more))
    scene.run()
    assert scene.running(PS, WORKERS) == 6
    return scene


def uids(scene: Scene, *jobs: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in scene.pods_of(*jobs)}


# --- The table -----------------------------------------------------------------------------------


def befall(scene: Scene, event: Event) -> None:
    if event is Event.POD_EVICTED:
        evict(scene, WORKERS)
    else:
        fail(scene, WORKERS, 3)
    settle(scene, 40)


@pytest.mark.parametrize("event", [Event.POD_FAILED, Event.POD_EVICTED, Event.ANY])
@pytest.mark.parametrize("action", [*Action])
def test_every_action_on_what_befalls_a_pod(event: Event, action: Action):
    scene = started(a_policy(event, action))
    ps, workers = uids(scene, PS), uids(scene, WORKERS)
    befall(scene, event)
    kept_ps = uids(scene, PS) == ps
    match action:
        case Action.RESTART_POD:
            assert kept_ps
            assert len(uids(scene, WORKERS) & workers) == 3
            assert scene.running(PS, WORKERS) == 6
        case Action.RESTART_ROLE:
            assert kept_ps
            assert not uids(scene, WORKERS) & workers
            assert scene.running(PS, WORKERS) == 6
        case Action.RESTART_JOB:
            assert not uids(scene, PS, WORKERS) & (ps | workers)
            assert scene.running(PS, WORKERS) == 6
            assert stop_of(scene.job(PS))["restarts"] == 1
        case Action.ABORT_JOB:
            assert not scene.pods_of(PS, WORKERS)
            assert (scene.suspended(PS), ended(scene, PS)) == (True, None)
        case Action.COMPLETE_JOB:
            assert (ended(scene, PS), ended(scene, WORKERS)) == ("Complete", "Complete")
            assert not scene.pods_of(PS, WORKERS)
        case Action.TERMINATE_JOB:
            assert (ended(scene, PS), ended(scene, WORKERS)) == ("Failed", "Failed")
            assert not scene.pods_of(PS, WORKERS)


@pytest.mark.parametrize(
    ("action", "how"), [("CompleteJob", "Complete"), ("TerminateJob", "Failed")]
)
def test_a_role_that_completes_ends_the_others(action, how):
    policy = a_policy(Event.ROLE_COMPLETED, Action(action))
    scene = started(policy, run="20s")
    settle(scene, 60)
    assert (ended(scene, WORKERS), ended(scene, PS)) == ("Complete", how)


@pytest.mark.parametrize(
    ("action", "how"), [("CompleteJob", "Complete"), ("TerminateJob", "Failed")]
)
def test_a_role_that_fails_for_good_ends_the_others(action, how):
    policy = a_policy(Event.ROLE_FAILED, Action(action))
    scene = started(policy, backoffLimit=0)
    fail(scene, WORKERS)
    settle(scene)
    assert (ended(scene, WORKERS), ended(scene, PS)) == ("Failed", how)


def test_any_with_a_restart_terminates_once_a_role_has_failed_for_good():
    scene = started(a_policy(Event.ANY, Action.RESTART_JOB), backoffLimit=0)
    fail(scene, WORKERS)
    settle(scene)
    assert (ended(scene, WORKERS), ended(scene, PS)) == ("Failed", "Failed")


# --- Which policy counts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "action"),
    [(3, Action.RESTART_JOB), (42, Action.TERMINATE_JOB), (9, Action.ABORT_JOB)],
    ids=["listed", "another listed", "unknown"],
)
def test_an_exit_code_chooses_the_policy(code, action):
    scene = started(
        a_policy(Event.POD_FAILED, Action.RESTART_JOB, exit_codes=frozenset({3, 4})),
        a_policy(Event.POD_FAILED, Action.TERMINATE_JOB, exit_codes=frozenset({42})),
        a_policy(Event.POD_FAILED, Action.ABORT_JOB, except_codes=frozenset({1})),
    )
    fail(scene, WORKERS, code)
    settle(scene)
    assert any(action in event for event in scene.events(PS))


def test_an_exit_code_that_no_policy_names_is_left_to_the_job_controller():
    scene = started(a_policy(Event.POD_FAILED, Action.TERMINATE_JOB, exit_codes=frozenset({3})))
    fail(scene, WORKERS, 1)
    settle(scene)
    assert scene.running(PS, WORKERS) == 6


def test_an_eviction_is_no_failure_and_a_failure_no_eviction():
    scene = started(a_policy(Event.POD_FAILED, Action.TERMINATE_JOB))
    evict(scene, WORKERS)
    settle(scene)
    assert scene.running(PS, WORKERS) == 6
    scene = started(a_policy(Event.POD_EVICTED, Action.TERMINATE_JOB))
    fail(scene, WORKERS)
    settle(scene)
    assert scene.running(PS, WORKERS) == 6


def test_a_policy_counts_from_so_many_pods_on():
    scene = started(a_policy(Event.POD_FAILED, Action.TERMINATE_JOB, times=3))
    for _ in range(2):
        fail(scene, WORKERS)
        settle(scene)
    assert scene.running(PS, WORKERS) == 6
    fail(scene, WORKERS)
    settle(scene)
    assert ended(scene, PS) == "Failed"


def test_the_policies_of_another_role_do_not_count():
    scene = started(ps=[a_policy(Event.POD_FAILED, Action.TERMINATE_JOB)])
    fail(scene, WORKERS)
    settle(scene)
    assert scene.running(PS, WORKERS) == 6


# --- Timeouts --------------------------------------------------------------------------------------


def test_a_role_that_is_whole_again_in_time_is_left_alone_and_the_next_failure_has_its_own_time():
    scene = started(a_policy(Event.POD_FAILED, Action.TERMINATE_JOB, 20))
    fail(scene, WORKERS)
    settle(scene, 60)
    assert scene.running(PS, WORKERS) == 6
    assert record(scene.job(WORKERS))["failed"] == 1
    fail(scene, WORKERS)
    scene.run(5)
    assert ended(scene, PS) is None
    settle(scene, 60)
    assert scene.running(PS, WORKERS) == 6


def test_a_role_that_is_not_whole_in_time_is_acted_on():
    scene = started(a_policy(Event.POD_FAILED, Action.TERMINATE_JOB, 20))
    for node in range(6):
        scene.play.cordon(f"n{node}")
    fail(scene, WORKERS)
    scene.run(10)
    assert ended(scene, PS) is None
    settle(scene, 40)
    assert ended(scene, PS) == "Failed"


# --- Restarts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [Action.RESTART_JOB, Action.RESTART_ROLE])
def test_who_was_restarted_as_often_as_allowed_is_terminated(action):
    scene = started(a_policy(Event.POD_FAILED, action), retries=2)
    for _ in range(2):
        fail(scene, WORKERS)
        settle(scene, 60)
        assert scene.running(PS, WORKERS) == 6
    fail(scene, WORKERS)
    settle(scene, 60)
    assert ended(scene, PS) == ended(scene, WORKERS) == "Failed"
    assert any("restarted 2 times" in event for event in scene.events(PS))


def test_the_second_restart_waits_and_says_so():
    scene = started(a_policy(Event.POD_FAILED, Action.RESTART_JOB))
    fail(scene, WORKERS)
    settle(scene)
    fail(scene, WORKERS)
    scene.run(5)
    assert stop_of(scene.job(PS))["notBefore"] is not None
    settle(scene)
    assert scene.running(PS, WORKERS) == 6


def test_a_gang_that_is_restarted_is_placed_before_those_that_wait():
    scene = started(a_policy(Event.POD_FAILED, Action.RESTART_JOB))
    scene.submit(a_job("other", 6))
    fail(scene, WORKERS)
    settle(scene)
    assert scene.running(PS, WORKERS) == 6
    assert scene.suspended("other")


def test_restarts_count_on_when_the_gang_makes_way_meanwhile():
    scene = started(a_policy(Event.POD_FAILED, Action.RESTART_JOB), retries=1)
    fail(scene, WORKERS)
    settle(scene)
    urgent = a_job("urgent", 6, run="10s", annotations={"plimsoll.dev/priority": "9"})
    scene.submit(urgent)
    settle(scene, 60)
    assert scene.complete("urgent")
    assert scene.running(PS, WORKERS) == 6
    fail(scene, WORKERS)
    settle(scene)
    assert ended(scene, PS) == "Failed"


def test_an_aborted_gang_waits_until_it_is_resumed():
    scene = started(a_policy(Event.POD_FAILED, Action.ABORT_JOB))
    fail(scene, WORKERS)
    settle(scene, 60)
    assert not scene.pods_of(PS, WORKERS)
    plan = stop_of(scene.job(PS))["plan"]
    for job in (PS, WORKERS):
        scene.patch(job, {"metadata": {"annotations": {"plimsoll.dev/resume": plan}}})
    settle(scene)
    assert scene.running(PS, WORKERS) == 6


# --- Order -----------------------------------------------------------------------------------------


def test_a_role_starts_once_the_one_that_it_waits_for_is_ready():
    scene = Scene(nodes=6, pod_startup=8)
    scene.submit(*a_policed_training(after={"ps": "Ready"}))
    scene.run(5)
    assert (len(scene.pods_of(PS)), len(scene.pods_of(WORKERS))) == (2, 0)
    scene.submit(a_job("other", 4))
    settle(scene)
    assert scene.running(PS, WORKERS) == 6
    assert scene.suspended("other")  # its places were kept


def test_a_role_that_waits_longer_than_pods_may_take_is_not_late():
    scene = Scene(nodes=6)
    jobs = a_policed_training(after={"ps": "Completed"})
    jobs[0]["spec"]["template"]["metadata"]["annotations"] = {"drill.plimsoll.dev/run": "90s"}
    for job in jobs:
        job["metadata"]["annotations"]["plimsoll.dev/start-seconds"] = "20"
    scene.submit(*jobs)
    settle(scene, 60)
    assert not scene.pods_of(WORKERS)
    settle(scene, 60)
    assert ended(scene, PS) == "Complete"
    assert scene.running(WORKERS) == 4


def test_roles_that_wait_for_each_other_or_for_nobody_are_told():
    scene = Scene(nodes=6)
    scene.submit(*a_policed_training(after={"workers": "Ready", "cache": "Ready"}))
    scene.run()
    assert scene.suspended(PS)
    told = scene.events(WORKERS)
    assert any("role workers waits for role cache, which is not there" in each for each in told)
    assert any("roles wait for each other: workers" in each for each in told)


@pytest.mark.parametrize("state", ["Completed", "Ready"])
def test_a_gang_waits_for_another(state):
    scene = Scene(nodes=6)
    life = Lifecycle(after_gangs={"first": state}).to_record()
    second = a_job("second", annotations={"plimsoll.dev/lifecycle": life})
    scene.submit(second)
    scene.run()
    assert scene.suspended("second")
    scene.submit(a_job("first", 2, run="20s"))
    scene.run(10)
    assert scene.suspended("second") == (state == "Completed")
    settle(scene)
    assert scene.running("second") == 1


def test_a_gang_does_not_start_after_one_that_failed():
    scene = Scene(nodes=6)
    life = Lifecycle(after_gangs={"first": "Completed"}).to_record()
    scene.submit(
        a_job("first", backoffLimit=0),
        a_job("second", annotations={"plimsoll.dev/lifecycle": life}),
    )
    scene.run()
    fail(scene, "first")
    settle(scene)
    assert ended(scene, "first") == "Failed"
    assert scene.suspended("second")


# --- Hostile input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 9000, "is no JSON"),
        ("{}", "v: must be 1"),
        ('{"v":1,"retries":true}', "retries: must be a whole number"),
        ('{"v":1,"policies":[{"event":"Boom"}]}', "policies[0].event: must be one of PodFailed"),
        (
            '{"v":1,"policies":[{"event":"RoleFailed","action":"RestartJob"}]}',
            "cannot be started again",
        ),
        (
            '{"v":1,"policies":[{"event":"PodEvicted","action":"AbortJob","exitCodes":[1]}]}',
            "exit codes are those of PodFailed",
        ),
        ('{"v":1,"after":{"ps":"Soon"}}', "after.ps: must be Ready or Completed"),
    ],
    ids=["deep", "empty", "flag", "event", "ended", "codes", "state"],
)
def test_policies_that_cannot_be_read_cost_only_their_own_gang(text, words):
    scene = Scene(nodes=6)
    scene.submit(a_job("bad", annotations={"plimsoll.dev/lifecycle": text}), a_job("good"))
    scene.run()
    assert scene.suspended("bad")
    assert scene.running("good") == 1
    assert any(words in event for event in scene.events("bad"))


def test_a_gang_that_could_not_be_completed_is_told_before_it_starts():
    scene = Scene(nodes=6)
    policy = a_policy(Event.POD_FAILED, Action.COMPLETE_JOB)
    scene.submit(*a_policed_training([policy], completionMode="NonIndexed"))
    scene.run()
    assert scene.suspended(PS)
    assert any("needs completionMode Indexed" in event for event in scene.events(PS))


def test_a_policy_is_read_as_it_was_written():
    life = Lifecycle(
        policies=(
            a_policy(Event.POD_FAILED, Action.RESTART_JOB, 30, exit_codes=frozenset({1}), times=2),
            a_policy(Event.POD_FAILED, Action.ABORT_JOB, except_codes=frozenset({2})),
        ),
        retries=7,
        after={"ps": "Ready"},
        after_gangs={"first": "Completed"},
    )
    assert Lifecycle.from_record(life.to_record()) == life


# --- Killed in the middle --------------------------------------------------------------------------

_STORIES = {
    "restart job": ((a_policy(Event.POD_FAILED, Action.RESTART_JOB),), "running"),
    "restart role": ((a_policy(Event.POD_FAILED, Action.RESTART_ROLE),), "running"),
    "abort": ((a_policy(Event.POD_FAILED, Action.ABORT_JOB),), "suspended"),
    "terminate": ((a_policy(Event.POD_FAILED, Action.TERMINATE_JOB),), "Failed"),
    "complete": ((a_policy(Event.POD_FAILED, Action.COMPLETE_JOB),), "Complete"),
    "late": ((a_policy(Event.POD_EVICTED, Action.TERMINATE_JOB),), "Failed"),
}


def _ends(scene: Scene) -> str:
    states = {ended(scene, job) for job in (PS, WORKERS)}
    if states == {None}:
        if scene.running(PS, WORKERS) == 6:
            return "running"
        return "suspended" if scene.suspended(PS) and scene.suspended(WORKERS) else "in pieces"
    return ", ".join(sorted(str(state) for state in states))


def _tell(scene: Scene, event: Event) -> None:
    if event is Event.POD_EVICTED:
        evict(scene, WORKERS)
    else:
        fail(scene, WORKERS, 3)
    settle(scene, 60)


@pytest.mark.parametrize("after", [True, False], ids=["after the write", "before the write"])
@pytest.mark.parametrize("name", [*_STORIES])
def test_killed_at_any_write_a_policy_ends_the_same(name, after):
    policies, expected = _STORIES[name]

    def tell(scene: Scene) -> None:
        _tell(scene, policies[0].event)

    whole = started(*policies)
    tell(whole)
    assert _ends(whole) == expected
    killed = list(killed_at_each_write(lambda: started(*policies), tell, after=after))
    assert len(killed) >= 2
    assert {where: _ends(scene) for where, scene in killed if _ends(scene) != expected} == {}
