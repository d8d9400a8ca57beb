"""Bindings of groups, sessions and API tokens: the table `people`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.tables import readable
from plimsoll.domain.errors import Conflict
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.faults import Tell, logged
from plimsoll_service.domain.access import ApiToken, Binding, Grant, PersonRole, Session

GROUPS: Final = "#groups"
"""The partition of all bindings, which a sign-in reads whole. No tenant has this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleTable:
    """Sessions and tokens under their tenant and id; bindings of all tenants in one partition."""

    aws: ServiceAws
    table: str
    tell: Tell = logged

    def bind(self, binding: Binding) -> None:
        """Bind a group to a tenant."""
        item = _key(GROUPS, _binding_id(binding.tenant, binding.group)) | _grant_item(binding.grant)
        self._put(item | _texts(tenant_name=binding.tenant, group=binding.group))

    def unbind(self, tenant: str, group: str) -> bool:
        """Delete a binding; whether it was there."""
        return self._delete(_key(GROUPS, _binding_id(tenant, group)))

    def bindings(self, tenant: str | None) -> Sequence[Binding]:
        """Return the bindings of a tenant; None: of all."""
        return list(self._query(GROUPS, "" if tenant is None else f"{tenant}#", _binding))

    def begin(self, session: Session) -> None:
        """Keep a session."""
        texts = _texts(person=session.person, name=session.name)
        times = _times(began=session.began, seen=session.seen, expires=session.expires)
        groups = {"groups": {"SS": sorted(session.groups)}}
        self._put(_key(session.tenant, session.id) | texts | times | groups)

    def session(self, tenant: str, session: str) -> Session | None:
        """Return a session by its id."""
        return self._get(tenant, session, _session)

    def sessions(self, tenant: str) -> Iterator[Session]:
        """Yield the sessions of a tenant."""
        return self._query(tenant, "s-", _session)

    def keep(self, token: ApiToken) -> None:
        """Keep an API token."""
        texts = _texts(name=token.name, made_by=token.made_by)
        times = _times(made=token.made, expires=token.expires)
        self._put(_key(token.tenant, token.id) | texts | times | _grant_item(token.grant))

    def token(self, tenant: str, token: str) -> ApiToken | None:
        """Return an API token by its id."""
        return self._get(tenant, token, _token)

    def tokens(self, tenant: str) -> Iterator[ApiToken]:
        """Yield the API tokens of a tenant."""
        return self._query(tenant, "t-", _token)

    def seen(self, tenant: str, its: str, now: datetime) -> None:
        """Write down that a session or token was used."""
        try:
            with translated("write down that a session was used"):
                self.aws.dynamodb.update_item(
                    TableName=self.table,
                    Key=_key(tenant, its),
                    UpdateExpression="SET seen = :now",
                    # Without it, an update would bring back what was ended meanwhile.
                    ConditionExpression="attribute_exists(id)",
                    ExpressionAttributeValues={":now": _time(now)},
                )
        except Conflict:
            return

    def end(self, tenant: str, its: str) -> bool:
        """Delete a session or token; whether it was there."""
        return self._delete(_key(tenant, its))

    def _put(self, item: Mapping[str, Any]) -> None:
        with translated("write a row of people"):
            self.aws.dynamodb.put_item(TableName=self.table, Item=item)

    def _delete(self, key: Mapping[str, Any]) -> bool:
        with translated("delete a row of people"):
            answer = self.aws.dynamodb.delete_item(
                TableName=self.table, Key=key, ReturnValues="ALL_OLD"
            )
        return "Attributes" in answer

    def _get[T](self, tenant: str, its: str, read: Callable[[Mapping[str, Any]], T]) -> T | None:
        with translated("look a session up"):
            answer = self.aws.dynamodb.get_item(
                TableName=self.table, Key=_key(tenant, its), ConsistentRead=True
            )
        return self._read(read, answer["Item"]) if "Item" in answer else None

    def _query[T](
        self, tenant: str, begins: str, read: Callable[[Mapping[str, Any]], T]
    ) -> Iterator[T]:
        condition, values = "tenant = :tenant", {":tenant": {"S": tenant}}
        if begins:
            condition += " AND begins_with(id, :begins)"
            values[":begins"] = {"S": begins}
        with translated("list people"):
            pages = self.aws.dynamodb.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=values,
                ConsistentRead=True,
            )
            for page in pages:
                found = (self._read(read, item) for item in page["Items"])
                yield from (each for each in found if each is not None)

    def _read[T](self, read: Callable[[Mapping[str, Any]], T], item: Mapping[str, Any]) -> T | None:
        """Return what a row tells, or None: it cannot be read, and counts as absent."""
        key = f"{item['tenant']['S']} {item['id']['S']}"
        return readable(read, item, key, lambda why: self.tell(table=self.table, key=key, why=why))


def _binding_id(tenant: str, group: str) -> str:
    return f"{tenant}#{sha256(group.encode()).hexdigest()}"


def _key(tenant: str, its: str) -> dict[str, Any]:
    return _texts(tenant=tenant, id=its)


def _texts(**texts: str) -> dict[str, Any]:
    return {name: {"S": text} for name, text in texts.items()}


def _time(at: datetime) -> dict[str, str]:
    return {"N": str(int(at.timestamp()))}


def _times(**times: datetime) -> dict[str, Any]:
    return {name: _time(at) for name, at in times.items()}


def _grant_item(grant: Grant) -> dict[str, Any]:
    limited = {} if grant.clusters is None else {"clusters": {"SS": sorted(grant.clusters)}}
    return _texts(role=grant.role) | limited


def _grant(item: Mapping[str, Any]) -> Grant:
    clusters = frozenset(item["clusters"]["SS"]) if "clusters" in item else None
    return Grant(role=PersonRole(item["role"]["S"]), clusters=clusters)


def _moment(item: Mapping[str, Any], name: str) -> datetime:
    return datetime.fromtimestamp(int(item[name]["N"]), UTC)


def _binding(item: Mapping[str, Any]) -> Binding:
    return Binding(tenant=item["tenant_name"]["S"], group=item["group"]["S"], grant=_grant(item))


def _session(item: Mapping[str, Any]) -> Session:
    return Session(
        id=item["id"]["S"],
        tenant=item["tenant"]["S"],
        person=item["person"]["S"],
        name=item["name"]["S"],
        groups=frozenset(item["groups"]["SS"]),
        began=_moment(item, "began"),
        seen=_moment(item, "seen"),
    )


def _token(item: Mapping[str, Any]) -> ApiToken:
    return ApiToken(
        id=item["id"]["S"],
        tenant=item["tenant"]["S"],
        name=item["name"]["S"],
        grant=_grant(item),
        made_by=item["made_by"]["S"],
        made=_moment(item, "made"),
        expires=_moment(item, "expires"),
        seen=_moment(item, "seen") if "seen" in item else None,
    )
