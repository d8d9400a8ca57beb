"""The AWS clients of the service, and those that may reach the data of one tenant only."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from boto3.session import Session

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.aws_errors import translated
from plimsoll_service.domain.access import session_policy

if TYPE_CHECKING:
    from plimsoll_service.services.ports import Clock

SESSION_LIFE: Final = timedelta(minutes=15)
"""The shortest that STS gives."""
RENEWED_BEFORE: Final = timedelta(minutes=2)
MOST_SESSIONS: Final = 64
"""Of one process: each holds connections."""


class ServiceAws(Aws):
    """The AWS clients of the service."""

    @property
    def s3(self) -> Any:
        """S3; there are no types for it among ours."""
        return self._client("s3")

    @property
    def kms(self) -> Any:
        """KMS; there are no types for it among ours."""
        return self._client("kms")

    @property
    def pricing(self) -> Any:
        """The price list; there are no types for it among ours."""
        return self._client("pricing")


@dataclass(slots=True, kw_only=True)
class TenantSessions:
    """AWS clients for each tenant, under a policy that lets them reach that tenant's data alone."""

    aws: ServiceAws
    region: str
    role: str
    """ARN of the role that reaches the data of all tenants."""
    table: str
    """ARN."""
    audit: str
    """ARN."""
    bucket: str
    """ARN."""
    clock: Clock
    _open: OrderedDict[str, tuple[ServiceAws, datetime]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, tenant: str) -> ServiceAws:
        """Return the clients that work for one tenant."""
        with self._lock:
            now = self.clock.now()
            found = self._open.get(tenant)
            # botocore does not renew these credentials: the session got them as fixed values.
            if found is None or found[1] - RENEWED_BEFORE <= now:
                found = self._assumed(tenant), now + SESSION_LIFE
            self._open[tenant] = found
            self._open.move_to_end(tenant)
            while len(self._open) > MOST_SESSIONS:
                self._open.popitem(last=False)
            return found[0]

    def _assumed(self, tenant: str) -> ServiceAws:
        policy = session_policy(tenant, table=self.table, audit=self.audit, bucket=self.bucket)
        with translated(f"work for the tenant {tenant}"):
            answer = self.aws.sts.assume_role(
                RoleArn=self.role,
                RoleSessionName=f"tenant-{tenant}",
                Policy=policy,
                DurationSeconds=int(SESSION_LIFE.total_seconds()),
            )
        given = answer["Credentials"]
        return ServiceAws(
            self.region,
            session=lambda region: Session(
                given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], region
            ),
        )
