"""What programs that remove nodes ask of a node before they do."""

from __future__ import annotations

from plimsoll.domain.kubernetes import Budget, Node, Pod, matches, replacement_of
from plimsoll.domain.observation import Observation, leaves
from plimsoll.domain.scheduling import ClusterSnapshot


def movable(seen: Observation, node: Node) -> list[Pod]:
    """Return the pods that would have to leave a node."""
    return [pod for pod in seen.on_node.get(node.name, ()) if leaves(pod) and pod.deleting is None]


def budgets_of(seen: Observation, pod: Pod) -> list[Budget]:
    """Return the budgets that cover a pod."""
    return [
        budget
        for budget in seen.budgets
        if budget.ref.namespace == pod.namespace and matches(budget.selector, pod.labels)
    ]


def fit_elsewhere(seen: Observation, node: Node) -> bool:
    """Whether all that would have to leave a node fits on the others."""
    others = [each for each in seen.nodes if each.name != node.name]
    trial = ClusterSnapshot(others, [p for p in seen.pods if p.node != node.name], seen.claims)
    for pod in map(replacement_of, movable(seen, node)):
        place = trial.choose(pod)
        if place is None:
            return False
        trial.place(pod, place.name)
    return True
