"""What no schema can say of a manifest: what an API server would refuse, and what cannot work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.floors import resolve
from plimsoll.domain.objects import parse_selector
from plimsoll.domain.selectors import matches
from plimsoll_testbed.model.declared import FieldPath
from plimsoll_testbed.model.durations import EXAMPLES, parse_duration
from plimsoll_testbed.scenario.problems import Problems, listed, rename, shown
from plimsoll_testbed.scenario.yamlfiles import Document

STARTUP: Final = "drill.plimsoll.dev/startup"
STOP: Final = "drill.plimsoll.dev/stop"
NEVER_READY: Final = "drill.plimsoll.dev/never-ready"
RUN: Final = "drill.plimsoll.dev/run"
_PREFIX: Final = "drill.plimsoll.dev/"


def check_object(kind: str, document: Document, problems: Problems) -> bool:
    """Note what makes no sense in an object whose shape is sound, and whether all does."""
    before = len(problems)
    spec: Mapping[str, Any] = document.value.get("spec") or {}
    if "template" in spec:
        if kind != "Job":  # the API server makes a Job's selector
            _selector(kind, document, problems)
        _pod(("spec", "template"), document, problems)
        _restarts(kind, document, problems)
    elif kind == "Pod":
        _pod((), document, problems)
    more = _MORE_CHECKS.get(kind)
    if more is not None:
        more(document, problems)
    return len(problems) == before


def _selector(kind: str, document: Document, problems: Problems) -> None:
    spec = document.value["spec"]
    labels = spec["template"].get("metadata", {}).get("labels", {})
    selector = spec["selector"]
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        problems.add(
            document.place("spec", "selector"),
            found="an empty selector",
            allowed="a selector that names labels of the template",
            cure="Add matchLabels",
        )
    elif not matches(parse_selector(selector), labels):
        problems.add(
            document.place("spec", "selector"),
            found=f"a selector that does not match the labels of the template, {shown(labels)}",
            allowed=f"a selector that takes the {kind}'s own pods",
            cure="Make selector and spec.template.metadata.labels agree",
        )


def _restarts(kind: str, document: Document, problems: Problems) -> None:
    """Jobs end, and all others do not. Source: the validation of each kind's pod template."""
    policy = document.value["spec"]["template"]["spec"].get("restartPolicy")
    allowed = ("OnFailure", "Never") if kind == "Job" else ("Always", None)
    if policy not in allowed:
        names = [name for name in allowed if name]
        problems.add(
            document.place("spec", "template", "spec", "restartPolicy"),
            found="nothing" if policy is None else shown(policy),
            allowed=f"{listed(names)} in a {kind}",
            cure=f"Write restartPolicy: {names[-1]}",
        )


def _pod(base: FieldPath, document: Document, problems: Problems) -> None:
    """Check a pod, or the template of one, that stands at `base`."""
    template = document.part(*base).value
    for i, container in enumerate(template["spec"]["containers"]):
        names = [c["name"] for c in template["spec"]["containers"][:i]]
        if container["name"] in names:
            problems.add(
                document.place(*base, "spec", "containers", i, "name"),
                found=f"the container {container['name']} again",
                allowed="each name once in a pod",
                cure="Rename one of the two",
            )
    for key, value in template.get("metadata", {}).get("annotations", {}).items():
        if key.startswith(_PREFIX):
            _behaviour((*base, "metadata", "annotations", key), value, document, problems)
    if not base:
        return
    for key in document.value["metadata"].get("annotations", {}):
        if key.startswith(_PREFIX):
            problems.add(
                document.place("metadata", "annotations", key),
                found=f"{key} on the object",
                allowed="it on the pod template",
                cure="Move it to spec.template.metadata.annotations",
            )


def _behaviour(path: FieldPath, value: str, document: Document, problems: Problems) -> None:
    key, place = str(path[-1]), document.place(*path)
    known = [STARTUP, STOP, NEVER_READY, RUN]
    if key not in known:
        problems.add(
            place,
            found=f"the unknown annotation {key}",
            allowed=listed(known),
            cure=rename(key, known, "Remove it"),
        )
    elif key == NEVER_READY:
        if value not in {"true", "false"}:
            problems.add(
                place, found=shown(value), allowed='"true" or "false"', cure='Write "true"'
            )
    else:
        try:
            parse_duration(value)
        except BadInput:
            problems.add(place, found=shown(value), allowed=EXAMPLES, cure="Write a duration")


def _strategy(document: Document, problems: Problems) -> None:
    spec = document.value["spec"]
    strategy = spec.get("strategy", {})
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate" and rolling is not None:
        problems.add(
            document.place("spec", "strategy", "rollingUpdate"),
            found="rollingUpdate with the type Recreate",
            allowed="rollingUpdate with the type RollingUpdate only",
            cure="Remove one of the two",
        )
    elif rolling is not None:
        missing, surge = rolling.get("maxUnavailable", "25%"), rolling.get("maxSurge", "25%")
        if not resolve(missing, 100, round_up=True) and not resolve(surge, 100, round_up=True):
            problems.add(
                document.place("spec", "strategy", "rollingUpdate"),
                found="maxUnavailable and maxSurge both 0",
                allowed="at least one of them above 0, or no rollout could ever begin",
                cure="Raise maxSurge",
            )


def _budget(document: Document, problems: Problems) -> None:
    spec = document.value["spec"]
    given = [name for name in ("minAvailable", "maxUnavailable") if name in spec]
    if len(given) != 1:
        problems.add(
            document.place("spec"),
            found="both minAvailable and maxUnavailable" if given else "neither of them",
            allowed="exactly one of minAvailable and maxUnavailable",
            cure="Remove one" if given else "Add one",
        )


def _autoscaler(document: Document, problems: Problems) -> None:
    spec = document.value["spec"]
    least, most = spec.get("minReplicas", 1), spec["maxReplicas"]
    if least > most:
        problems.add(
            document.place("spec", "minReplicas"),
            found=f"minReplicas {least} over maxReplicas {most}",
            allowed=f"at most {most}",
            cure="Raise maxReplicas or lower minReplicas",
        )


def _claims(document: Document, problems: Problems) -> None:
    seen: set[str] = set()
    for i, claim in enumerate(document.value["spec"].get("volumeClaimTemplates", ())):
        name = claim["metadata"]["name"]
        if name in seen:
            problems.add(
                document.place("spec", "volumeClaimTemplates", i, "metadata", "name"),
                found=f"the claim {name} again",
                allowed="each name once",
                cure="Rename one of the two",
            )
        seen.add(name)


_MORE_CHECKS: Mapping[str, Callable[[Document, Problems], None]] = {
    "Deployment": _strategy,
    "HorizontalPodAutoscaler": _autoscaler,
    "PodDisruptionBudget": _budget,
    "StatefulSet": _claims,
}
