"""Who was invited, and who was let in: the table `members`, which no tenant's data is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.tables import readable
from plimsoll.domain.errors import Conflict
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.faults import Tell, logged
from plimsoll_service.domain.access import (
    REVOCATION_KEPT,
    Invitation,
    Principal,
    Role,
    granted_by_key,
)

_NEVER_CHANGED: Final = "attribute_not_exists(change)"

SUBJECTS: Final = "subjects"
"""The index of those who were let in."""
MEMBERS: Final = "members"
"""The index of the same by tenant and subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoMembers:
    """Invitations as `invitation#DIGEST`, principals as `member#SUBJECT`, words as `once#WORD` and `count#WORD`.

    The item of a subject names its last change: the digest of the join token that let its key in, or a
    random word if it was revoked. An invitation replaces only the change that it was made after.
    """

    aws: ServiceAws
    table: str
    tell: Tell = logged

    def invite(self, digest: str, invitation: Invitation) -> None:
        """Keep an invitation."""
        item = _key(f"invitation#{digest}") | {
            "tenant": {"S": invitation.tenant},
            "role": {"S": invitation.role},
            "name": {"S": invitation.name},
            "expires": _time(invitation.expires),
            "replaces": self._item(f"member#{invitation.subject}").get("change", {"S": ""}),
        }
        with translated(f"invite {invitation.name} of {invitation.tenant}"):
            self.aws.dynamodb.put_item(TableName=self.table, Item=item)

    def admit(
        self, digest: str, public_key: bytes, cluster_uid: str, now: datetime
    ) -> Principal | None:
        """Let a key in by a join token.

        Raises:
            Conflict: the subject is another cluster.
        """
        invited = self._item(f"invitation#{digest}")
        invitation = self._read(_invitation, invited) if invited else None
        if invitation is None or invitation.expires <= now:
            return None
        principal = Principal.admitted(invitation, public_key, cluster_uid)
        replaces = invited.get("replaces", {"S": ""})
        unchanged = "change = :replaces" if replaces["S"] else _NEVER_CHANGED
        values = {":kid": {"S": principal.kid}, ":uid": {"S": cluster_uid}, ":by": {"S": digest}}
        if replaces["S"]:
            values[":replaces"] = replaces
        try:
            with translated(f"let {principal.name} in"):
                self.aws.dynamodb.put_item(
                    TableName=self.table,
                    Item=_member(principal) | {"change": {"S": digest}},
                    ConditionExpression=(
                        f"({unchanged} OR (change = :by AND kid = :kid))"
                        " AND (attribute_not_exists(cluster_uid) OR cluster_uid = :uid)"
                    ),
                    ExpressionAttributeValues=values,
                )
        # Read only for the message: the condition has decided.
        except Conflict as error:
            known = self.get(principal.subject)
            if known is None or known.cluster_uid == cluster_uid:
                return None
            raise Conflict(
                f"{principal.name} is enrolled already, as another cluster: revoke it first"
            ) from error
        return principal

    def get(self, subject: str) -> Principal | None:
        """Return a principal as it is now."""
        item = self._item(f"member#{subject}")
        return self._read(_principal, item) if "kid" in item else None

    def revoke(self, subject: str, now: datetime) -> None:
        """Let nobody in by that subject's key, nor by what was given out for it."""
        item = _key(f"member#{subject}") | {
            "change": {"S": token_hex(16)},
            "expires": _time(now + REVOCATION_KEPT),
        }
        with translated(f"revoke {subject}"):
            self.aws.dynamodb.put_item(TableName=self.table, Item=item)

    def agents(self) -> Sequence[Principal]:
        """Return the agents of all tenants.

        Only members have the attribute that the index is by: words, which anybody can add, are not in it.
        """
        with translated("list the agents"):
            pages = self.aws.dynamodb.get_paginator("scan").paginate(
                TableName=self.table,
                # The index is eventually consistent: an agent that enrolled a moment ago may be missing.
                IndexName=SUBJECTS,
                FilterExpression="#role = :agent",
                ExpressionAttributeNames={"#role": "role"},
                ExpressionAttributeValues={":agent": {"S": "agent"}},
            )
            read = (self._read(_principal, item) for page in pages for item in page["Items"])
            return [each for each in read if each is not None]

    def of_tenant(self, tenant: str, first: str, last: str, *, limit: int) -> Iterator[Principal]:
        """Yield who was let in to a tenant; one that was let in a moment ago may be missing, as in `agents`."""
        with translated(f"list the members of {tenant}"):
            pages = self.aws.dynamodb.get_paginator("query").paginate(
                TableName=self.table,
                IndexName=MEMBERS,
                KeyConditionExpression="tenant = :tenant AND subject BETWEEN :first AND :last",
                ExpressionAttributeValues={
                    ":tenant": {"S": tenant},
                    ":first": {"S": first or "a"},  # DynamoDB takes no empty text for a key
                    ":last": {"S": last},
                },
                PaginationConfig={"PageSize": limit},
            )
            for page in pages:
                for item in page["Items"]:
                    principal = self._read(_principal, item)
                    if principal is not None:
                        yield principal

    def once(self, word: str, expires: datetime) -> bool:
        """Whether a word is said for the first time."""
        return self._counted(f"once#{word}", expires, most=1)

    def count(self, word: str, expires: datetime, *, most: int) -> bool:
        """Count a word, up to `most`."""
        return self._counted(f"count#{word}", expires, most=most)

    def _counted(self, name: str, expires: datetime, *, most: int) -> bool:
        try:
            with translated("count a word"):
                self.aws.dynamodb.update_item(
                    TableName=self.table,
                    Key=_key(name),
                    UpdateExpression="SET expires = :expires ADD times :one",
                    # botocore may repeat the call after a lost answer, and
                    # the repetition counts too: in doubt the word was used.
                    ConditionExpression="attribute_not_exists(id) OR times < :most",
                    ExpressionAttributeValues={
                        ":expires": _time(expires),
                        ":one": {"N": "1"},
                        ":most": {"N": str(most)},
                    },
                )
        except Conflict:
            return False
        return True

    def _read[T](self, read: Callable[[Mapping[str, Any]], T], item: Mapping[str, Any]) -> T | None:
        """Return what an item tells, or None: it cannot be read, and counts as absent."""
        key = str(item.get("id", {}).get("S", ""))
        return readable(read, item, key, lambda why: self.tell(table=self.table, key=key, why=why))

    def _item(self, name: str) -> Mapping[str, Any]:
        with translated(f"look {name.partition('#')[0]} up"):
            answer = self.aws.dynamodb.get_item(
                TableName=self.table, Key=_key(name), ConsistentRead=True
            )
        item: Mapping[str, Any] = answer.get("Item", {})
        return item


