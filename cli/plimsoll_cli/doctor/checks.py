"""What is wrong with an installation, decided from what was read of it, each with its cure.

A check is a function of the facts that yields findings. To add one, write it and put it in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.doctor.cluster_checks import access, answers, index, rights
from plimsoll_cli.doctor.concurrency import concurrency
from plimsoll_cli.doctor.facts import Facts
from plimsoll_cli.doctor.field_checks import fields, queue
from plimsoll_cli.doctor.findings import Finding, skipped
from plimsoll_cli.doctor.iam_simulation import aws_rights
from plimsoll_cli.doctor.karpenter_checks import node_pools
from plimsoll_cli.doctor.node_group_checks import (
    addresses,
    groups,
    maxima,
    opt_outs,
    quota,
    start_up,
    templates,
    tolerations,
)
from plimsoll_cli.doctor.other_drainers import other_drainers
from plimsoll_cli.doctor.policy_checks import policies
from plimsoll_cli.doctor.stack_checks import (
    canary,
    delivery,
    drills,
    kill_switch,
    mode,
    senders,
    stack,
)
from plimsoll_cli.doctor.storm_checks import budgets, quotas, webhooks

type Check = Callable[[Facts], Iterable[Finding]]

CHECKS: Final[Mapping[str, Check]] = {
    "stack": stack,
    "kill switch": kill_switch,
    "drills": drills,
    "mode": mode,
    "AWS rights": aws_rights,
    "concurrency": concurrency,
    "notices": canary,
    "senders": senders,
    "delivery": delivery,
    "cluster": answers,
    "access entries": access,
    "rights": rights,
    "fields": fields,
    "policies": policies,
    "queue": queue,
    "node index": index,
    "other drainers": other_drainers,
    "node groups": groups,
    "NodePools": node_pools,
    "webhooks": webhooks,
    "quotas": quotas,
    "budgets": budgets,
    "group maxima": maxima,
    "quota": quota,
    "addresses": addresses,
    "launch templates": templates,
    "start-up": start_up,
    "tolerations": tolerations,
    "opt-outs": opt_outs,
}
"""In the order in which a notice meets what they are about."""


def findings_of(facts: Facts) -> Iterator[Finding]:
    """Yield the findings of every check: one that lacks its facts is skipped, with the reason."""
    for name, check in CHECKS.items():
        try:
            yield from check(facts)
        except PlimsollError as error:
            yield skipped(name, error)
