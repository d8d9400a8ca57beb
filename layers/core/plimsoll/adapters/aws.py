"""AWS clients: boto3's, each made once and on first use, with time limits that fit a two-minute notice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from boto3.session import Session
from botocore.config import Config

from plimsoll.adapters.assumed_role import session_of_role
from plimsoll.adapters.aws_timeouts import ATTEMPTS, CONNECT_SECONDS, READ_SECONDS
from plimsoll.adapters.workers import THREADS
from plimsoll.domain.registry import Cluster

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sts import STSClient

CONFIG: Final = Config(
    # The standard mode also repeats timeouts: a call without an answer
    # ends after three times these seconds and the pauses between.
    # https://boto3.amazonaws.com/v1/documentation/api/latest/guide/retries.html
    connect_timeout=CONNECT_SECONDS,
    read_timeout=READ_SECONDS,
    # `total_max_attempts` counts the first request, `max_attempts` does not.
    # https://botocore.amazonaws.com/v1/documentation/api/latest/reference/config.html
    retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    # The default is ten connections: boto3 opens and closes one for each call beyond them.
    max_pool_connections=THREADS,
)
SINGLE_ATTEMPT_CONFIG: Final = Config(
    connect_timeout=0.3, read_timeout=0.3, retries={"mode": "standard", "total_max_attempts": 1}
)
"""Of calls beside a drain whose loss costs nothing."""


class Aws:
    """The AWS clients of one region.

    Args:
        region: None leaves it to the environment, as in Lambda.
        endpoints: Service id -> URL, for tests; boto3's own `AWS_ENDPOINT_URL_<SERVICE>` works too.
        profile: of the AWS settings of a person; None: what the environment says.
        session: makes the session of a region, where its credentials are not those of the environment.
    """

    def __init__(
        self,
        region: str | None = None,
        *,
        endpoints: Mapping[str, str] | None = None,
        profile: str | None = None,
        session: Callable[[str | None], Session] | None = None,
    ) -> None:
        self._open = session or (lambda region: Session(profile_name=profile, region_name=region))
        self._region = region
        self._endpoints = dict(endpoints or {})
        self._clients: dict[str, Any] = {}
        self._elsewhere: dict[str, Aws] = {}
        self._assumed: dict[tuple[str, str], Aws] = {}
        self._lock = Lock()

    def in_region(self, region: str) -> Aws:
        """Return the clients of another region, always the same ones."""
        if region == self.region:
            return self
        with self._lock:
            if region not in self._elsewhere:
                self._elsewhere[region] = Aws(region, endpoints=self._endpoints, session=self._open)
            return self._elsewhere[region]

    def assuming(self, role: str, external_id: str) -> Aws:
        """Return the clients of another account, by a role that is assumed there; always the same ones."""
        with self._lock:
            if (role, external_id) not in self._assumed:
                self._assumed[role, external_id] = Aws(
                    self._region or self.region,
                    endpoints=self._endpoints,
                    session=partial(session_of_role, lambda: self.sts, role, external_id),
                )
            return self._assumed[role, external_id]

    def of_cluster(self, cluster: Cluster) -> Aws:
        """Return the clients that act for a cluster: of its account and region."""
        own = self
        if cluster.role is not None and cluster.external_id is not None:
            own = self.assuming(cluster.role, cluster.external_id)
        return own.in_region(cluster.region)

    def make_ready(self, *services: str) -> None:
        """Make the clients of some services now, by their ids."""
        for service in services:
            self._client(service)

    @cached_property
    def session(self) -> Session:
        """The session: unless it is of a role, credentials and region come from the environment."""
        return self._open(self._region)

    @property
    def region(self) -> str | None:
        """The region of the session; None: the environment has none."""
        return self.session.region_name

    def client(self, service: str) -> Any:
        """Return the client of a service that has no property here."""
        return self._client(service)

    def _client(self, service: str) -> Any:
        return self._made(service, service, CONFIG)

    def _made(self, name: str, service: str, config: Config) -> Any:
        with self._lock:  # making a client is not thread-safe, using one is
            if name not in self._clients:
                self._clients[name] = self.session.client(
                    service,  # type: ignore[call-overload] # the stubs list every name as a Literal
                    endpoint_url=self._endpoints.get(service),
                    config=config,
                )
            return self._clients[name]

    @property
    def arc_zonal_shift(self) -> Any:
        """Zonal shifts of the Application Recovery Controller; there are no types for it among ours."""
        return self._client("arc-zonal-shift")

    @property
    def autoscaling(self) -> AutoScalingClient:
        """Auto Scaling."""
        return self._client("autoscaling")  # type: ignore[no-any-return] # by its name

    @property
    def dynamodb(self) -> DynamoDBClient:
        """DynamoDB."""
        return self._client("dynamodb")  # type: ignore[no-any-return] # by its name

    @property
    def single_attempt_dynamodb(self) -> DynamoDBClient:
        """DynamoDB, asked once and for 0.3 s."""
        return self._made("dynamodb, single attempt", "dynamodb", SINGLE_ATTEMPT_CONFIG)  # type: ignore[no-any-return] # by its name

    @property
    def ec2(self) -> EC2Client:
        """EC2."""
        return self._client("ec2")  # type: ignore[no-any-return] # by its name

    @property
    def eks(self) -> EKSClient:
        """EKS."""
        return self._client("eks")  # type: ignore[no-any-return] # by its name

    @property
    def events(self) -> EventBridgeClient:
        """EventBridge."""
        return self._client("events")  # type: ignore[no-any-return] # by its name

    @property
    def servicequotas(self) -> Any:
        """Service Quotas; there are no types for it among ours."""
        return self._client("service-quotas")

    @property
    def secretsmanager(self) -> SecretsManagerClient:
        """Secrets Manager."""
        return self._client("secretsmanager")  # type: ignore[no-any-return] # by its name

    @property
    def sns(self) -> Any:
        """SNS; there are no types for it among ours."""
        return self._client("sns")

    @property
    def sts(self) -> STSClient:
        """STS."""
        return self._client("sts")  # type: ignore[no-any-return] # by its name

    @property
    def sqs(self) -> SQSClient:
        """SQS."""
        return self._client("sqs")  # type: ignore[no-any-return] # by its name
