"""What only commands ask of AWS: how a stack and its node groups are set up, and what its roles may do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from plimsoll.adapters.aws_errors import code_of, translated
from plimsoll.adapters.canaries import Canaries
from plimsoll.adapters.limits import AwsLimits
from plimsoll.adapters.nodegroups import asg
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.domain.errors import NotFound, Refused
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.notices import CANARY_DETAIL_TYPE, CANARY_SOURCE
from plimsoll.domain.registry import Cluster
from plimsoll.services.ports import Limits
from plimsoll_cli.probes.iam_requests import Case, Place, cases
from plimsoll_cli.probes.kubernetes import GROUP
from plimsoll_cli.setup.access import AwsClusterAccess
from plimsoll_cli.stack import Stack

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock


class Direct(StrEnum):
    """What became of a message that was sent to the queue of notices past the rules."""

    TAKEN = "taken"
    BY_THE_QUEUE = "denied by the policy of the queue"
    OTHERWISE = "denied, but not by the queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How a rule delivers what it matches."""

    rule: str
    seconds: int | None
    """For how long it tries; None: for a day."""
    dead_letters: str | None
    """The ARN of the queue that takes what could not be delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What an Auto Scaling group's owner says of it."""

    suspended: frozenset[str]
    """Processes that are suspended, for example Launch."""
    slow: str | None = None
    """Why it launches nothing at once and has its desired capacity raised; None: it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A request of one of the stack's roles, and the decision of IAM."""

    case: Case
    decision: str
    """As SimulatePrincipalPolicy names it: `allowed`, `explicitDeny` or `implicitDeny`."""

    @property
    def right(self) -> bool:
        """Whether IAM allows what must be allowed, and denies the rest."""
        return (self.decision == "allowed") is self.case.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """How many functions Lambda runs at once in the account and region of a stack."""

    quota: int
    unreserved: int
    """Of the quota, the part that is reserved for no function."""
    wanted: Mapping[str, int]
    """Function, by the output of the stack -> the reserve that its size needs."""
    reserved: Mapping[str, int | None]
    """Function -> its reserve; None: it has none."""

    @property
    def missing(self) -> Mapping[str, int]:
        """What has to be reserved, by function: its reserve is smaller than that."""
        return {name: n for name, n in self.wanted.items() if (self.reserved[name] or 0) < n}

    @property
    def added(self) -> int:
        """How much more is reserved once nothing is missing."""
        return sum(n - (self.reserved[name] or 0) for name, n in self.missing.items())

    @property
    def left(self) -> int:
        """What stays unreserved once nothing is missing."""
        return self.unreserved - self.added


