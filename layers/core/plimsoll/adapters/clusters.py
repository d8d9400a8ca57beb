"""Opens registered clusters. One stays open for the life of the process, with what it parsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from threading import Lock
from typing import TYPE_CHECKING, Unpack, assert_never
from urllib.parse import urlsplit

from plimsoll.adapters import eks
from plimsoll.adapters.kubernetes.api import KubernetesCluster
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.transport import RequestParts, Response, Transport
from plimsoll.adapters.secrets import SecretToken
from plimsoll.domain.errors import BadInput, Refused
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.registry import Cluster, ClusterKind, Mode

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock, Workers


class OpenClusters:
    """Implements `plimsoll.services.ports.Clusters`."""

    def __init__(
        self,
        aws: Aws,
        clock: Clock,
        workers: Workers,
        *,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._aws = aws
        self._clock = clock
        self._workers = workers
        self._warn = warn
        self._open: dict[Cluster, KubernetesCluster] = {}
        self._lock = Lock()

    def open(self, cluster: Cluster) -> KubernetesCluster:
        """Return the API of a cluster; connects on first use.

        Raises:
            BadInput: what is registered cannot be connected to.
        """
        # Who may write, and when, is not the connection's business.
        key = replace(cluster, mode=Mode.OBSERVE, policy=Policy())
        with self._lock:
            if key not in self._open:
                self._open[key] = KubernetesCluster(
                    self.transport(cluster),
                    cluster.name,
                    self._clock,
                    workers=self._workers,
                    warn=self._warn,
                )
            return self._open[key]

    def transport(self, cluster: Cluster, *, as_group: str | None = None) -> Transport:
        """Return what carries requests to a cluster; to EKS as one of a group, where that is named."""
        match cluster.kind:
            case ClusterKind.EKS:
                aws = self._aws.of_cluster(cluster)
                return LazyTransport(lambda: _to_eks(aws, cluster.name, self._clock, as_group))
            case ClusterKind.ENDPOINT:
                check_endpoint(cluster)
                secret, aws = cluster.secret, self._aws.in_region(cluster.region)
                token = None if secret is None else SecretToken(aws, secret, self._clock)
                return ClientTransport(cluster.endpoint or "", ca=cluster.ca, token=token)
            case _:
                assert_never(cluster.kind)


class LazyTransport:
    """A transport that is made at its first call, and again when making it failed.

    Also when it is no longer trusted: a cluster may have been made anew under its name.
    """

    def __init__(self, make: Callable[[], Transport]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: Transport | None = None

    def call(self, method: str, path: str, **more: Unpack[RequestParts]) -> Response:
        """Send a request and return its answer, whatever its status."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            made = self._made
        try:
            return made.call(method, path, **more)
        # Only for a refused connection: if the cluster does not answer, endpoint and connections stay good.
        except Refused:
            self._made = None
            raise


def check_endpoint(cluster: Cluster) -> None:
    """Check how a cluster by endpoint is reached.

    A token must not travel unencrypted, so http is for rigs on the same machine only.

    Raises:
        BadInput: no URL, http to elsewhere, or nothing that proves who we are.
    """
    name, endpoint = cluster.name, cluster.endpoint
    if not endpoint:
        raise BadInput(f"cluster {name} has no endpoint: give its https URL")
    try:
        url = urlsplit(endpoint)
        host, _ = url.hostname, url.port
    except ValueError as error:
        raise BadInput(f"cluster {name}: the endpoint {endpoint!r} is no URL: {error}") from error
    if url.scheme not in {"http", "https"} or not host:
        raise BadInput(
            f"cluster {name}: the endpoint {endpoint!r} must be a URL, https://HOST:PORT"
        )
    if _loopback(host):
        return
    if url.scheme != "https":
        raise BadInput(
            f"cluster {name}: the endpoint {endpoint!r} must be https; http is taken on loopback only"
        )
    if cluster.secret is None:
        raise BadInput(f"cluster {name} has no secret with a token: name one in Secrets Manager")


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _to_eks(aws: Aws, name: str, clock: Clock, as_group: str | None) -> ClientTransport:
    endpoint = eks.describe(aws, name)
    token = eks.EksToken(aws, name, clock)
    return ClientTransport(endpoint.url, ca=endpoint.ca, token=token, as_group=as_group)
