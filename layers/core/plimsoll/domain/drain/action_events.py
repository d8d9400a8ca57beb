"""Which actions are told as Events of Kubernetes, and in what words."""

from __future__ import annotations

from plimsoll.domain.actions import (
    AboutNode,
    AboutPod,
    Action,
    Cordon,
    Evict,
    ForceDelete,
)
from plimsoll.domain.disruptions import least_seconds
from plimsoll.domain.errors import BadInput, Blocked, PlimsollError, Refused
from plimsoll.domain.kubernetes import (
    LONGEST_MESSAGE_CHARACTERS,
    ClusterEvent,
    Ref,
    about_node,
    event_of_cordon,
)


def event_of_action(
    action: Action, *, overruled: str | None = None, error: PlimsollError | None = None
) -> ClusterEvent | None:
    """Return the Event of an action that was tried; None where there is nothing to tell.

    Args:
        action: what was tried.
        overruled: how a budget had refused the pod that was deleted all the same.
        error: why it was not done. What the next try may do is not told, but for a budget's refusal.
    """
    if isinstance(action, AboutPod):
        return _of_pod(action, overruled, error)
    if error is not None or not isinstance(action, AboutNode):
        return None
    if isinstance(action, Cordon):
        return event_of_cordon(action.interruption, action.reason)
    reason, record = action.event, action.node.interruption
    if reason is None:
        return None
    identity = "" if record is None else record.identity
    return about_node(action.node.name, identity, reason, action.reason)


def _of_pod(
    action: AboutPod, overruled: str | None, error: PlimsollError | None
) -> ClusterEvent | None:
    pod, message = action.pod, action.reason
    reason, warning = action.event, True
    match action:
        case _ if isinstance(error, Blocked | Refused | BadInput):
            reason = "EvictionBlocked" if isinstance(error, Blocked) else "Refused"
            message = str(error)
        case _ if error is not None:
            return None
        case Evict() if overruled is not None:
            reason, message = "BudgetOverruled", f"{message}; its budget refused: {overruled}"
        case Evict(grace_seconds=int() as grace) if grace < least_seconds(pod):
            reason = "StopTimeCutShort"
        case _:
            warning = isinstance(action, ForceDelete)
    if reason is None:
        return None
    return ClusterEvent(
        about=Ref("Pod", pod.namespace, pod.name),
        uid=pod.uid,
        reason=reason,
        message=message[:LONGEST_MESSAGE_CHARACTERS],
        warning=warning,
    )
