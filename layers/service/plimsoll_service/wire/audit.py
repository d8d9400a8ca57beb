"""The audit log of a tenant: who did what, to which object, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from plimsoll_service.wire.documents import Count, Text, Time, Words
from plimsoll_service.wire.pages import Page


class Action(StrEnum):
    """An action that the audit log records, whether it was done or refused."""

    INVITE = "invite"
    REVOKE = "revoke"
    BIND = "bind"
    UNBIND = "unbind"
    ACCEPT = "accept"
    DISMISS = "dismiss"
    CANCEL = "cancel"
    CREATE_TOKEN = "create-token"  # noqa: S105 - no password
    REVOKE_TOKEN = "revoke-token"  # noqa: S105 - no password
    EXPORT = "export"
    REMOVE = "remove"


type Outcome = Literal["done", "refused"]


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One row. Equal entries are one row: whoever repeats a request after a lost answer adds none."""

    at: Time
    """When it was done; of a repetition, when it was done first."""
    who: Text
    """The name of a person in the tenant, or the ARN of an operator."""
    subject: Annotated[str, Meta(max_length=256)] = ""
    """The id of a person: names may change. Empty: an operator."""
    role: Text
    """What `who` acted as; `aws`: an operator, by rights to the stack."""
    action: Action
    object: Annotated[str, Meta(min_length=1, max_length=512)]
    """As a path: `clusters/a-1/recommendations/r-1`, `members/p-1`, `tenants/acme`."""
    version: Count = 0
    """Of the object, as `who` saw it; 0: it has none."""
    outcome: Outcome
    reason: Words = ""
    """Why it was refused, or what `who` gave as reason."""


class AuditRows(Page, frozen=True, kw_only=True):
    """A page of the audit log, newest first."""

    items: tuple[AuditEntry, ...]
