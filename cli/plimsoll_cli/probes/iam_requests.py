"""The requests that show what the roles of a stack may do, and what they must not reach.

Each action that a role holds is requested where it is used, and on a neighbour of it: another table,
another queue, a group whose owner did not opt in. A test evaluates the requests by the policies of the
template; `plimsoll doctor` lets IAM simulate them with the deployed roles.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.domain.capacity import QUOTA_CODE
from plimsoll.domain.kubernetes import GROW, HOOK_MARK, RENEW
from plimsoll.domain.notices import CANARY_DETAIL_TYPE, CANARY_SOURCE, DRILL_SOURCE
from plimsoll_cli.stack import CLUSTER_ROLES

FUNCTIONS: Final[Mapping[str, str]] = {
    "NoticesRole": "notices",
    "DrainsRole": "drains",
    "SweepRole": "sweep",
    "PlacementRole": "placement",
    "ScheduleRole": "schedule",
}
"""Role -> the last part of its log group's name."""

_READS: Final = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeLifecycleHooks",
    "autoscaling:DescribeScalingActivities",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:DescribeSpotInstanceRequests",
    "ec2:GetInstanceTypesFromInstanceRequirements",
)
_SUBNETS: Final = "ec2:DescribeSubnets"
_ZONES: Final = "ec2:DescribeAvailabilityZones"
_SHIFTS: Final = ("arc-zonal-shift:ListZonalShifts", "arc-zonal-shift:ListAutoshifts")
_RECEIVE: Final = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
_REPORT: Final = ("dynamodb:GetItem", "dynamodb:PutItem")
_GROUP: Final = "autoScalingGroup:0f1e:autoScalingGroupName/harbor-on-demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. Every key of its context has one value."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request of one role, and whether it must be allowed."""

    role: str
    request: Request
    allowed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a stack is: what its ARNs are made of."""

    partition: str
    region: str
    account: str
    stack: str
    names: Mapping[str, str]
    """Logical id of a table or a queue -> its name; of a secret -> its ARN."""

    def arn(self, service: str, resource: str) -> str:
        """Return an ARN of this place."""
        region, account = ("", self.account) if service == "iam" else (self.region, self.account)
        return f"arn:{self.partition}:{service}:{region}:{account}:{resource}"

    def queue(self, name: str) -> str:
        """Return the ARN of a queue by its logical id."""
        return self.arn("sqs", self.names[name])

    def table(self, name: str) -> str:
        """Return the ARN of a table by its logical id."""
        return self.arn("dynamodb", f"table/{self.names[name]}")


def cases(place: Place) -> Sequence[Case]:
    """Return every case for the roles of the functions."""
    return [
        Case(role=role, request=request, allowed=allowed)
        for allowed, asked in ((True, _allowed(place)), (False, _forbidden(place)))
        for role, request in asked
    ]


def _requests(
    role: str, actions: Sequence[str], resource: str, **context: str
) -> Iterator[tuple[str, Request]]:
    for action in actions:
        yield role, Request(action=action, resource=resource, context=context)


