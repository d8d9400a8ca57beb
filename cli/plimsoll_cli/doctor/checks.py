"""The checks of `plimsoll doctor`.

A check is a function that asks an installation, and yields findings, each with its cure. To add one, write
it and put it in `CHECKS`. An error that it raises makes its finding `skipped`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.doctor import (
    aws_checks,
    cluster_checks,
    concurrency_checks,
    drainer_checks,
    field_checks,
    node_group_checks,
    policy_checks,
    queue_checks,
    stack_checks,
    storm_checks,
    version_checks,
)
from plimsoll_cli.doctor.findings import Finding, skipped
from plimsoll_cli.doctor.installation import Installation

type Check = Callable[[Installation], Iterable[Finding]]

CHECKS: Final[Mapping[str, Check]] = {
    "stack": stack_checks.stack,
    "kill switch": stack_checks.kill_switch,
    "drills": stack_checks.drills,
    "mode": stack_checks.mode,
    "AWS rights": aws_checks.aws_rights,
    "concurrency": concurrency_checks.concurrency,
    "notices": stack_checks.canary,
    "senders": stack_checks.senders,
    "delivery": stack_checks.delivery,
    "cluster": cluster_checks.answers,
    "API versions": version_checks.api_versions,
    "access entries": cluster_checks.access,
    "rights": cluster_checks.rights,
    "fields": field_checks.fields,
    "policies": policy_checks.policies,
    "queue access": queue_checks.access,
    "queue": field_checks.queue,
    "node index": cluster_checks.index,
    "other drainers": drainer_checks.other_drainers,
    "node groups": node_group_checks.groups,
    "NodePools": node_group_checks.node_pools,
    "webhooks": storm_checks.webhooks,
    "quotas": storm_checks.quotas,
    "budgets": storm_checks.budgets,
    "group maxima": node_group_checks.maxima,
    "quota": node_group_checks.quota,
    "addresses": node_group_checks.addresses,
    "launch templates": node_group_checks.templates,
    "start-up": node_group_checks.start_up,
    "tolerations": node_group_checks.tolerations,
    "opt-outs": node_group_checks.opt_outs,
}
"""In the order in which a notice meets what they are about."""


def findings_of(installation: Installation) -> Sequence[Finding]:
    """Return the findings of every check. The canary is looked for last, after it had time to travel."""
    found = {
        name: list(_found_by(name, installation))
        for name in sorted(CHECKS, key=lambda name: CHECKS[name] is stack_checks.canary)
    }
    return [finding for name in CHECKS for finding in found[name]]


def _found_by(name: str, installation: Installation) -> Iterator[Finding]:
    try:
        for finding in CHECKS[name](installation):
            yield finding if finding.check else replace(finding, check=name)
    except PlimsollError as error:
        yield replace(skipped(error), check=name)
