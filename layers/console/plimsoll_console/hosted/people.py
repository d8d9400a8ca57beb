"""People: who is signed in, and which programs hold a token?"""

from __future__ import annotations

from plimsoll_console.hosted.asked import Asked
from plimsoll_console.pages import Page, Request, missing
from plimsoll_console.views.words import ago

MOST = 200
"""Rows of a table. `plimsoll tenants` lists all."""


def people(request: Request, asked: Asked) -> Page:
    """List the sessions and API tokens of the tenant."""
    tenant, now = asked.person.tenant, asked.now
    sessions = asked.sessions.live(tenant, now)
    tokens = asked.sessions.tokens(tenant, now)
    return Page(
        template="hosted/people.html.j2",
        given={
            "here": "people",
            "sessions": [
                (each, ago(each.seen, now), each.id == asked.person.kid)
                for each in sessions[:MOST]
            ],
            "sessions_of": len(sessions),
            "tokens": [
                (each, "never" if each.seen is None else ago(each.seen, now))
                for each in tokens[:MOST]
            ],
            "tokens_of": len(tokens),
            "most": MOST,
            "done": request.query.get("done", "")[:64],
        },
    )


def end_access(request: Request, asked: Asked) -> Page:
    """End a session, or revoke an API token, of the person's own tenant."""
    its = request.form.get("id", "")
    if not asked.sessions.end(asked.person.tenant, its):
        return missing("It was ended before.", "The list shows who is let in now.")
    return Page(to="people")
