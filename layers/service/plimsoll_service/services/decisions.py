"""Decisions of people about recommendations, each with its audit row.

Decision and row are one transaction: none is without the other. A refused attempt leaves a row too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from plimsoll.domain.errors import Conflict, MissingRights, NotFound, Refused
from plimsoll_service.domain.access import PersonRole, Principal
from plimsoll_service.domain.advice import Decider, accepted, cancelled, dismissed
from plimsoll_service.domain.errors import Forbidden
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.audit import entry_of
from plimsoll_service.services.cluster_rows import tell_decisions
from plimsoll_service.services.kept_advice import ATTEMPTS, RECOMMENDATIONS, read_recommendations
from plimsoll_service.services.ports import TenantData
from plimsoll_service.wire.advice import DismissRequest, Recommendation
from plimsoll_service.wire.audit import Action
from plimsoll_service.wire.documents import encode

type _Decide = Callable[[Recommendation, Decider], Recommendation]


def accept(  # noqa: PLR0913 - a decision, each part named
    data: TenantData, cluster: str, id_: str, *, by: Principal, seen: int, now: datetime
) -> Recommendation:
    """Accept the version of a recommendation that was seen, and return it. Again is once.

    Raises:
        Forbidden: the person is no operator of the cluster.
        NotFound: there is none of that id.
        Changed: it has another version.
        Refused: it is not open.
        Temporary: others wrote meanwhile, again and again: try again.
    """
    return _decide(data, cluster, id_, Action.ACCEPT, accepted, by=by, seen=seen, now=now)


def dismiss(  # noqa: PLR0913 - as above
    data: TenantData,
    cluster: str,
    id_: str,
    asked: DismissRequest,
    *,
    by: Principal,
    seen: int,
    now: datetime,
) -> Recommendation:
    """Dismiss a recommendation until a time, and return it. Again is once.

    Raises:
        Malformed: the time is past or too far away.
        Forbidden, NotFound, Changed, Refused, Temporary: as above.
    """

    def decide(each: Recommendation, decider: Decider) -> Recommendation:
        return dismissed(each, decider, asked)

    return _decide(
        data, cluster, id_, Action.DISMISS, decide, by=by, seen=seen, now=now, reason=asked.reason
    )


def cancel(  # noqa: PLR0913 - as above
    data: TenantData, cluster: str, id_: str, *, by: Principal, seen: int, now: datetime
) -> Recommendation:
    """Take an acceptance back that is not signed, or a dismissal, and return the recommendation. Again is once.

    Raises:
        Refused: nothing is decided, or an instruction was signed.
        Forbidden, NotFound, Changed, Temporary: as above.
    """
    return _decide(data, cluster, id_, Action.CANCEL, cancelled, by=by, seen=seen, now=now)


def _decide(  # noqa: PLR0913 - as above
    data: TenantData,
    cluster: str,
    id_: str,
    action: Action,
    decide: _Decide,
    *,
    by: Principal,
    seen: int,
    now: datetime,
    reason: str = "",
) -> Recommendation:
    decider = Decider(name=by.name[:256], subject=by.subject, seen=seen, now=now)
    object_ = f"clusters/{cluster}/recommendations/{id_}"
    row = entry_of(by, action, object_, outcome="done", now=now, version=seen, reason=reason)

    def once() -> Recommendation:
        if not by.may(PersonRole.OPERATOR, cluster):
            raise Forbidden(f"to {action} a recommendation of {cluster} takes the role operator")
        kept, version = read_recommendations(data, cluster)
        before = next((each for each in kept.recommendations if each.id == id_), None)
        if before is None:
            raise NotFound(f"there is no recommendation {id_[:64]!r}")
        after = decide(before, decider)
        every = tuple(after if each is before else each for each in kept.recommendations)
        if after != before:
            body, expires = encode(replace(kept, recommendations=every)), now + Span.DAY.kept
            data.put(cluster, RECOMMENDATIONS, body, version=version, expires=expires, audit=row)
        # Also when it was decided before: whoever died in between repeats the decision.
        tell_decisions(data, cluster, sum(each.state == "open" for each in every), now)
        return after

    try:
        for _ in range(ATTEMPTS - 1):
            with suppress(Conflict):
                return once()
        return once()
    except MissingRights:  # a fault of ours, and no refusal
        raise
    except (NotFound, Refused) as error:
        tried = entry_of(
            by, action, object_, outcome="refused", now=now, version=seen, reason=str(error)
        )
        data.audit.append(tried)
        raise