def _allowed(place: Place) -> Iterator[tuple[str, Request]]:
    for role, log in FUNCTIONS.items():
        group = place.arn("logs", f"log-group:/plimsoll/{place.stack}/{log}:log-stream:a")
        yield from _requests(role, ("logs:CreateLogStream", "logs:PutLogEvents"), group)
    for role in CLUSTER_ROLES:
        cluster = place.arn("eks", "cluster/harbor")
        yield from _requests(role, ("eks:DescribeCluster", "eks:ListNodegroups"), cluster)
        secret = place.arn("secretsmanager", "secret:plimsoll/lab-AbCdEf")
        yield from _requests(role, ("secretsmanager:GetSecretValue",), secret)
        yield from _requests(role, ("dynamodb:GetItem",), place.table("ClustersTable"))
        yield from _requests(role, _READS, "*")
        node_group = place.arn("eks", "nodegroup/harbor/spot/0a1b")
        yield from _requests(role, ("eks:DescribeNodegroup",), node_group)
        yield from _requests(role, ("dynamodb:BatchGetItem",), place.table("NodesTable"))
        yield from _requests(role, ("dynamodb:BatchGetItem",), place.table("TimesTable"))
        yield from _requests(role, _REPORT, place.table("ReportsTable"))
        yield from _requests(role, ("dynamodb:PutItem",), place.table("PoolsTable"))
    notices = place.queue("NoticesQueue")
    yield from _requests("NoticesRole", (*_RECEIVE, "sqs:ChangeMessageVisibility"), notices)
    for queue in ("WakeUpsQueue", "NoticesDeadQueue"):
        yield from _requests("NoticesRole", ("sqs:SendMessage",), place.queue(queue))
    yield from _requests("DrainsRole", _RECEIVE, place.queue("WakeUpsQueue"))
    yield from _requests("SweepRole", _RECEIVE, place.queue("ResyncsQueue"))
    yield from _requests("ScheduleRole", ("sqs:SendMessage",), place.queue("ResyncsQueue"))
    yield from _canaries(place)
    for role in ("NoticesRole", "SweepRole", "ScheduleRole", "PlacementRole"):
        yield from _requests(role, ("dynamodb:Scan",), place.table("ClustersTable"))
    for role in ("DrainsRole", "SweepRole", "PlacementRole"):
        yield from _requests(role, ("sqs:SendMessage",), place.queue("WakeUpsQueue"))
    for role in ("SweepRole", "PlacementRole"):
        yield from _requests(role, ("dynamodb:BatchWriteItem",), place.table("NodesTable"))
    yield from _requests("NoticesRole", (_ZONES,), "*")
    yield from _requests("SweepRole", (_ZONES, _SUBNETS, *_SHIFTS), "*")
    vcpus = place.arn("servicequotas", f"ec2/{QUOTA_CODE}")
    yield from _requests("SweepRole", ("servicequotas:GetServiceQuota",), vcpus)
    newest = f"{place.table('ReportsTable')}/index/newest"
    for role in ("DrainsRole", "SweepRole", "PlacementRole"):
        yield from _requests(role, ("dynamodb:Query",), newest)
        yield from _requests(role, ("dynamodb:Query",), place.table("PoolsTable"))
    yield from _requests("DrainsRole", ("dynamodb:PutItem",), place.table("TimesTable"))
    frames = place.table("FramesTable")
    yield from _requests("DrainsRole", ("dynamodb:Query", "dynamodb:PutItem"), frames)
    yield from _requests("PlacementRole", ("dynamodb:PutItem",), place.table("TimesTable"))
    for roles, actions, resource, tag in _group_writes(place):
        opted_in = {f"aws:ResourceTag/{tag}": "true"}
        for role in roles:
            yield from _requests(role, actions, resource, **opted_in)
    yield from _fleets({"aws:ViaAWSService": "true"})


def _fleets(context: Mapping[str, str]) -> Iterator[tuple[str, Request]]:
    """Yield the requests for fleets, which only a service may buy through in the name of these roles."""
    for role in ("DrainsRole", "PlacementRole"):
        yield from _requests(role, ("ec2:CreateFleet",), "*", **context)


def _canaries(place: Place) -> Iterator[tuple[str, Request]]:
    canary = {"events:source": CANARY_SOURCE, "events:detail-type": CANARY_DETAIL_TYPE}
    bus = place.arn("events", "event-bus/default")
    yield from _requests("ScheduleRole", ("events:PutEvents",), bus, **canary)
    secret = place.names.get("CanarySecret", "*")  # a stack of an older version has none
    for role in ("NoticesRole", "ScheduleRole"):
        yield from _requests(role, ("secretsmanager:GetSecretValue",), secret)


