"""The real world of the command line: AWS by its usual credentials, clusters by their API.

The counterpart of `plimsoll.bootstrap`, which wires the same adapters for the functions.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.adapters.dynamodb.frames import DynamoFrames
from plimsoll.adapters.dynamodb.layouts import DynamoLayouts
from plimsoll.adapters.dynamodb.nodes import DynamoNodeIndex
from plimsoll.adapters.dynamodb.observed_times import DynamoObservedTimes
from plimsoll.adapters.dynamodb.pools import DynamoPools
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.dynamodb.reports import DynamoReports
from plimsoll.adapters.ec2 import Ec2Instances
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.kubeconfig import load
from plimsoll.adapters.nodegroups import AwsNodeGroups
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll_batch.adapters.preemptions import DynamoPreemptions
from plimsoll_cli import stack as stacks
from plimsoll_cli.environment import Administered, Deployed, warn
from plimsoll_cli.probes.aws import AwsProbe
from plimsoll_cli.probes.kubernetes import probe_of
from plimsoll_cli.setup.access import AwsClusterAccess
from plimsoll_cli.setup.objects import AppliedObjects


class LiveEnvironment:
    """Implements `plimsoll_cli.environment.Environment`."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self._workers = ThreadWorkers()

    def deployed(self, stack: str, profile: str | None = None) -> Deployed:
        """Return the stack of that name, as CloudFormation describes it.

        Raises:
            PlimsollError: see `plimsoll_cli.stack`.
        """
        aws = Aws(profile=profile)
        found = stacks.describe(aws, stack)
        clusters = OpenClusters(aws, self.clock, self._workers, warn=warn)
        return Deployed(
            stack=found,
            registry=DynamoRegistry(aws, found.output("ClustersTable")),
            index=DynamoNodeIndex(aws, found.output("NodesTable")),
            reports=DynamoReports(aws, found.output("ReportsTable")),
            pools=DynamoPools(aws, found.output("PoolsTable")),
            frames=DynamoFrames(aws, found.outputs.get("FramesTable", "")),
            times=DynamoObservedTimes(aws, found.output("TimesTable")),
            layouts=DynamoLayouts(aws, found.output("TimesTable")),
            instances=Ec2Instances(aws, self.clock),
            instances_of=lambda cluster: Ec2Instances(aws.of_cluster(cluster), self.clock),
            clusters=clusters,
            requests=lambda cluster: clusters.open(cluster).requests,
            groups=lambda cluster: AwsNodeGroups(
                aws.of_cluster(cluster),
                cluster.name,
                self.clock,
                api=lambda: clusters.open(cluster).requests,
                warn=warn,
            ),
            aws=AwsProbe(aws, found, self.clock),
            access=AwsClusterAccess(aws, found.name, self.clock),
            probe=partial(probe_of, clusters, self._workers),
        )

    def preemptions(self, stack: str) -> DynamoPreemptions:
        """Return the history of preemptions of a stack of batch queues.

        Raises:
            PlimsollError: see `plimsoll_cli.stack`.
        """
        aws = Aws()
        return DynamoPreemptions(aws, stacks.describe(aws, stack).output("PreemptionsTable"), warn)

    def by_kubeconfig(
        self, file: Path | None, context: str | None
    ) -> tuple[str, KubernetesCluster]:
        """Return the cluster of a context and the context's name.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.kubeconfig`.
        """
        transport, name = load(file, context)
        api = KubernetesCluster(transport, name, self.clock, workers=self._workers, warn=warn)
        return name, api

    def administered(self, file: Path | None, context: str) -> Administered:
        """Return the cluster of a context, to write manifests into it.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.kubeconfig`.
        """
        transport, name = load(file, context)
        return Administered(
            context=name,
            server=transport.server,
            ca=transport.ca,
            kubeconfig=file,
            objects=AppliedObjects(transport, name),
        )
