"""Whether the batch queues of a cluster and its admission policies say the same of who may use which queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll_cli.doctor.findings import Finding, fail, info, ok, unread
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.terminal import first_of

POLICY: Final = "plimsoll-queue-access"
_FOLDER: Final = "infra/cluster/batch-access"
_MOST_NAMED: Final = 5


@unread("ask as an administrator of the cluster")
def access(installation: Installation) -> Iterator[Finding]:
    """Compare the access of each queue in the file with the policy that refuses objects of other namespaces."""
    queues = installation.probe.queues()
    if queues is None:
        return
    holds = POLICY in installation.probe.policies().digests
    labelled = sorted(queue.name for queue in queues.queues if queue.labelled)
    open_ = sorted(queue.name for queue in queues.queues if not queue.labelled)
    if holds and open_:
        yield fail(
            f"the file lets every namespace use {first_of(open_, _MOST_NAMED)}, and the policy {POLICY} refuses"
            " namespaces without their label",
            "write access: labelled for them, and `plimsoll queues apply`; or kubectl delete -k "
            + _FOLDER,
        )
    elif labelled and not holds:
        yield info(
            f"queues {first_of(labelled, _MOST_NAMED)} are for labelled namespaces, and the planner alone holds"
            " others back: whoever may patch a namespace may label it",
            f"kubectl apply -k {_FOLDER}",
        )
    elif labelled:
        yield ok(f"the file and the policy {POLICY} agree: queues are for labelled namespaces")