def _group_writes(
    place: Place,
) -> Iterator[tuple[Collection[str], Sequence[str], str, str]]:
    """Yield which roles write what to node groups, and the tag of their owners' that allows it."""
    group, drains = place.arn("autoscaling", _GROUP), ("DrainsRole",)
    growing = (*drains, "PlacementRole")
    grow = ("autoscaling:SetDesiredCapacity", "autoscaling:LaunchInstances")
    yield growing, grow, group, GROW
    node_group = place.arn("eks", "nodegroup/harbor/spot/0a1b")
    yield growing, ("eks:UpdateNodegroupConfig",), node_group, GROW
    yield drains, ("autoscaling:RecordLifecycleActionHeartbeat",), group, HOOK_MARK
    completing = (*drains, "NoticesRole", "SweepRole")
    yield completing, ("autoscaling:CompleteLifecycleAction",), group, HOOK_MARK
    yield drains, ("autoscaling:TerminateInstanceInAutoScalingGroup",), group, RENEW


def _forbidden(place: Place) -> Iterator[tuple[str, Request]]:
    abroad = f"arn:{place.partition}:sqs:{place.region}:{'9' * 12}:{place.names['NoticesQueue']}"
    for role, log in FUNCTIONS.items():
        others = next(name for name in FUNCTIONS.values() if name != log)
        group = place.arn("logs", f"log-group:/plimsoll/{place.stack}/{others}:log-stream:a")
        yield from _requests(role, ("logs:CreateLogStream", "logs:PutLogEvents"), group)
        yield from _requests(role, ("sqs:SendMessage",), place.queue("NoticesQueue"))
        yield from _requests(role, ("sqs:SendMessage", "sqs:ReceiveMessage"), abroad)
        registry = ("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")
        yield from _requests(role, registry, place.table("ClustersTable"))
        elsewhere = place.arn("dynamodb", "table/payments")
        yield from _requests(role, ("dynamodb:GetItem", "dynamodb:Scan"), elsewhere)
        yield from _requests(role, ("dynamodb:DeleteItem",), place.table("ReportsTable"))
        secrets = (place.arn("secretsmanager", f"secret:{name}-AbCdEf") for name in ("db", "plims"))
        for secret in secrets:
            yield from _requests(role, ("secretsmanager:GetSecretValue",), secret)
        instance = place.arn("ec2", "instance/i-0123456789abcdef0")
        yield from _requests(role, ("ec2:TerminateInstances", "ec2:RunInstances"), instance)
        yield from _requests(role, ("iam:PassRole",), place.arn("iam", "role/admin"))
        yield from _requests(role, ("eks:DeleteNodegroup",), place.arn("eks", "nodegroup/a/b/c"))
    for roles, actions, resource, tag in _group_writes(place):
        for role in roles:
            yield from _requests(role, actions, resource)
            for name, value in ((tag, "false"), ("kubernetes.io/cluster/harbor", "owned")):
                context = {f"aws:ResourceTag/{name}": value}
                yield from _requests(role, actions, resource, **context)
        for role in sorted(FUNCTIONS.keys() - {*roles}):
            opted_in = {f"aws:ResourceTag/{tag}": "true"}
            yield from _requests(role, actions, resource, **opted_in)
    instance = place.arn("ec2", "instance/i-0123456789abcdef0")
    for role in sorted(FUNCTIONS):
        tags = {f"aws:ResourceTag/{RENEW}": "true"}
        yield from _requests(role, ("ec2:TerminateInstances",), instance, **tags)
    for context in ({"aws:ViaAWSService": "false"}, {}):
        yield from _fleets(context)
    for role in ("DrainsRole", "SweepRole"):
        yield from _requests(role, ("sqs:SendMessage",), place.queue("ResyncsQueue"))
    others = place.arn("servicequotas", "lambda/L-B99A9384")
    yield from _requests("SweepRole", ("servicequotas:GetServiceQuota",), others)
    secret = place.arn("secretsmanager", "secret:plimsoll/lab-AbCdEf")
    yield from _requests("ScheduleRole", ("secretsmanager:GetSecretValue",), secret)
    drill = {"events:source": DRILL_SOURCE, "events:detail-type": CANARY_DETAIL_TYPE}
    bus = place.arn("events", "event-bus/default")
    yield from _requests("ScheduleRole", ("events:PutEvents",), bus, **drill)
