"""The metrics that alarms and dashboards read; a test compares them with the template."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

type Unit = Literal["Count", "Percent", "Seconds"]


class Metric(StrEnum):
    """The name of a metric."""

    NOTICE_AGE_AT_CORDON = "NoticeAgeAtCordon"
    """Seconds from an event's own time to the patch that cordons its node."""
    NOTICE_AGE_AT_RETRY = "NoticeAgeAtRetry"
    """Seconds that a notice has been in its queue when an attempt at it failed and another one follows."""
    BUDGETS_OVERRULED = "BudgetsOverruled"
    """Pods deleted at their eviction deadline, although a PodDisruptionBudget refused their eviction."""
    CANARIES_SEEN = "CanariesSeen"
    """Canaries of the schedule that went the whole way of a notice."""
    CAPACITY_SHORT = "CapacityShort"
    """Things that would keep nodes from coming if all spot nodes of a cluster went at once."""
    CLUSTERS_NOT_RESYNCED = "ClustersNotResynced"
    """Clusters that a resync or a placement run could not wholly read or write."""
    FRAMES_LOST = "FramesLost"
    """Frames of storms that were not kept, and messages that a storm begins that were not sent."""
    INJECTIONS_REMOVED = "InjectionsRemoved"
    """Admission policies that were unbound, because pods of a dry run were refused or got old entries."""
    NOTICES_DEAD_LETTERED = "NoticesDeadLettered"
    """Notices set aside because no further attempt could help."""
    NOTICES_IGNORED = "NoticesIgnored"
    """Notices that ask for nothing, and malformed events of sources that are not AWS's."""
    NOTICES_FOUND_BY_RESYNC = "NoticesFoundByResync"
    """Interrupted instances of which no event had told."""
    NOTICES_NOT_OURS = "NoticesNotOurs"
    """Notices about instances of no registered cluster."""
    OBJECTS_LEFT_OUT = "ObjectsLeftOut"
    """Objects of clusters that a resync could not read, or not wholly."""
    ON_DEMAND_RESERVE = "OnDemandReserve"
    """Of what the pods on all spot nodes request, the percentage that on-demand nodes have free."""
    OPEN_INTERRUPTIONS = "OpenInterruptions"
    """Interruptions that a resync found open."""
    PODS_KILLED = "PodsKilled"
    """Pods that were still running when their instance went."""
    POLICIES_MISSING = "PoliciesMissing"
    """Admission policies of the group `plimsoll` that let pass what they should refuse, as a dry run showed."""
    RESYNC_FINISHED = "ResyncFinished"
    """Resyncs of clusters that ended well; where none is registered, runs of the schedule."""

    @property
    def unit(self) -> Unit:
        """The unit, in CloudWatch's words."""
        if self is Metric.ON_DEMAND_RESERVE:
            return "Percent"
        ages = Metric.NOTICE_AGE_AT_CORDON, Metric.NOTICE_AGE_AT_RETRY
        return "Seconds" if self in ages else "Count"
