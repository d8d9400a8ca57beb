"""Which namespaces may use a queue, and what their priorities count for."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from plimsoll.adapters.kubernetes import Response
from plimsoll_batch.services.queue_observation import seen_in
from tests.support.queue_scenes import ONE_QUEUE, Scene, a_bare_pod, a_job

GRANT = "queues.plimsoll.dev/lab"


def queues(**more: Any) -> str:
    document = yaml.safe_load(ONE_QUEUE)
    document |= {key: more.pop(key) for key in ("priorities",) if key in more}
    document["queues"][0] |= more
    return yaml.safe_dump(document)


def labelled() -> Scene:
    return Scene(nodes=2, queues=queues(access="labelled"))


def grant(scene: Scene, value: str | None) -> None:
    scene.play.patch("/api/v1/namespaces/lab", {"metadata": {"labels": {GRANT: value}}})


def ranked(name: str, priority: str) -> Any:
    return a_job(name, annotations={"plimsoll.dev/priority": priority})


def told(scene: Scene, gang: str = "lab/one") -> str:
    cluster = scene.service().cluster
    configuration = cluster.configuration()
    assert configuration is not None
    seen = seen_in(cluster.read(), configuration, scene.clock.now())
    return next("; ".join(g.gates) for g in seen.state.gangs if str(g) == gang)


def test_a_namespace_without_a_grant_waits_and_is_told_which_label_is_missing():
    scene = labelled()
    scene.submit(a_job("one"))
    scene.run()
    assert scene.suspended("one")
    assert told(scene) == (
        "namespace lab may not use queue lab: whoever may grant it labels the namespace queues.plimsoll.dev/lab=true"
    )


def test_a_granted_namespace_starts():
    scene = labelled()
    grant(scene, "true")
    scene.submit(a_job("one"))
    scene.run()
    assert scene.running("one") == 1


@pytest.mark.parametrize("value", ["false", "True", "yes", ""])
def test_only_true_grants(value):
    scene = labelled()
    grant(scene, value)
    scene.submit(a_job("one"))
    scene.run()
    assert scene.suspended("one")


def test_bare_pods_wait_for_a_grant_too():
    scene = labelled()
    scene.submit(a_bare_pod("one"))
    scene.run()
    assert "may not use queue lab" in told(scene)


def test_where_a_grant_is_withdrawn_what_runs_ends_in_peace_and_what_waits_waits():
    scene = labelled()
    grant(scene, "true")
    scene.submit(a_job("one"))
    scene.run()
    grant(scene, None)
    scene.submit(a_job("two"))
    scene.run(30)
    assert scene.running("one") == 1
    assert scene.suspended("two")
    assert "may not use queue lab" in told(scene, "lab/two")


def test_a_grant_that_comes_while_the_planner_runs_starts_what_waits():
    scene = labelled()
    scene.submit(a_job("one"))
    scene.run()
    grant(scene, "true")
    scene.run()
    assert scene.running("one") == 1


def test_a_planner_that_may_not_list_namespaces_says_so_and_plans_the_other_queues():
    document = yaml.safe_load(queues(access="labelled"))
    document["queues"].append(
        {"name": "open", "resourceGroups": document["queues"][0]["resourceGroups"]}
    )
    scene = Scene(nodes=2, queues=yaml.safe_dump(document))
    forbidden = Response(status=403, body={"message": "no right"})
    answered = scene.wire.call

    def call(method: str, path: str, **more: Any) -> Response:
        return forbidden if path == "/api/v1/namespaces" else answered(method, path, **more)

    scene.wire.call = call  # type: ignore[method-assign] # a right is missing
    scene.submit(a_job("one"), a_job("two", queue="open"))
    scene.run()
    assert scene.suspended("one")
    assert "nobody knows whether namespace lab may use queue lab" in told(scene)
    assert scene.running("two") == 1


def test_a_named_priority_counts_as_the_file_says():
    scene = Scene(nodes=1, queues=queues(priorities={"prod": 1000, "dev": 0}))
    scene.submit(ranked("one", "dev"))
    scene.run()
    scene.submit(ranked("two", "prod"))
    scene.run(60)
    assert scene.running("two") == 1
    assert scene.suspended("one")


@pytest.mark.parametrize("stated", ["1000", "prd"])
def test_with_named_priorities_another_value_waits_and_is_told_the_names(stated):
    scene = Scene(nodes=1, queues=queues(priorities={"prod": 1000, "dev": 0}))
    scene.submit(ranked("one", stated))
    scene.run()
    assert scene.suspended("one")
    assert f"annotation plimsoll.dev/priority: must be one of prod, dev, not {stated}" in told(
        scene
    )


def test_a_name_without_named_priorities_is_no_priority():
    scene = Scene(nodes=1)
    scene.submit(ranked("one", "prod"))
    scene.run()
    assert "must be a whole number: the queues have no named priorities, not prod" in told(scene)


def test_a_priority_above_that_of_its_queue_counts_as_it_and_preempts_nobody():
    scene = Scene(nodes=1, queues=queues(maxPriority=5))
    scene.submit(ranked("one", "5"))
    scene.run()
    scene.submit(ranked("two", "1000000000"))
    scene.run(60)
    assert scene.running("one") == 1
    assert scene.suspended("two")
