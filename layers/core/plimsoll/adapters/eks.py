"""The way into an EKS cluster: its endpoint and CA from EKS, a token that STS's signature makes.

The token is a presigned GetCallerIdentity request: EKS sends it to STS and learns who we are. It
says that it expires after 60 seconds, but is taken for 15 minutes from when it was signed. Nothing
is written to a disk, and making one costs no call.

https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Final

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import MissingRights, Refused, Temporary

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock

PREFIX: Final = "k8s-aws-v1."
CLUSTER_HEADER: Final = "x-k8s-aws-id"
URL_SECONDS: Final = 60
TOKEN_LIFE: Final = timedelta(minutes=14)
"""A minute less than EKS takes it for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where an API server is, and what signs its certificate."""

    url: str
    ca: str
    """PEM."""


def describe(aws: Aws, name: str) -> Endpoint:
    """Ask EKS where a cluster is.

    Raises:
        NotFound: there is no such cluster in this account and region.
        Temporary: it is still being made.
        Refused: it is being deleted, or we have no right to ask.
    """
    with translated(f"describe EKS cluster {name}"):
        cluster = aws.eks.describe_cluster(name=name)["cluster"]
    status = cluster.get("status", "")
    if status in {"DELETING", "FAILED"}:
        raise Refused(f"EKS cluster {name} is {status}")
    # EKS describes a cluster in the state CREATING without both.
    if not cluster.get("endpoint") or not cluster.get("certificateAuthority", {}).get("data"):
        raise Temporary(f"EKS cluster {name} has no endpoint yet: it is {status}")
    ca = b64decode(cluster["certificateAuthority"]["data"]).decode()
    return Endpoint(url=cluster["endpoint"], ca=ca)


class EksToken:
    """The bearer token for one EKS cluster, made anew before it runs out."""

    def __init__(self, aws: Aws, cluster: str, clock: Clock) -> None:
        self._aws = aws
        self._cluster = cluster
        self._clock = clock
        self._lock = Lock()
        self._made: tuple[str, datetime] | None = None

    def get(self) -> str:
        """Return a token that is good for at least a minute.

        Raises:
            MissingRights: there are no credentials.
        """
        with self._lock:
            now = self._clock.now()
            if self._made is None or now - self._made[1] >= TOKEN_LIFE:
                self._made = self._make(), now
            return self._made[0]

    def forget(self) -> None:
        """Make a new one next time: this one was refused, or its credentials have run out."""
        with self._lock:
            self._made = None

    def _make(self) -> str:
        with translated(f"make a token for EKS cluster {self._cluster}"):
            session = self._aws.session
            credentials = session.get_credentials()
            if credentials is None:
                raise MissingRights("there are no AWS credentials to make a token for EKS from")
            region = self._aws.region or ""  # without one there is no host, below
            # The regional host: the global one's signature is for us-east-1 only.
            host = self._aws.sts.meta.endpoint_url
            request = AWSRequest(
                method="GET",
                url=f"{host}/?Action=GetCallerIdentity&Version=2011-06-15",
                headers={CLUSTER_HEADER: self._cluster},
            )
            frozen = credentials.get_frozen_credentials()
            SigV4QueryAuth(frozen, "sts", region, expires=URL_SECONDS).add_auth(request)
        return PREFIX + urlsafe_b64encode(str(request.url).encode()).rstrip(b"=").decode()
