"""How the stop times of workloads are known: for whoever asks before anything happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plimsoll.domain.disruptions.stop_times import StopTime, stop_time
from plimsoll.domain.kubernetes.pods import Pod, Ref
from plimsoll.domain.observation.observation import Observation
from plimsoll.domain.observation.observed_times import WorkloadTimes

NOTHING_SEEN = WorkloadTimes()


def stop_of(seen: Observation, pod: Pod) -> StopTime:
    """Return how long a pod needs to stop, by what is remembered of its workload."""
    return stop_time(pod, seen.times.get(seen.workload_of(pod), NOTHING_SEEN).stop)


def known_stops(seen: Observation, pods: Iterable[Pod]) -> Mapping[Ref, StopTime]:
    """Return the longest stop time of the pods of each workload."""
    found: dict[Ref, StopTime] = {}
    for pod in pods:
        workload, stop = seen.workload_of(pod), stop_of(seen, pod)
        known = found.get(workload)
        if known is None or known.seconds < stop.seconds:
            found[workload] = stop
    return found
