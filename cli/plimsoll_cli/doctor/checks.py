"""The checks of `plimsoll doctor`.

A check is a function that asks an installation, and yields findings, each with its cure. To add one, write
it and put it in `CHECKS`. An error that it raises makes its finding `skipped`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.doctor.aws_checks import aws_rights
from plimsoll_cli.doctor.cluster_checks import access, answers, index, rights
from plimsoll_cli.doctor.concurrency_checks import concurrency
from plimsoll_cli.doctor.drainer_checks import other_drainers
from plimsoll_cli.doctor.field_checks import fields, queue
from plimsoll_cli.doctor.findings import Finding, skipped
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.doctor.node_group_checks import (
    addresses,
    groups,
    maxima,
    node_pools,
    opt_outs,
    quota,
    start_up,
    templates,
    tolerations,
)
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

type Check = Callable[[Installation], Iterable[Finding]]

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


def findings_of(installation: Installation) -> Sequence[Finding]:
    """Return the findings of every check. The canary is looked for last, after it had time to travel."""
    found = {
        name: list(_found_by(name, installation))
        for name in sorted(CHECKS, key=lambda name: CHECKS[name] is canary)
    }
    return [finding for name in CHECKS for finding in found[name]]


def _found_by(name: str, installation: Installation) -> Iterator[Finding]:
    try:
        for finding in CHECKS[name](installation):
            yield finding if finding.check else replace(finding, check=name)
    except PlimsollError as error:
        yield replace(skipped(error), check=name)
