"""Whether an EKS cluster puts the roles of the stack into the group of our manifests.

https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plimsoll.adapters import stack as stacks
from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.kubernetes.probe import GROUP
from plimsoll.domain.errors import NotFound, Refused

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws


class EksAccessEntries:
    """Implements `plimsoll.services.doctor.AccessEntries`.

    Args:
        home: The clients of the stack's region.
        there: The clients of the cluster's region.
        stack: The name of the stack.
        cluster: The name of the cluster.
    """

    def __init__(self, home: Aws, there: Aws, stack: str, cluster: str) -> None:
        self._home = home
        self._aws = there
        self._stack = stack
        self._cluster = cluster

    def strangers(self) -> Sequence[str]:
        """Return the ARNs of the stack's roles that are not in the group of our manifests.

        Raises:
            NotFound: there is no such cluster.
            Refused: it has no access entries, but the ConfigMap `aws-auth`.
        """
        with translated(f"describe EKS cluster {self._cluster}"):
            cluster = self._aws.eks.describe_cluster(name=self._cluster)["cluster"]
        if cluster.get("accessConfig", {}).get("authenticationMode") == "CONFIG_MAP":
            raise Refused(
                f"EKS cluster {self._cluster} has no access entries: see that the ConfigMap "
                f"kube-system/aws-auth puts the roles of the stack into the group {GROUP}"
            )
        return [arn for arn in stacks.roles(self._home, self._stack) if not self._known(arn)]

    def _known(self, arn: str) -> bool:
        try:
            with translated(f"read the access entry of {arn} in cluster {self._cluster}"):
                answer = self._aws.eks.describe_access_entry(
                    clusterName=self._cluster, principalArn=arn
                )
        except NotFound:
            return False
        return GROUP in answer["accessEntry"].get("kubernetesGroups", ())
