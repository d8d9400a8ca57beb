"""What the cluster's own admission and queues do for us: the manifests beside our roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from plimsoll.adapters.kubernetes.dry_runs import POLICIES_SINCE, Trial, TrialResult
from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.doctor.findings import Finding, fail, info, ok
from plimsoll_cli.doctor.installation import Installation

QUEUES_SINCE: Final = (1, 29)
"""https://kubernetes.io/docs/concepts/cluster-administration/flow-control/"""


def fields(installation: Installation) -> Iterator[Finding]:
    """Say whether the cluster lets us change only the fields that we name, and those it does."""
    if _older(installation, POLICIES_SINCE):
        yield info(
            "Kubernetes before 1.30 has no policies for fields: the right to patch a workload is "
            "also the right to change what runs there",
            "upgrade the cluster, then " + installation.apply(),
        )
        return
    found = installation.probe.trials()
    yield _foreign([t for t in found if not t.ours], installation.apply())
    for trial in found:
        if trial.ours and trial.verdict in {TrialResult.BY_OUR_POLICY, TrialResult.BY_ANOTHER}:
            yield fail(
                f"what Plimsoll writes on {trial.about} would be refused: {trial.said}",
                f"where a policy says so: {installation.apply()}, of this version; where a webhook changes or "
                'refuses it: exempt the group "plimsoll" from that webhook',
                about="our fields",
            )


def _foreign(tried: Sequence[Trial], apply: str) -> Finding:
    """Judge the trials of what is not ours; `apply` is the command that applies our policies."""
    free = [t for t in tried if t.verdict is TrialResult.PASSED]
    others = [t for t in tried if t.verdict is TrialResult.BY_ANOTHER]
    held = [t for t in tried if t.verdict is TrialResult.BY_OUR_POLICY]
    if free:
        return fail(
            f"what is not Plimsoll's could be changed, as tried on {_listed(free)}: these policies are "
            f"missing, are of an older version or do not name us: {', '.join(sorted({t.policy for t in free}))}",
            f'{apply}, and see that the identity is in the group "plimsoll"',
        )
    if others:
        return info(
            f"whether our policies hold cannot be seen, because something else refuses: "
            f"{others[0].about}: {others[0].said}",
        )
    if held:
        return ok(f"only Plimsoll's own can be changed, as tried on {_listed(held)}")
    if tried:
        return ok("there is no right to write at all, so nothing that could be changed")
    return info("the cluster has nothing yet to try it on", "ask again when it has nodes")


def queue(installation: Installation) -> Iterator[Finding]:
    """Say whether requests of a drain have a queue of their own in the API server."""
    if _older(installation, QUEUES_SINCE):
        says = "Kubernetes before 1.29 does not know the manifest of our queue"
        yield info(says, "upgrade the cluster, then " + installation.apply())
        return
    found = installation.probe.queue()
    if found.used is None:
        yield info("the API server does not say which it uses: it may have none")
    elif found.uid is None:
        yield fail(
            "a drain waits in the API server behind every other client: there is no FlowSchema "
            "plimsoll",
            installation.apply(),
        )
    elif found.dangling:
        yield fail(
            "the FlowSchema plimsoll names a priority level that is not there", installation.apply()
        )
    elif found.uid != found.used:
        yield fail(
            "our requests do not go through the FlowSchema plimsoll, though it is there",
            'see that the identity is in the group "plimsoll", and that no FlowSchema for everybody '
            "has a lower matchingPrecedence: kubectl get flowschemas",
        )
    else:
        yield ok("requests go through a queue of their own, the FlowSchema plimsoll")


def _older(installation: Installation, than: tuple[int, int]) -> bool:
    """Return whether the API server says that it is older; what does not say is not."""
    try:
        found = installation.minor()
    except PlimsollError:
        return False
    return found is not None and found < than


def _listed(tried: Sequence[Trial]) -> str:
    return ", ".join(t.about for t in tried)
