"""What `plimsoll doctor` asks of AWS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from plimsoll.adapters.aws_errors import code_of, translated
from plimsoll.adapters.nodegroups import asg
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.domain.errors import NotFound, Refused
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.notices import CANARY_DETAIL_TYPE, CANARY_SOURCE
from plimsoll.domain.registry import Cluster
from plimsoll_cli import stack as stacks
from plimsoll_cli.doctor.facts import Direct, GroupSettings, Target
from plimsoll_cli.doctor.kubernetes_probe import GROUP

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock


def send_past_the_rules(aws: Aws, queue: str, word: str, now: datetime) -> Direct:
    """Try to put a canary straight into the queue of notices, as whoever runs the command.

    Where it is taken, it does no more than a canary on the bus. By its message a denial tells where
    it comes from: https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html

    Raises:
        PlimsollError: the queue cannot be asked.
    """
    event: dict[str, Any] = {
        "id": word,
        "source": CANARY_SOURCE,
        "detail-type": CANARY_DETAIL_TYPE,
        "account": "0" * 12,
        "region": aws.region,
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "resources": [],
        "detail": {"word": word},
    }
    with translated("send a message to the queue of notices"):
        try:
            aws.sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(event))
        except ClientError as error:
            if "AccessDenied" not in code_of(error):
                raise
            by_queue = "explicit deny in a resource-based policy" in str(error)
            return Direct.BY_THE_QUEUE if by_queue else Direct.OTHERWISE
    return Direct.TAKEN


def targets(aws: Aws, stack: str) -> Sequence[Target]:
    """Return how the rules of a stack deliver, as EventBridge has them.

    Raises:
        PlimsollError: CloudFormation or EventBridge cannot be asked.
    """
    with translated(f"read the targets of the rules of the stack {stack}"):
        answer = aws.client("cloudformation").describe_stack_resources(StackName=stack)
        rules = [
            r["PhysicalResourceId"]
            for r in answer["StackResources"]
            if r["ResourceType"] == "AWS::Events::Rule"
        ]
        return [
            Target(
                rule=rule,
                seconds=target.get("RetryPolicy", {}).get("MaximumEventAgeInSeconds"),
                dead_letters=target.get("DeadLetterConfig", {}).get("Arn"),
            )
            for rule in rules
            for target in aws.events.list_targets_by_rule(Rule=rule)["Targets"]
        ]


def group_settings(
    aws: Aws, clock: Clock, groups: Sequence[NodeGroup]
) -> Mapping[str, GroupSettings]:
    """Return the suspended processes of those that are Auto Scaling groups, by name."""
    names = [group.name for group in groups if group.kind == asg.NAME]
    return {
        name: GroupSettings(
            suspended=frozenset(p["ProcessName"] for p in found.get("SuspendedProcesses", ())),
            slow=_slow(found),
        )
        for name, found in Account(aws, clock).auto_scaling_groups(names).items()
    }


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


def queue_delay(aws: Aws, name: str) -> int:
    """Return for how many seconds a queue holds a message back.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html

    Raises:
        NotFound: there is no such queue.
        Refused: its attributes may not be read.
    """
    with translated(f"read DelaySeconds of the queue {name}"):
        url = aws.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        found = aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["DelaySeconds"])
        return int(found["Attributes"]["DelaySeconds"])


def unknown_roles(home: Aws, stack: str, registered: Cluster) -> Sequence[str]:
    """Return the ARNs of the roles that come to an EKS cluster and that it does not put into our group.

    They are those of the stack; to a cluster in another account comes the one role that is assumed there.

    https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html

    Args:
        home: the clients of the stack's region.
        stack: the name of the stack.
        registered: the cluster.

    Raises:
        NotFound: there is no such cluster.
        Refused: it has no access entries, but the ConfigMap `aws-auth`.
    """
    there, cluster = home.of_cluster(registered), registered.name
    with translated(f"describe EKS cluster {cluster}"):
        config = there.eks.describe_cluster(name=cluster)["cluster"].get("accessConfig", {})
    if config.get("authenticationMode") == "CONFIG_MAP":
        raise Refused(
            f"EKS cluster {cluster} has no access entries: see that the ConfigMap "
            f"kube-system/aws-auth puts the roles of the stack into the group {GROUP}"
        )
    roles = stacks.roles(home, stack) if registered.role is None else [registered.role]
    return [arn for arn in roles if not _is_in_group(there, cluster, arn)]


def _is_in_group(aws: Aws, cluster: str, arn: str) -> bool:
    try:
        with translated(f"read the access entry of {arn} in cluster {cluster}"):
            answer = aws.eks.describe_access_entry(clusterName=cluster, principalArn=arn)
    except NotFound:
        return False
    return GROUP in answer["accessEntry"].get("kubernetesGroups", ())
