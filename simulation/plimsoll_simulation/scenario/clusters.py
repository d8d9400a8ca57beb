"""The clusters of a scenario: their node groups, how their pods behave, and who else acts in them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, override

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.json_schema import SkipJsonSchema

from plimsoll.domain.observation import MOST_SAMPLES
from plimsoll_simulation.declared import Contradiction, Declared, Label, Word, repeated
from plimsoll_simulation.durations import Duration, words
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec, each_once
from plimsoll_simulation.scenario.problems import Place

MAX_PATH: Final = 4096


def _relative(value: Any, info: ValidationInfo) -> Any:
    """Read a path, which is relative to the folder of the scenario: the context of validation."""
    if isinstance(value, str) and 0 < len(value) <= MAX_PATH:
        return (info.context or Path()) / value
    return value


type File = Annotated[
    Path,
    BeforeValidator(_relative),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_PATH}),
]


type OtherControllerName = Literal[
    "karpenter",
    "karpenter-consolidation",
    "managed-node-group",
    "nth",
    "nth-imds",
    "cluster-autoscaler",
    "kubectl-drain",
    "hpa",
    "gitops",
    "operator",
    "vpa",
]


OWNER: Final = r"^[A-Za-z]{1,63}/[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}$"

type Owner = Annotated[
    str,
    Field(
        pattern=OWNER,
        title="Kind/namespace/name of what makes pods, such as Deployment/shop/web",
    ),
]


class PodTimes(Declared):
    """How pods behave. A pod template overrides it by the annotations drill.plimsoll.dev/startup, drill.plimsoll.dev/stop and drill.plimsoll.dev/never-ready; drill.plimsoll.dev/run lets the pods of a Job finish."""

    startup: Duration = timedelta(seconds=15)
    """From bound to Ready; default 15s."""
    stop: Duration = timedelta(seconds=3)
    """From SIGTERM to exit; default 3s. Longer than the grace period means SIGKILL at its end."""
    detach: Duration = timedelta(seconds=3)
    """On the simulated rig, from the end of the last pod with a volume on a node until that is detached; default 3s."""


class SeenTime(Declared):
    """What the pods of a workload took."""

    pods: Annotated[int, Field(ge=0, le=MOST_SAMPLES)]
    """How many pods told; 0: one was killed after so long, and nobody knows more."""
    p95: Duration
    """The 95th percentile, in whole seconds."""


class SeenTimes(Declared):
    """How long the pods of a workload were seen to take; leave out what was not seen."""

    stop: SeenTime | None = None
    """From the request to stop to the end."""
    start: SeenTime | None = None
    """From bound to Ready."""


class Autoscaler(Declared):
    """A plain cluster autoscaler that grows on-demand groups for Pending pods, whoever responds; leave it out for none."""

    scan: Duration = timedelta(seconds=10)
    """How often it looks for Pending pods; default 10s."""

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        if self.scan < timedelta(seconds=1):
            yield Contradiction(
                path=("scan",),
                found=words(self.scan),
                allowed="at least 1s",
                cure="Write 10s, the usual time",
            )


class Placed(Declared):
    """What a message about a running drill names by its place in the file."""

    place: SkipJsonSchema[Place] = Place(file="")


class ClusterSpec(Placed):
    """A cluster."""

    name: Label
    """Its name, once in a scenario."""
    node_groups: Annotated[tuple[NodeGroupSpec, ...], Field(min_length=1)]
    """Its node groups."""
    manifests: tuple[File, ...]
    """Files of ordinary Kubernetes manifests, relative to the scenario."""
    pods: PodTimes = PodTimes()
    other_controllers: Annotated[
        tuple[OtherControllerName, ...],
        Field(json_schema_extra={"uniqueItems": True}),
        AfterValidator(each_once),
    ] = ()
    """Other programs that act in the cluster; default none. karpenter: its interruption queue lets it taint, drain and terminate nodes of the kind karpenter, and it makes nodes of that kind for Pending pods; karpenter-consolidation: the same, and it removes such nodes that are empty or whose pods fit on others; managed-node-group: EKS drains spot nodes of the kind eks-nodegroup, at a rebalance recommendation once a replacement is Ready, and after 15 minutes ends the instance of one that is not empty; nth, nth-imds: aws-node-termination-handler in either mode cordons and drains at the notice; cluster-autoscaler: it removes nodes that were unneeded for ten minutes; kubectl-drain: from a minute after time 0 an administrator drains one node after the other, and uncordons it half a minute after it is empty. hpa: autoscalers follow their CPU target, every 15 s, by the share of its request that each pod uses (annotation drill.plimsoll.dev/usage, default 10%); gitops: every minute it sets workloads, budgets and autoscalers back to what is declared, but for a count that an autoscaler holds; operator: every 5 s it sets back what has a custom resource as controlling owner, and makes Pods of such an owner anew under their names; vpa: every minute it resizes Ready pods in place to the CPU request that they name (annotation drill.plimsoll.dev/resize)."""
    queue_delay: Duration = timedelta()
    """DelaySeconds of the queue that karpenter, karpenter-consolidation and nth read, and how long after an event managed-node-group begins to drain; default 0s."""
    autoscaler: Autoscaler | None = None
    return_to_spot: bool = False
    """Whether its owner lets pods without an on-demand floor return to spot (`plimsoll clusters set --return-to-spot`)."""
    queues: File | None = None
    """A configuration of the batch queues, as `plimsoll queues apply` takes it. Their planner runs in the cluster, whoever responds, and asks for no nodes; without the file no queue is planned."""
    bindings: dict[Owner, list[Word]] = Field(default_factory=dict)
    """The nodes on which pods stand at time 0, one for each pod, by Kind/namespace/name: of a Deployment, a ReplicaSet or a Job, else of the pod itself. The scheduler places those that are not named."""

    observed: dict[Owner, SeenTimes] = Field(default_factory=dict)
    """What Plimsoll remembers at time 0 of how long the pods of a workload take, by Kind/namespace/name; default nothing. How long they really take is in their template."""

    def group(self, name: str) -> NodeGroupSpec:
        """Return one of its groups by name."""
        return next(group for group in self.node_groups if group.name == name)

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from repeated("nodeGroups", [group.name for group in self.node_groups], "node group")
        there = {f"{each.name}-{n + 1}" for each in self.node_groups for n in range(each.size)}
        for owner, nodes in self.bindings.items():
            for unknown in [node for node in nodes if node not in there][:1]:
                yield Contradiction(
                    path=("bindings", owner),
                    found=f"the unknown node {unknown}",
                    allowed="nodes of the start: the name of their group, - and a number from 1 on",
                    cure="Name a node of a group, up to its size",
                )
