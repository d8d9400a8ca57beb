"""EKS's answers about clusters themselves: where they are, and whose access entries they have.

https://docs.aws.amazon.com/eks/latest/APIReference/API_AccessEntry.html
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from plimsoll_simulation.rigs.access import Access
from plimsoll_testbed.rigs.emulated.awswire import AwsError, Operation, Parameters


class AccessEntries:
    """Clusters by name, and the Kubernetes groups of those who may come to them.

    Args:
        api_servers: cluster -> the way to its API server; no other cluster is known.
    """

    def __init__(self, api_servers: Mapping[str, Access]) -> None:
        self._api_servers = api_servers
        self._groups: dict[tuple[str, str], list[str]] = {}

    def answers(self) -> Mapping[str, Operation]:
        """Return the table of what is answered."""
        return {
            "eks:DescribeCluster": self._describe_cluster,
            "eks:CreateAccessEntry": self._create,
            "eks:DescribeAccessEntry": lambda asked: self._entry(self._known(asked)),
            "eks:UpdateAccessEntry": self._update,
            "eks:DeleteAccessEntry": self._delete,
        }

    def _describe_cluster(self, parameters: Parameters) -> Mapping[str, Any]:
        name = parameters["name"]
        if name not in self._api_servers:
            raise AwsError("ResourceNotFoundException", f"No cluster found for name: {name}.")
        found = self._api_servers[name]
        return {
            "cluster": {
                "name": name,
                "status": "ACTIVE",
                "endpoint": found.url,
                "certificateAuthority": {"data": b64encode((found.ca or "").encode()).decode()},
                "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
            }
        }

    def _create(self, parameters: Parameters) -> Mapping[str, Any]:
        key = _key(parameters)
        if key in self._groups:
            raise AwsError("ResourceInUseException", "The specified access entry already exists")
        self._groups[key] = [*parameters.get("kubernetesGroups", ())]
        return self._entry(key)

    def _update(self, parameters: Parameters) -> Mapping[str, Any]:
        key = self._known(parameters)
        self._groups[key] = [*parameters.get("kubernetesGroups", self._groups[key])]
        return self._entry(key)

    def _delete(self, parameters: Parameters) -> Mapping[str, Any]:
        del self._groups[self._known(parameters)]
        return {}

    def _known(self, parameters: Parameters) -> tuple[str, str]:
        key = _key(parameters)
        if key not in self._groups:
            raise AwsError("ResourceNotFoundException", "The specified principalArn is not known")
        return key

    def _entry(self, key: tuple[str, str]) -> Mapping[str, Any]:
        cluster, principal = key
        return {
            "accessEntry": {
                "clusterName": cluster,
                "principalArn": principal,
                "kubernetesGroups": self._groups[key],
            }
        }


def _key(parameters: Parameters) -> tuple[str, str]:
    return parameters["clusterName"], parameters["principalArn"]
