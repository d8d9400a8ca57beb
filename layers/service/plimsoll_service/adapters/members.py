"""Who was invited, and who was let in: the table `members`, which no tenant's data is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import Conflict
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.domain.access import Invitation, Principal, Role

SUBJECTS: Final = "subjects"
"""The index of those who were let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoMembers:
    """Invitations as `join#DIGEST`, principals as `member#SUBJECT`, words as `once#WORD` and `count#WORD`."""

    aws: ServiceAws
    table: str

    def invite(self, digest: str, invitation: Invitation) -> None:
        """Keep an invitation."""
        item = {
            "tenant": {"S": invitation.tenant},
            "role": {"S": invitation.role},
            "name": {"S": invitation.name},
            "expires": _time(invitation.expires),
        }
        with translated(f"invite {invitation.name} of {invitation.tenant}"):
            self.aws.dynamodb.put_item(TableName=self.table, Item=_key(f"join#{digest}") | item)

    def redeem(self, digest: str, kid: str, now: datetime) -> Invitation | None:
        """Use up a join token for a key."""
        try:
            with translated("redeem a join token"):
                answer = self.aws.dynamodb.update_item(
                    TableName=self.table,
                    Key=_key(f"join#{digest}"),
                    UpdateExpression="SET used_for = :kid",
                    ConditionExpression=(
                        "expires > :now AND (attribute_not_exists(used_for) OR used_for = :kid)"
                    ),
                    ExpressionAttributeValues={":kid": {"S": kid}, ":now": _time(now)},
                    ReturnValues="ALL_NEW",
                )
        except Conflict:
            return None
        item = answer["Attributes"]
        return Invitation(
            tenant=item["tenant"]["S"],
            role=Role(item["role"]["S"]),
            name=item["name"]["S"],
            expires=datetime.fromtimestamp(int(item["expires"]["N"]), UTC),
        )

    def get(self, subject: str) -> Principal | None:
        """Return a principal as it is now."""
        with translated(f"look {subject} up"):
            answer = self.aws.dynamodb.get_item(
                TableName=self.table, Key=_key(f"member#{subject}"), ConsistentRead=True
            )
        return _principal(answer["Item"]) if "Item" in answer else None

    def admit(self, principal: Principal) -> None:
        """Let a principal in.

        Raises:
            Conflict: the subject is another cluster.
        """
        item: dict[str, Any] = _key(f"member#{principal.subject}") | {
            "subject": {"S": principal.subject},
            "tenant": {"S": principal.tenant},
            "role": {"S": principal.role},
            "name": {"S": principal.name},
            "kid": {"S": principal.kid},
            "public_key": {"B": principal.public_key},
            "cluster_uid": {"S": principal.cluster_uid},
        }
        try:
            with translated(f"let {principal.name} in"):
                self.aws.dynamodb.put_item(
                    TableName=self.table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(id) OR cluster_uid = :uid",
                    ExpressionAttributeValues={":uid": {"S": principal.cluster_uid}},
                )
        except Conflict as error:
            raise Conflict(
                f"{principal.name} is enrolled already, as another cluster: revoke it first"
            ) from error

    def revoke(self, subject: str) -> None:
        """Let nobody in by that subject's key."""
        with translated(f"revoke {subject}"):
            self.aws.dynamodb.delete_item(TableName=self.table, Key=_key(f"member#{subject}"))

    def agents(self) -> Sequence[Principal]:
        """Return the agents of all tenants.

        Only members have the attribute that the index is by: words, which anybody can add, are not in it.
        """
        with translated("list the agents"):
            pages = self.aws.dynamodb.get_paginator("scan").paginate(
                TableName=self.table,
                IndexName=SUBJECTS,
                FilterExpression="#role = :agent",
                ExpressionAttributeNames={"#role": "role"},
                ExpressionAttributeValues={":agent": {"S": "agent"}},
            )
            return [_principal(item) for page in pages for item in page["Items"]]

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


def _key(name: str) -> dict[str, Any]:
    return {"id": {"S": name}}


def _time(at: datetime) -> Any:
    return {"N": str(int(at.timestamp()))}


def _principal(item: Mapping[str, Any]) -> Principal:
    return Principal(
        subject=item["subject"]["S"],
        tenant=item["tenant"]["S"],
        role=Role(item["role"]["S"]),
        name=item["name"]["S"],
        kid=item["kid"]["S"],
        public_key=bytes(item["public_key"]["B"]),
        cluster_uid=item["cluster_uid"]["S"],
    )
