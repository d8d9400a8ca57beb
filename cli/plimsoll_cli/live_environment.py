"""The real world of the command line: AWS by its usual credentials, clusters by their API.

The counterpart of `plimsoll.bootstrap`, which wires the same adapters for the functions.
"""

from __future__ import annotations

from pathlib import Path

from plimsoll.adapters import stack as stacks
from plimsoll.adapters.aws import Aws
from plimsoll.adapters.canary_bus import EventBus
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.adapters.dynamodb import DynamoNodeIndex, DynamoRegistry, DynamoReports
from plimsoll.adapters.ec2 import Ec2Instances
from plimsoll.adapters.eks_access import EksAccessEntries
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.kubeconfig import load
from plimsoll.adapters.nodegroups import AwsNodeGroups
from plimsoll.adapters.nodegroups.group_settings import AwsGroupSettings
from plimsoll.adapters.quotas import AwsQuotas
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.doctor.facts import StackFacts
from plimsoll.services.doctor import Instruments
from plimsoll.services.ports import ClusterApi
from plimsoll_cli.environment import Deployed, warn


class LiveEnvironment:
    """Implements `plimsoll_cli.environment.World`."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self._workers = ThreadWorkers()

    def deployed(self, stack: str) -> Deployed:
        """Return the stack of that name, as CloudFormation describes it.

        Raises:
            PlimsollError: see `plimsoll.adapters.stack`.
        """
        aws = Aws()
        found = stacks.describe(aws, stack)
        clusters = OpenClusters(aws, self.clock, self._workers, warn=warn)
        return Deployed(
            name=stack,
            region=found.region,
            kill_switch=found.parameters.get("KillSwitch") == "true",
            registry=DynamoRegistry(aws, found.output("ClustersTable")),
            index=DynamoNodeIndex(aws, found.output("NodesTable")),
            reports=DynamoReports(aws, found.output("ReportsTable")),
            instances=Ec2Instances(aws, self.clock),
            clusters=clusters,
            groups=lambda cluster: AwsNodeGroups(
                aws.in_region(cluster.region),
                cluster.name,
                self.clock,
                api=lambda: clusters.open(cluster).requests,
                warn=warn,
            ),
            facts=StackFacts(
                name=stack,
                region=found.region,
                status=found.status,
                version=found.outputs.get("Version"),
                parameters=found.parameters,
            ),
            instruments=Instruments(
                canaries=EventBus(aws),
                probe=clusters.probe,
                marks=lambda cluster: AwsGroupSettings(aws.in_region(cluster.region), self.clock),
                quotas=lambda cluster: AwsQuotas(aws.in_region(cluster.region)),
                access=lambda cluster: EksAccessEntries(
                    aws, aws.in_region(cluster.region), stack, cluster.name
                ),
            ),
        )

    def by_kubeconfig(self, file: Path | None, context: str | None) -> tuple[str, ClusterApi]:
        """Return the cluster of a context and the context's name.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.kubeconfig`.
        """
        transport, name = load(file, context)
        api = KubernetesCluster(transport, name, self.clock, workers=self._workers, warn=warn)
        return name, api
