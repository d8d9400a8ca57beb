"""People: who is let in, and by what?"""

from __future__ import annotations

from typing import Final

from plimsoll_console.hosted.asked import Asked, listed
from plimsoll_console.pages import Page, Request
from plimsoll_console.views.words import ago
from plimsoll_service.domain.access import Role
from plimsoll_service.services.clusters import MEMBER, MEMBER_FILTERS, members

MOST: Final = 200
"""Rows of a table. `plimsoll tenants` lists all."""


def people(request: Request, asked: Asked) -> Page:
    """List the sessions, the API tokens, who holds a key, and the bindings of groups of the tenant.

    Raises:
        Forbidden: the person is no admin.
        Malformed: the query names no such page of those who hold a key.
    """
    now = asked.now
    found = asked.people.people(asked.person, now)
    wanted = listed(request, MEMBER, MEMBER_FILTERS, role=Role.PERSON.value)
    holders = members(asked.members, asked.person.tenant, wanted.page, now)
    return Page(
        template="hosted/people.html.j2",
        given={
            **wanted.given,
            "here": "people",
            "holders": holders.items,
            "next": holders.next,
            "sessions": [
                (each, ago(each.seen, now), each.id == asked.person.kid)
                for each in found.sessions[:MOST]
            ],
            "sessions_of": len(found.sessions) + found.left_out,
            "tokens": [
                (each, "never" if each.seen is None else ago(each.seen, now))
                for each in found.tokens[:MOST]
            ],
            "tokens_of": len(found.tokens),
            "bindings": found.bindings,
            "most": MOST,
        },
    )


def end_access(request: Request, asked: Asked) -> Page:
    """End a session, or revoke an API token, of the person's own tenant.

    Raises:
        NotFound: it was ended before.
    """
    asked.people.end(asked.person, request.form.get("id", "")[:64], asked.now)
    return Page(to="people")
