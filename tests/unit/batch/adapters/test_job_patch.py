"""The patches that start, suspend and steer objects of each kind, applied as an API server does."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime

import pytest

from plimsoll.domain.kubernetes import Toleration
from plimsoll_batch.adapters.kubernetes import job_patch
from plimsoll_batch.domain.frameworks import at
from plimsoll_batch.domain.jobs import Admission, PodSetAdmission, Steering, Stop
from plimsoll_simulation.fake_cluster.patches import patched
from plimsoll_simulation.fake_cluster.refusals import RefusedError
from tests.support.framework_samples import ROWS, jobs_of, owned_by, sample

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
SPOT = Toleration(key="spot", operator="Exists", value="", effect="NoSchedule")
IN_PLACE = sorted(kind for kind, row in ROWS.items() if row.overrides is None)


def job_of(obj):
    """Read an object; a TrainJob with the JobSet that was made for it."""
    children = []
    if obj["kind"] == "TrainJob":
        children = [owned_by(obj, sample("JobSet", queue=None))]
    return jobs_of(obj, *children)[obj["kind"]]


def applied(obj, patch):
    return patched(deepcopy(obj), [*patch], "application/json-patch+json")


def started(obj, pool, *tolerations):
    """Return an object as the planner starts it in a pool."""
    job = job_of(obj)
    steering = Steering(labels={"pool": pool}, tolerations=tolerations)
    sets = {
        each.name: PodSetAdmission(
            flavors={"cpu": pool},
            steering=Steering() if each.at is None else steering,
            standing=Steering() if job.admission is None else job.admission.in_template(each.name),
        )
        for each in job.sets
    }
    return applied(obj, job_patch.started(job, Admission(plan=f"p-{pool}", at=NOON, sets=sets)))


def suspended(obj):
    stop = Stop(plan="p", at=NOON, why="makes way")
    return applied(obj, job_patch.suspended(job_of(obj), stop))


def steered(obj):
    """The node selectors and tolerations where an object's pods have them."""
    found = []
    for each in job_of(obj).sets:
        if each.at is not None:
            there = obj
            for part in each.at:
                there = there[part]
            found.append((there.get("nodeSelector"), there.get("tolerations")))
    return found


@pytest.mark.parametrize("kind", IN_PLACE)
def test_one_patch_starts_an_object_and_steers_each_of_its_templates(kind):
    obj = started(sample(kind), "a", SPOT)
    job = job_of(obj)
    assert not job.suspended
    assert job.admission is not None
    assert job.admission.started
    toleration = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}
    assert steered(obj) == [({"pool": "a"}, [toleration])] * len(steered(obj))
    assert steered(obj)


@pytest.mark.parametrize("kind", IN_PLACE)
def test_it_moves_to_another_flavor_and_nothing_is_left_of_the_first(kind):
    moved = steered(started(suspended(started(sample(kind), "a", SPOT)), "b"))
    assert moved == [({"pool": "b"}, [])] * len(moved)


@pytest.mark.parametrize("kind", IN_PLACE)
def test_what_an_owner_wrote_of_the_pods_stays(kind):
    obj = sample(kind)
    for each in job_of(obj).sets:
        if each.at is not None:
            there = obj
            for part in each.at:
                there = there[part]
            there["nodeSelector"] = {"mine": "1"}
            there["tolerations"] = [{"key": "mine", "operator": "Exists", "tolerationSeconds": 9}]
    moved = started(suspended(started(obj, "a", SPOT)), "b")
    mine = {"key": "mine", "operator": "Exists", "tolerationSeconds": 9}
    assert steered(moved) == [({"mine": "1", "pool": "b"}, [mine])] * len(steered(moved))


def test_the_overrides_of_a_train_job_keep_what_its_owner_wrote_there():
    obj = sample("TrainJob")
    mine = {"targetJobs": [{"name": "workers"}], "serviceAccountName": "trainer"}
    obj["spec"]["podSpecOverrides"] = [mine]
    moved = started(suspended(started(obj, "a", SPOT)), "b")
    assert moved["spec"]["podSpecOverrides"] == [
        mine,
        {"targetJobs": [{"name": "driver"}], "nodeSelector": {"pool": "b"}},
        {"targetJobs": [{"name": "workers"}], "nodeSelector": {"pool": "b"}},
    ]


@pytest.mark.parametrize("kind", ROWS)
def test_a_suspended_object_says_why_and_is_otherwise_as_it_was(kind):
    before = started(sample(kind), "a")
    after = suspended(before)
    assert at(after, ROWS[kind].suspend) is True
    assert job_of(after).stop.why == "makes way"
    assert (
        applied(after, [{"op": "add", "path": f"/{'/'.join(ROWS[kind].suspend)}", "value": False}])[
            "spec"
        ]
        == before["spec"]
    )


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_an_object_that_was_made_anew_or_changed_meanwhile_is_not_touched(field):
    obj = sample("JobSet")
    patch = job_patch.suspended(job_of(obj), Stop(plan="p", at=NOON, why="x"))
    obj["metadata"][field] = "another"
    with pytest.raises(RefusedError):
        applied(obj, patch)
