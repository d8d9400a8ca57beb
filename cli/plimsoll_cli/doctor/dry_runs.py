"""Changes that are tried and not kept: does the cluster hold us to our fields?

A dry run passes admission like any other request, so its answer is what a write would get. Asking
so finds what reading policies would not: that one does not name us, or is not bound, or that a
webhook refuses what we do.

https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from plimsoll.adapters.kubernetes import calls
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.errors import policy_of, refusal, said_of
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH, Json
from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field
from plimsoll.domain.kubernetes import PREFIX
from plimsoll_cli.doctor.facts import Trial, TrialResult

_REFUSED: Final = 400
_NOT_FOUND: Final = 404
_NO_RIGHT: Final = re.compile(r"cannot patch resource")
_POLICIES: Final = "plimsoll-"
"""How the names of the policies in `infra/cluster/fields` begin."""
_STRANGE: Final = "example.com/plimsoll-doctor"
_OURS: Final = f"{PREFIX}doctor"

_KINDS: Final[tuple[tuple[str, Call, Call], ...]] = (
    ("Node", calls.LIST_NODES, calls.PATCH_NODE),
    ("Pod", calls.LIST_PODS, calls.PATCH_POD),
)


def trials(transport: Transport, cluster: str) -> list[Trial]:
    """Try on the first object of each kind that there is.

    Raises:
        Refused: they may not be listed.
    """
    return [trial for kind in _KINDS for trial in _of_kind(transport, cluster, *kind)]


def _of_kind(
    transport: Transport, cluster: str, kind: str, listing: Call, patching: Call
) -> Iterator[Trial]:
    answer = transport.call(listing.method, listing.path(), query={"limit": "1"})
    if answer.status >= _REFUSED:
        raise refusal(cluster, listing, "", answer)
    for obj in (answer.body.get("items") or ())[:1]:
        meta = Field(obj)["metadata"]
        try:
            name, namespace = meta["name"].required(), meta["namespace"].optional()
        except BadInput:
            return  # what no API server wrote is nothing to try on
        for ours, body in ((False, _annotation(_STRANGE)), (True, _annotation(_OURS))):
            answer = transport.call(
                patching.method,
                patching.path(namespace=namespace, name=name),
                query={"dryRun": "All"},
                body=body,
                content_type=MERGE_PATCH,
            )
            if answer.status == _NOT_FOUND:
                return  # it went in between
            about = "/".join(part for part in (namespace, name) if part)
            yield Trial(
                about=f"{kind} {about}", ours=ours, verdict=_verdict(answer), said=said_of(answer)
            )


def _annotation(name: str) -> Json:
    return {"metadata": {"annotations": {name: "asked"}}}


def _verdict(answer: Response) -> TrialResult:
    if answer.status < _REFUSED:
        return TrialResult.PASSED
    if (policy_of(answer) or "").startswith(_POLICIES):
        return TrialResult.BY_OUR_POLICY
    if _NO_RIGHT.search(said_of(answer)):
        return TrialResult.NO_RIGHT
    return TrialResult.BY_ANOTHER
