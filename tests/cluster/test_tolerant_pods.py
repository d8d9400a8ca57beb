"""An operator that tolerates every taint, on the emptiest node: the real scheduler brings its replacement back there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from plimsoll.domain.interruptions import Interruption, LifecycleHook, NoticeRecord
from plimsoll.domain.node_groups import Instance
from tests.cluster.placing import Cast
from tests.support.builders import a_group
from tests.support.fake_clusters import a_deployment, a_template

pytestmark = pytest.mark.cluster

ENOUGH: Final = timedelta(seconds=25)
"""The replacement starts within a second or two, and the next plan would have ended the node."""
HOOK: Final = LifecycleHook(
    group="spot",
    name="plimsoll",
    timeout=timedelta(minutes=5),
    longest=timedelta(hours=8),
    ours=True,
)


def an_operator() -> dict[str, Any]:
    template = a_template(
        "operator",
        annotations={"startup": "1s", "stop": "1s"},
        tolerations=[{"operator": "Exists"}],
    )
    return a_deployment("operator", 1, template)


def interrupt_the_emptiest(cast: Cast, kind: str, ends: timedelta | None = None) -> str:
    """Let the operator stand alone on a node, which is interrupted; return the instance of the node."""
    ground = cast.ground
    [name] = ground.nodes("spot")
    ground.apply(an_operator())
    ground.until(lambda: len(ground.serving("operator")) == 1)
    others = ground.nodes("base-0", "base-1")
    ground.apply(a_deployment("web", 2, a_template("web", cpu="6")))
    ground.until(lambda: len(ground.serving("web")) == len(others))
    now = datetime.now(UTC)
    launched = now - timedelta(hours=1)
    [node] = [node for node in cast.api.nodes() if node.name == name]
    instance = node.instance or ""
    about = HOOK.name if kind == "lifecycle-terminate" else None
    notice = NoticeRecord(
        kind=kind,
        time=now,
        id=name,
        ends=None if ends is None else now + ends,
        about=about,
        guessed=about is not None,
    )
    record = Interruption(
        instance=instance, launched=launched, node=name, notices=(notice,), cordoned=now
    )
    cast.api.cordon(node, record)
    cast.aws.known[instance] = Instance(id=instance, state="running", launched=launched)
    group = replace(
        a_group("spot", capacity="spot", desired=1), instances=frozenset({instance}), renew=True
    )
    if about is not None:
        group = replace(group, waiting=frozenset({instance}), hooks=(HOOK,))
    cast.aws.groups = [group]
    return instance


def least_serving(cast: Cast) -> int:
    """Reconcile for a while, and return the fewest Ready pods that the operator had meanwhile."""
    least, until = 1, datetime.now(UTC) + ENOUGH
    while datetime.now(UTC) < until:
        cast.services.drains.reconcile("ground", "test", seconds=1)
        least = min(least, len(cast.ground.serving("operator")))
    return least


def where(cast: Cast) -> set[str]:
    return {
        pod["spec"]["nodeName"].removeprefix(f"{cast.ground.name}-")
        for pod in cast.ground.serving("operator")
    }


def test_the_hook_of_a_node_to_which_the_replacement_returned_is_kept_up(cast: Cast):
    instance = interrupt_the_emptiest(cast, "lifecycle-terminate", timedelta(minutes=5))
    [before] = cast.ground.serving("operator")

    assert least_serving(cast) == 1
    [after] = cast.ground.serving("operator")
    assert after["metadata"]["uid"] != before["metadata"]["uid"], "it was not replaced first"
    assert where(cast) == {"spot"}, "the scheduler did not bring the replacement back"
    assert instance in cast.aws.beaten
    assert cast.aws.completed == []


def test_on_advice_the_operator_stays_and_its_instance_is_not_terminated(cast: Cast):
    interrupt_the_emptiest(cast, "rebalance-recommendation")
    [before] = cast.ground.serving("operator")

    assert least_serving(cast) == 1
    [after] = cast.ground.serving("operator")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert cast.aws.renewed == []
