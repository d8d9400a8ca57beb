"""When an interruption is over although its node stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.interruptions import SCALE_DOWN, Interruption, in_this_life
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.notices import RebalanceRecommendation
from plimsoll.domain.observation import UNNOTICED, Observation, is_empty

OVERDUE: Final = timedelta(minutes=10)
"""How long after its deadline an instance that still runs is believed to be interrupted."""

EXPIRY: Final = timedelta(hours=1)
"""How long a node stays cordoned on a recommendation alone: so no more nodes are than may be in an hour."""


def of_present_launches(seen: Observation) -> Observation:
    """Return what is seen without what records say of former launches, where EC2 tells of a later one.

    A record of nothing else stays as it is: `why_over` has it removed.
    """
    kept = {
        node.name: present
        for node in seen.nodes
        if (found := node.interruption) and (said := seen.instances.get(node.instance or ""))
        if (present := in_this_life(found, launched=said.launched)) not in {None, found}
    }
    if not kept:
        return seen
    nodes = [
        replace(node, interruption=kept.get(node.name, node.interruption)) for node in seen.nodes
    ]
    return replace(seen, nodes=nodes)


def why_over(seen: Observation, node: Node, now: datetime) -> str | None:
    """Say why an interruption is over although the node stays; None while it is not."""
    return next(_why_over(seen, node, now), None)


def _why_over(seen: Observation, node: Node, now: datetime) -> Iterator[str]:
    found, said = node.interruption, seen.instances.get(node.instance or "")
    if found is None:
        return
    # The first reason is the one that is told: what the record and the policy say comes before what EC2 says.
    if found.withdrawn:
        yield "everything that was announced has been called off"
    if not (response := seen.policy.response(found)).writes:
        yield f"the policy of the cluster {response}s {found.kind}"
    if found.kind == SCALE_DOWN and not is_empty(seen, node):
        yield "pods stand on it again"
    if said is None or said.interrupted:
        return
    if (launched := said.launched) is not None and _runs_again(seen, node, launched, now):
        yield f"its instance was launched again, at {launched:%Y-%m-%dT%H:%M:%SZ}"
    if overdue(node, now):
        yield "its deadline is long past, and EC2 says that its instance runs on"
    if _expired(found, now):
        yield f"no interruption followed the {found.kind} within {EXPIRY}"


def _runs_again(seen: Observation, node: Node, launched: datetime, now: datetime) -> bool:
    """Whether all that a record says is of a former launch of the instance, and pods may come to the node again.

    For `UNNOTICED` a Node may say Ready of the launch before, and a new pod would wait there for a kubelet. Pods that
    stand on the node run again with it.
    """
    found, since = node.interruption, node.ready_since
    if found is None or in_this_life(found, launched=launched) is not None:
        return False
    heard = since is None or since >= launched or now >= launched + UNNOTICED
    return heard or not is_empty(seen, node)


def _expired(found: Interruption, now: datetime) -> bool:
    """Whether a recommendation was followed by nothing; a later one counts anew."""
    if found.cordoned is None or {n.kind for n in found.standing} != {RebalanceRecommendation.kind}:
        return False
    return max(found.cordoned, found.notices[-1].time) + EXPIRY < now


def ended_by_owner(seen: Observation, node: Node) -> bool:
    """Whether nothing was announced: an owner too may terminate what spot reclaims in any case."""
    announced = node.interruption.standing if node.interruption else ()
    said = seen.instances.get(node.instance or "")
    by_owner = said is not None and said.interrupted and said.ended_by_owner
    return by_owner and {n.kind for n in announced} == {"state-change"}


def overdue(node: Node, now: datetime) -> bool:
    """Whether its deadline is long past and the node is Ready all the same."""
    deadline = None if node.interruption is None else node.interruption.deadline
    return node.ready and deadline is not None and deadline + OVERDUE < now
