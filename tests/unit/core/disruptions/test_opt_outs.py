"""The mark by which an owner opts out: every spelling that YAML calls true counts, and another value is named."""

from __future__ import annotations

import pytest

from plimsoll.domain.actions import Evict, Release
from plimsoll.domain.disruptions import misread_opt_outs
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import IGNORE, is_ignored, misread_mark
from tests.support.builders import a_deployment, a_node, a_pod
from tests.support.observations import actions, interrupted, looked, noon


@pytest.mark.parametrize("said", ["true", "True", "TRUE", "yes", "Yes", "on", "ON", "y", " true "])
@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_what_yaml_calls_true_opts_out(place: str, said: str):
    pod = a_pod("web-1", node="spot", **{place: {IGNORE: said}})
    seen = looked([interrupted("spot"), a_node("od")], [pod], [a_deployment(replicas=1)])
    plan = plan_drain(seen, noon(60))
    assert not actions(plan, Release)
    assert not actions(plan, Evict)
    assert not [
        words for words in plan.notes.get("spot", ()) if IGNORE in words and "nothing" in words
    ]


@pytest.mark.parametrize("said", ["ja", "1", "enabled", "tru", "x" * 300])
def test_what_is_not_understood_opts_out_of_nothing_and_the_plan_names_it(said: str):
    pod = a_pod("web-1", node="spot", annotations={IGNORE: said})
    seen = looked([interrupted("spot"), a_node("od")], [pod], [a_deployment(replicas=1)])
    plan = plan_drain(seen, noon(60))
    assert actions(plan, Release) + actions(plan, Evict)
    [words] = [words for words in plan.notes["spot"] if IGNORE in words]
    assert said[:63] in words
    assert len(words) < 250


@pytest.mark.parametrize("said", ["false", "No", "off", "n", ""])
def test_what_yaml_calls_false_is_not_named(said: str):
    assert not is_ignored({IGNORE: said})
    assert misread_mark({IGNORE: said}) is None
    assert misread_mark({}) is None


def test_a_workload_is_named_once_and_not_where_another_mark_opts_it_out():
    pods = [a_pod(f"web-{n}", node="od", annotations={IGNORE: "ja"}) for n in (1, 2)]
    seen = looked([a_node("od")], pods, [a_deployment(replicas=2)])
    [found] = misread_opt_outs(seen, {"od"})
    assert (str(found.workload), found.said) == ("Deployment default/web", "ja")
    out = a_pod("web-1", node="od", annotations={IGNORE: "ja"}, labels={IGNORE: "yes"})
    assert not [*misread_opt_outs(looked([a_node("od")], [out], [a_deployment()]), {"od"})]