class AwsProbe:
    """Asks AWS about a stack and its clusters, with the rights of whoever runs the command.

    Each method raises a `PlimsollError` where AWS cannot be asked, or refuses.
    """

    def __init__(self, aws: Aws, stack: Stack, clock: Clock) -> None:
        self._aws = aws
        self._stack = stack
        self._clock = clock

    def send_canary(self, word: str) -> None:
        """Put a canary of that name on the event bus."""
        Canaries(self._aws, self._stack.output("CanarySecret"), self._clock).send(word)

    def send_past_the_rules(self, word: str, now: datetime) -> Direct:
        """Try to put a canary straight into the queue of notices, as whoever runs the command.

        Where it is taken, it does no more than a canary on the bus. By its message a denial tells where
        it comes from: https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
        """
        event: dict[str, Any] = {
            "id": word,
            "source": CANARY_SOURCE,
            "detail-type": CANARY_DETAIL_TYPE,
            "account": "0" * 12,
            "region": self._aws.region,
            "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "resources": [],
            "detail": {"word": word},
        }
        queue = self._stack.output("NoticesQueue")
        with translated("send a message to the queue of notices"):
            try:
                self._aws.sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(event))
            except ClientError as error:
                if "AccessDenied" not in code_of(error):
                    raise
                by_queue = "explicit deny in a resource-based policy" in str(error)
                return Direct.BY_THE_QUEUE if by_queue else Direct.OTHERWISE
        return Direct.TAKEN

    def targets(self) -> Sequence[Target]:
        """Return how the rules of the stack deliver, as EventBridge has them."""
        with translated(f"read the targets of the rules of the stack {self._stack.name}"):
            rules = [
                r["PhysicalResourceId"]
                for r in self._resources()
                if r["ResourceType"] == "AWS::Events::Rule"
            ]
            return [
                Target(
                    rule=rule,
                    seconds=target.get("RetryPolicy", {}).get("MaximumEventAgeInSeconds"),
                    dead_letters=target.get("DeadLetterConfig", {}).get("Arn"),
                )
                for rule in rules
                for target in self._aws.events.list_targets_by_rule(Rule=rule)["Targets"]
            ]

    def simulated(self) -> Sequence[Simulated]:
        """Return what IAM decides on every request that shows what the stack's roles may do.

        It simulates with every policy and boundary that the deployed roles have:
        https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
        """
        with translated("simulate the policies of the stack's roles"):
            found = self._resources()
            _, partition, _, region, account, _ = found[0]["StackId"].split(":", 5)
            place = Place(
                partition=partition,
                region=region,
                account=account,
                stack=self._stack.name,
                # A queue is known by its URL, everything else by its name.
                names={
                    r["LogicalResourceId"]: r["PhysicalResourceId"].rpartition("/")[2]
                    for r in found
                },
            )
            iam = self._aws.client("iam")
            return [Simulated(case=c, decision=decision(iam, place, c)) for c in cases(place)]

    def concurrency(self) -> Concurrency:
        """Return the quota of the account, and what is reserved for the functions of the stack."""
        functions = self._aws.client("lambda")
        with translated("read the account's quota of concurrent executions"):
            limit = functions.get_account_settings()["AccountLimit"]
            reserved = {
                name: functions.get_function_concurrency(FunctionName=self._stack.output(name)).get(
                    "ReservedConcurrentExecutions"
                )
                for name in self._stack.reserves
            }
        return Concurrency(
            quota=limit["ConcurrentExecutions"],
            unreserved=limit["UnreservedConcurrentExecutions"],
            wanted=self._stack.reserves,
            reserved=reserved,
        )

    def reserve(self, function: str, executions: int) -> None:
        """Reserve concurrency for a function, by the output of the stack."""
        name = self._stack.output(function)
        with translated(f"reserve concurrency for {name}"):
            self._aws.client("lambda").put_function_concurrency(
                FunctionName=name, ReservedConcurrentExecutions=executions
            )

    def limits(self, cluster: Cluster) -> Limits:
        """Return what asks for the limits of a cluster's account."""
        return AwsLimits(self._aws.of_cluster(cluster))

    def group_settings(
        self, cluster: Cluster, groups: Sequence[NodeGroup]
    ) -> Mapping[str, GroupSettings]:
        """Return what the owners of Auto Scaling groups say, by name; groups of other kinds are left out."""
        account = Account(self._aws.of_cluster(cluster), self._clock)
        names = [group.name for group in groups if group.kind == asg.NAME]
        return {
            name: GroupSettings(
                suspended=frozenset(p["ProcessName"] for p in found.get("SuspendedProcesses", ())),
                slow=_slow(found),
            )
            for name, found in account.auto_scaling_groups(names).items()
        }

    def queue_delay(self, cluster: Cluster, name: str) -> int:
        """Return for how many seconds a queue in the cluster's account holds a message back.

        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html

        Raises:
            NotFound: there is no such queue.
            Refused: its attributes may not be read.
        """
        sqs = self._aws.of_cluster(cluster).sqs
        with translated(f"read DelaySeconds of the queue {name}"):
            url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
            found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["DelaySeconds"])
            return int(found["Attributes"]["DelaySeconds"])

    def unknown_roles(self, registered: Cluster) -> Sequence[str]:
        """Return the ARNs of the roles that come to an EKS cluster and that it does not put into our group.

        They are those of the stack; to a cluster in another account comes the one role that is assumed there.

        https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html

        Raises:
            NotFound: there is no such cluster.
            Refused: it has no access entries, but the ConfigMap `aws-auth`.
        """
        access = AwsClusterAccess(self._aws, self._stack.name, self._clock)
        found = access.find(registered)
        if found is None:
            raise NotFound(f"there is no EKS cluster {registered.name} in {registered.place}")
        if not found.entries:
            raise Refused(
                f"EKS cluster {registered.name} has no access entries: see that the ConfigMap "
                f"kube-system/aws-auth puts the roles of the stack into the group {GROUP}"
            )
        return [
            role
            for role in access.roles(registered)
            if GROUP not in (access.groups_of(registered, role) or ())
        ]

    def _resources(self) -> Sequence[Mapping[str, Any]]:
        answer = self._aws.client("cloudformation").describe_stack_resources(
            StackName=self._stack.name
        )
        found: Sequence[Mapping[str, Any]] = answer["StackResources"]
        return found


def decision(iam: Any, place: Place, case: Case) -> str:
    """Return what a client of IAM answers for one case."""
    answer = iam.simulate_principal_policy(
        PolicySourceArn=place.arn("iam", f"role/{place.names[case.role]}"),
        ActionNames=[case.request.action],
        ResourceArns=[case.request.resource],
        ContextEntries=[
            {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
            for key, value in case.request.context.items()
        ],
    )
    said: str = answer["EvaluationResults"][0]["EvalDecision"]
    return said


def _slow(group: Mapping[str, Any]) -> str | None:
    """Say why a group cannot launch at once.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-instances-synchronously.html
    """
    mixed = group.get("MixedInstancesPolicy")
    if not (mixed or group.get("LaunchTemplate")):
        return "it has no launch template"
    said = (mixed or {}).get("InstancesDistribution", {})
    share = said.get("OnDemandPercentageAboveBaseCapacity", 100)
    if share == 100 or (share == 0 and not said.get("OnDemandBaseCapacity")):  # noqa: PLR2004 - per cent
        return None
    return "it mixes on-demand and spot"
