"""What the cluster itself would hold against evictions and replacements in a storm: webhooks, quotas, budgets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from plimsoll.domain.disruptions import why_never_released
from plimsoll.domain.kubernetes import Pod, Ref
from plimsoll.domain.observation import leaves
from plimsoll_cli.doctor.findings import Finding, info, ok, unread
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.terminal import first_of

NAMED: Final = 3
"""How many workloads or budgets a finding names."""


@unread(
    "as an administrator: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
)
def webhooks(installation: Installation) -> Iterator[Finding]:
    """Name the webhooks that can refuse or slow evictions, and those whose failure refuses pods."""
    told = [each for each in installation.probe.webhooks() if each.evictions or each.fails]
    for each in told:
        about = "evictions" if each.evictions else "new and changed pods"
        answers = "refuses them" if each.fails else "lets them pass"
        yield info(
            f"it is asked about {about}, and {answers} where it fails or takes longer than {each.seconds} s. In a storm "
            "its own pods may be among those that leave",
            "give it failurePolicy: Ignore and timeoutSeconds: 2, or run two replicas of it on on-demand nodes",
            about=f"webhook {each.name}",
        )
    if not told:
        yield ok("no admission webhook can refuse an eviction, or pods by its failure")


def quotas(installation: Installation) -> Iterator[Finding]:
    """Name the ResourceQuotas that leave no headroom for one more pod: then no pod they bind can be released."""
    seen = installation.observation()
    short: dict[Ref, set[str]] = defaultdict(set)
    for pod in seen.pods:
        workload = seen.workload.get(seen.workload_of(pod))
        if workload is None or not leaves(pod) or why_never_released(seen, workload, pod):
            continue
        for quota in seen.quotas_of(pod):
            if not quota.leaves(pod.scheduling.requests):
                short[quota.ref].add(str(workload.ref))
    for ref, workloads in sorted(short.items()):
        yield info(
            f"it leaves no headroom for another pod of {first_of(sorted(workloads), NAMED)}: they are evicted before a replacement runs",
            "raise spec.hard by what the pods of one node request, by pods and by each resource that it limits",
            about=f"{ref}",
        )
    if not short:
        yield ok("every ResourceQuota leaves headroom for a replacement")


def budgets(installation: Installation) -> Iterator[Finding]:
    """Name the PodDisruptionBudgets that let no pod go although all are Ready, and pods that several cover."""
    seen = installation.observation()
    covered: dict[Ref, list[Pod]] = defaultdict(list)
    shared: dict[Ref, set[Ref]] = defaultdict(set)
    for pod in seen.pods:
        found = seen.budgets_of(pod) if leaves(pod) else ()
        for budget in found:
            covered[budget.ref].append(pod)
            shared[budget.ref] |= {each.ref for each in found} - {budget.ref}
    told = False
    for budget in sorted(seen.budgets, key=lambda b: b.ref):
        pods, others = covered[budget.ref], shared[budget.ref]
        if others:
            told = True
            yield info(
                f"it covers pods that {first_of(sorted(map(str, others)), NAMED)} covers too: the Eviction API refuses them",
                "narrow the selector of one, or delete it",
                about=f"{budget.ref}",
            )
        elif (
            pods
            and not budget.guards
            and not budget.disruptions_allowed
            and all(pod.serving for pod in pods)
        ):
            told = True
            yield info(
                f"all {len(pods)} of its pods are Ready, and it lets none go: it holds each drain up, and is overruled at "
                "eviction deadlines",
                "set maxUnavailable: 1, or add a replica",
                about=f"{budget.ref}",
            )
    if not told:
        yield ok("every PodDisruptionBudget lets a pod go while all are Ready")