def _key(name: str) -> dict[str, Any]:
    return {"id": {"S": name}}


def _time(at: datetime) -> Any:
    return {"N": str(int(at.timestamp()))}


def _member(principal: Principal) -> dict[str, Any]:
    return _key(f"member#{principal.subject}") | {
        "subject": {"S": principal.subject},
        "tenant": {"S": principal.tenant},
        "role": {"S": principal.role},
        "name": {"S": principal.name},
        "kid": {"S": principal.kid},
        "public_key": {"B": principal.public_key},
        "cluster_uid": {"S": principal.cluster_uid},
    }


def _invitation(item: Mapping[str, Any]) -> Invitation:
    return Invitation(
        tenant=item["tenant"]["S"],
        role=Role(item["role"]["S"]),
        name=item["name"]["S"],
        expires=datetime.fromtimestamp(int(item["expires"]["N"]), UTC),
    )


def _principal(item: Mapping[str, Any]) -> Principal:
    return Principal(
        subject=item["subject"]["S"],
        tenant=item["tenant"]["S"],
        role=Role(item["role"]["S"]),
        name=item["name"]["S"],
        kid=item["kid"]["S"],
        public_key=bytes(item["public_key"]["B"]),
        cluster_uid=item["cluster_uid"]["S"],
        grants=granted_by_key(Role(item["role"]["S"])),
    )
