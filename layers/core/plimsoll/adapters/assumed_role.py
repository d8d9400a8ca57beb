"""AWS clients that act in another account, by a role that is assumed there with an external id.

Credentials last for an hour, which is the most that a role may give which is assumed by a role, and botocore
fetches new ones some minutes before they end.

https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_common-scenarios_third-party.html
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, override

from plimsoll.adapters.aws import Aws

if TYPE_CHECKING:
    import boto3

SESSION: Final = "plimsoll"
"""The name under which the other account's log of calls shows us."""


class AssumedRole(Aws):
    """The AWS clients of one region of another account.

    Args:
        aws: the clients whose credentials may assume the role.
        role: its ARN.
        external_id: what its owner asks for, so that nobody else has us assume it.
        region: as of `Aws`.
        endpoints: as of `Aws`.
    """

    def __init__(
        self,
        aws: Aws,
        role: str,
        external_id: str,
        region: str | None = None,
        *,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(region, endpoints=endpoints)
        self._aws = aws
        self._role = role
        self._external_id = external_id

    @override
    def _in_region(self, region: str) -> Aws:
        return AssumedRole(
            self._aws, self._role, self._external_id, region, endpoints=self._endpoints
        )

    @cached_property
    @override
    def session(self) -> boto3.Session:
        """The session: its credentials are those of the role, fetched at the first call."""
        import boto3  # noqa: PLC0415 - see `aws`
        from botocore.credentials import (  # noqa: PLC0415 - see `aws`
            CredentialProvider,
            DeferredRefreshableCredentials,
        )
        from botocore.session import Session  # noqa: PLC0415 - see `aws`

        credentials = DeferredRefreshableCredentials(self._fetch, "assume-role")

        class OfRole(CredentialProvider):
            METHOD = "plimsoll-role"

            @override
            def load(self) -> DeferredRefreshableCredentials:
                return credentials

        core = Session()
        resolver = core.get_component("credential_provider")
        resolver.insert_before(resolver.providers[0].METHOD, OfRole())
        region = self._region or self._aws.session.region_name
        return boto3.Session(botocore_session=core, region_name=region)

    def _fetch(self) -> Mapping[str, str]:
        answer = self._aws.sts.assume_role(
            RoleArn=self._role, RoleSessionName=SESSION, ExternalId=self._external_id
        )["Credentials"]
        return {
            "access_key": answer["AccessKeyId"],
            "secret_key": answer["SecretAccessKey"],
            "token": answer["SessionToken"],
            "expiry_time": answer["Expiration"].isoformat(),
        }
