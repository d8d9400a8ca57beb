"""The skew that a release leaves where spread constraints count the released pod.

Without `matchLabelKeys` or `nodeTaintsPolicy: Honor` a constraint counts a pod until it is gone, so its
replacement may have to go to another domain: three pods over three zones can end as 2, 1, 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from plimsoll.domain.actions import Release
from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.kubernetes import HASHES, Pod, replacement_of
from plimsoll.domain.scheduling import Headroom


def skew_left(
    disruption: WorkloadDisruption, headroom: Headroom, releases: Sequence[Release]
) -> str | None:
    """Name the skew beyond a constraint that is left once all released pods have gone, if any.

    Known only where every replacement has its place.
    """
    old = [*disruption.released, *(release.pod for release in releases)]
    left = [*disruption.staying, *(replacement_of(release.pod) for release in releases)]
    left = [p for p in left if not p.released]
    places = [headroom.snapshot.where(p) for p in left]
    if not old or None in places:
        return None
    return next(_skews(old[0], [place for place in places if place], headroom), None)


def _skews(pod: Pod, places: Sequence[str], headroom: Headroom) -> Iterator[str]:
    for constraint in pod.scheduling.spread:
        counts_it = constraint.hard and constraint.node_taints_policy != "Honor"
        if not counts_it or not {*HASHES}.isdisjoint(constraint.match_label_keys):
            continue
        key, nodes = constraint.topology_key, headroom.snapshot.nodes
        count = Counter(dict.fromkeys(headroom.contention.domains(key), 0))
        count.update(
            nodes[place].labels[key]
            for place in places
            if place not in headroom.closed and key in nodes[place].labels
        )
        skew = max(count.values(), default=0) - min(count.values(), default=0)
        if skew > constraint.max_skew:
            yield (
                f"its spread over {constraint.topology_key} counts released pods and will be left "
                f"with a skew of {skew}: add matchLabelKeys or nodeTaintsPolicy: Honor to it"
            )
