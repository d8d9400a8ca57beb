"""Jobs, the gangs that they make up, and what is done to them."""

from __future__ import annotations

from plimsoll_batch.domain.jobs.gang_assembly import assemble, preemption_in, running_of
from plimsoll_batch.domain.jobs.gangs import (
    MOST_PRIORITY,
    FlavorResource,
    Gang,
    PreemptionRecord,
    Role,
    RunningGang,
    Shape,
    Topology,
    amounts_of,
    largest_first,
    lost_at_an_interruption,
)
from plimsoll_batch.domain.jobs.job_actions import (
    Begin,
    End,
    Finish,
    JobAction,
    Remember,
    RestartRole,
    Suspend,
    make_way,
    reclaimed_at,
    taken_back,
    upkeep,
)
from plimsoll_batch.domain.jobs.job_annotations import (
    MOST_ROLES,
    Admission,
    PodSetAdmission,
    Steering,
    Stop,
    toleration_record,
)
from plimsoll_batch.domain.jobs.jobs import BARE_POD, FailedPod, GangJobs, Job, PodOwner, PodSet
from plimsoll_batch.domain.jobs.lifecycle import (
    LONGEST_TIMEOUT_SECONDS,
    MOST_CODES,
    MOST_POLICIES,
    MOST_RETRIES,
    MOST_TIMES,
    Action,
    Event,
    Lifecycle,
    Policy,
)
from plimsoll_batch.domain.jobs.node_requests import Ask, NodeRequest, Turn, turn_of
from plimsoll_batch.domain.jobs.pod_deadlines import (
    plan_deadlines,
    unstated_classes,
)
from plimsoll_batch.domain.jobs.pod_groups import GangPodGroup, pod_groups_of
from plimsoll_batch.domain.jobs.pod_owners import PodOwners
from plimsoll_batch.domain.jobs.policies import waits_for, with_baseline
from plimsoll_batch.domain.jobs.priorities import rank_of, why_unranked

__all__ = [
    "BARE_POD",
    "LONGEST_TIMEOUT_SECONDS",
    "MOST_CODES",
    "MOST_POLICIES",
    "MOST_PRIORITY",
    "MOST_RETRIES",
    "MOST_ROLES",
    "MOST_TIMES",
    "Action",
    "Admission",
    "Ask",
    "Begin",
    "End",
    "Event",
    "FailedPod",
    "Finish",
    "FlavorResource",
    "Gang",
    "GangJobs",
    "GangPodGroup",
    "Job",
    "JobAction",
    "Lifecycle",
    "NodeRequest",
    "PodOwner",
    "PodOwners",
    "PodSet",
    "PodSetAdmission",
    "Policy",
    "PreemptionRecord",
    "Remember",
    "RestartRole",
    "Role",
    "RunningGang",
    "Shape",
    "Steering",
    "Stop",
    "Suspend",
    "Topology",
    "Turn",
    "amounts_of",
    "assemble",
    "largest_first",
    "lost_at_an_interruption",
    "make_way",
    "plan_deadlines",
    "pod_groups_of",
    "preemption_in",
    "rank_of",
    "reclaimed_at",
    "running_of",
    "taken_back",
    "toleration_record",
    "turn_of",
    "unstated_classes",
    "upkeep",
    "waits_for",
    "why_unranked",
    "with_baseline",
]
