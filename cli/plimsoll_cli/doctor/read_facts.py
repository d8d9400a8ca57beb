"""Reads all that `plimsoll doctor` judges.

Every part is asked by itself, so that one that cannot be read hides no other. The canary is sent
first and looked for last: it travels while the rest is read. Nothing is kept but its word.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib.metadata import version
from typing import Final

from plimsoll.domain.capacity import images_of, subnets_of
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll.domain.reports import CANARY_REPORTS, canary_seen
from plimsoll.services.ports import Clock, Reports
from plimsoll_cli.doctor.facts import Arrival, Asked, Facts
from plimsoll_cli.environment import Deployed

PAUSE_SECONDS: Final = 1.0
"""Between two looks for the canary."""


def read_facts(
    deployed: Deployed, cluster: Cluster, clock: Clock, *, word: str, wait: float
) -> Facts:
    """Return all that can be read of one cluster and the stack that looks after it.

    Args:
        deployed: The stack.
        cluster: A registered cluster.
        clock: The time.
        word: What the canary says; no two runs may use the same.
        wait: How many seconds the canary may take.
    """
    probes = deployed.probes
    sent = clock.now()
    canary = _asked(lambda: probes.send_canary(word))
    probe = probes.cluster(cluster)
    nodes = _asked(deployed.clusters.open(cluster).nodes)
    seen = () if isinstance(nodes, PlimsollError) else nodes
    groups = _asked(lambda: deployed.groups(cluster).list(seen))
    known = () if isinstance(groups, PlimsollError) else groups
    answer, rights = _asked(probe.version), _asked(probe.rights)
    eks = cluster.kind is ClusterKind.EKS
    limits = probes.limits(cluster)
    drainers = _asked(probe.drainers)
    beside = () if isinstance(drainers, PlimsollError) else drainers
    return Facts(
        now=clock.now(),
        version=version("plimsoll"),
        stack=deployed.stack,
        cluster=cluster,
        direct=_asked(lambda: probes.send_past_the_rules(f"{word}-direct", clock.now())),
        targets=_asked(probes.targets),
        answer=answer,
        rights=rights,
        trials=_asked(probe.trials),
        policies=_asked(probe.policies),
        queue=_asked(probe.queue),
        drainers=drainers,
        queue_delays={
            d.queue: _asked(partial(probes.queue_delay, cluster, d.queue))
            for d in beside
            if d.queue
        },
        marks=_asked(probe.marks),
        guards=_asked(probe.guards),
        unknown_roles=_asked(lambda: probes.unknown_roles(cluster)) if eks else (),
        nodes=nodes,
        index=_asked(lambda: deployed.index.find([n.instance for n in seen if n.instance])),
        groups=groups,
        group_settings=_asked(lambda: probes.group_settings(cluster, known)),
        seen=_asked(deployed.clusters.open(cluster).observe),
        webhooks=_asked(probe.webhooks),
        quota=_asked(limits.quota),
        addresses=_asked(lambda: limits.free_addresses(subnets_of(known))),
        images=_asked(lambda: limits.images(images_of(known))),
        simulated=_asked(probes.simulated),
        concurrency=_asked(probes.concurrency),
        canary=canary
        if isinstance(canary, PlimsollError)
        else _asked(lambda: _arrival(deployed.reports, clock, word, sent, wait)),
    )


def _arrival(reports: Reports, clock: Clock, word: str, sent: datetime, wait: float) -> Arrival:
    while True:
        seen = canary_seen(reports.list(CANARY_REPORTS), word)
        waited = (clock.now() - sent).total_seconds()
        if seen is not None or waited >= wait:
            return Arrival(sent=sent, seen=seen, waited_seconds=waited)
        clock.sleep(PAUSE_SECONDS)


def _asked[T](ask: Callable[[], T]) -> Asked[T]:
    try:
        return ask()
    except PlimsollError as error:
        return error
