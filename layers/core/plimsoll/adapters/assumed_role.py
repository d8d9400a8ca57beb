"""AWS sessions that act in another account, by a role that is assumed there with an external id.

Credentials last for an hour, which is the most that a role may give which is assumed by a role, and botocore
fetches new ones some minutes before they end.

https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_common-scenarios_third-party.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, override

from boto3.session import Session
from botocore.credentials import CredentialProvider, DeferredRefreshableCredentials
from botocore.session import get_session

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient

SESSION: Final = "plimsoll"
"""The name under which the other account's log of calls shows us."""


def session_of_role(
    sts: Callable[[], STSClient], role: str, external_id: str, region: str | None
) -> Session:
    """Return a session whose credentials are those of a role, fetched at the first call.

    Args:
        sts: returns the client whose credentials may assume the role.
        role: its ARN.
        external_id: what its owner asks for, so that nobody else has us assume it.
        region: of the session.
    """

    def fetch() -> Mapping[str, str]:
        answer = sts().assume_role(RoleArn=role, RoleSessionName=SESSION, ExternalId=external_id)
        given = answer["Credentials"]
        return {
            "access_key": given["AccessKeyId"],
            "secret_key": given["SecretAccessKey"],
            "token": given["SessionToken"],
            "expiry_time": given["Expiration"].isoformat(),
        }

    credentials = DeferredRefreshableCredentials(fetch, "assume-role")

    class OfRole(CredentialProvider):
        METHOD = "plimsoll-role"

        @override
        def load(self) -> DeferredRefreshableCredentials:
            return credentials

    session = get_session()
    resolver = session.get_component("credential_provider")
    # Before all other providers: the environment would otherwise answer first, with the stack's own role.
    resolver.insert_before(resolver.providers[0].METHOD, OfRole())
    return Session(botocore_session=session, region_name=region)
