"""Decisions about recommendations: of one version, once, by whoever may, and each with its audit row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from plimsoll.domain.errors import Conflict, NotFound, Refused, Temporary
from plimsoll_service.domain.access import Grant, PersonRole, Principal
from plimsoll_service.domain.errors import Changed, Forbidden
from plimsoll_service.services import decisions
from plimsoll_service.services.audit_reads import FILTERS, audit_rows
from plimsoll_service.services.kept_advice import RECOMMENDATIONS
from plimsoll_service.services.paging import page_request
from plimsoll_service.wire.advice import DismissRequest, Recommendation
from plimsoll_service.wire.audit import Action, AuditEntry, AuditRows
from plimsoll_service.wire.documents import Malformed
from tests.support.advised import AdvisedCluster, harbor, without_a
from tests.support.enrolled import person_of
from tests.support.snapshots import GIB, NOW, amounts

NODE = "consolidate-node a"
ANN, BOB = person_of("ann", now=NOW), person_of("bob", now=NOW)
DAY = timedelta(days=1)


@dataclass
class Decided:
    """The service with one cluster that was advised, and people who decide."""

    cluster: AdvisedCluster = field(default_factory=AdvisedCluster)

    def __post_init__(self) -> None:
        self.cluster.advise(harbor())

    @property
    def now(self) -> datetime:
        return self.cluster.time

    def one(self) -> Recommendation:
        return self.cluster.all()[NODE]

    def accept(self, by: Principal = ANN, seen: int | None = None, **more: Any) -> Recommendation:
        return self._decided(decisions.accept, by, seen, **more)

    def cancel(self, by: Principal = ANN, seen: int | None = None) -> Recommendation:
        return self._decided(decisions.cancel, by, seen)

    def dismiss(
        self, by: Principal = ANN, seen: int | None = None, *, days: float = 30, why: str = "sale"
    ) -> Recommendation:
        asked = DismissRequest(reason=why, until=NOW + timedelta(days=days))

        def dismiss(data: Any, cluster: str, id_: str, **how: Any) -> Recommendation:
            return decisions.dismiss(data, cluster, id_, asked, **how)

        return self._decided(dismiss, by, seen)

    def _decided(self, decide: Any, by: Principal, seen: int | None, **more: Any) -> Recommendation:
        one = self.one()
        facts = {"by": by, "seen": one.version if seen is None else seen, "now": self.now} | more
        made: Recommendation = decide(self.cluster.data, "harbor", one.id, **facts)
        return made

    def rows(self) -> list[AuditEntry]:
        """Return the audit rows, newest first."""
        return [entry for _, entry in self.cluster.data.audit.list()]

    def told(self) -> list[tuple[str, str, int, str]]:
        """Return who did what, the oldest first."""
        return [(r.who, r.action, r.version, r.outcome) for r in reversed(self.rows())]


@pytest.fixture
def made() -> Decided:
    return Decided()


def less_free() -> Any:
    """Return the cluster with a node that holds more: the reason of the advice is another one."""
    seen = harbor()
    first = structs.replace(seen.pods[0], name="web-2", uid="uid-web-2", requests=amounts(1, GIB))
    return structs.replace(seen, pods=(*seen.pods, first))


# --- Versions --------------------------------------------------------------------------------------


def test_what_is_advised_again_unchanged_keeps_its_version(made):
    for _ in range(3):
        made.cluster.advise(harbor())
    assert (made.one().version, made.one().change) == (1, "")


def test_another_reason_is_another_version_that_says_what_changed(made):
    before = made.one()
    made.cluster.advise(less_free())
    after = made.one()
    assert after.reason != before.reason
    assert (after.version, after.change) == (2, f"the reason is now: {after.reason}")


def test_a_price_that_moves_by_cents_is_no_new_version_and_one_that_moves_by_dollars_is(made):
    kept = made.cluster.data.get("harbor", RECOMMENDATIONS)
    for less, version in ((0.2, 1), (30.0, 2)):
        body = kept.body.replace(
            str(made.one().monthly).encode(), str(made.one().monthly - less).encode()
        )
        current = made.cluster.data.get("harbor", RECOMMENDATIONS)
        made.cluster.data.put(
            "harbor", RECOMMENDATIONS, body, version=current.version, expires=made.now + DAY
        )
        made.cluster.advise(harbor())
        assert made.one().version == version
    assert "a month, and saved $" in made.one().change


def test_what_comes_again_after_it_was_withdrawn_is_another_version(made):
    made.cluster.advise(without_a())
    assert made.one().state == "withdrawn"
    made.cluster.advise(harbor())
    assert (made.one().state, made.one().version) == ("open", 3)


# --- Accepting -------------------------------------------------------------------------------------


def test_who_accepted_which_version_is_known_after_it_is_done(made):
    made.accept()
    made.cluster.advise(harbor())
    made.cluster.report("done")
    made.cluster.advise(harbor())
    done = made.one()
    assert (done.state, done.note) == ("done", "done: so")
    assert (done.accepted_by, done.accepted_at) == ("ann", NOW + timedelta(minutes=1))
    assert made.told() == [("ann", "accept", 1, "done")]


def test_an_accept_that_is_delivered_twice_is_one_whatever_became_of_it_meanwhile(made):
    first = made.accept()
    assert made.accept() == first
    made.cluster.advise(harbor())
    made.cluster.report("refused")
    made.cluster.advise(harbor())
    assert made.accept(seen=first.version).state == "refused"
    assert made.told() == [("ann", "accept", 1, "done")]


def test_who_saw_another_version_is_told_what_changed(made):
    made.cluster.advise(less_free())
    with pytest.raises(Changed, match=r"is version 2, and you saw version 1: the reason is now: "):
        made.accept(seen=1)
    assert made.one().state == "open"
    assert made.told() == [("ann", "accept", 1, "refused")]
    assert made.accept(seen=2).state == "accepted"


def test_of_two_people_at_once_one_wins_and_the_other_is_told_who(made, monkeypatch):
    real, first = made.cluster.data.put, [True]

    def put(cluster: str, key: str, body: bytes, **how: Any) -> Any:
        if first:
            first.clear()
            made.accept(ANN)
        return real(cluster, key, body, **how)

    with monkeypatch.context() as patch:
        patch.setattr(type(made.cluster.data), "put", lambda _, *args, **how: put(*args, **how))
        with pytest.raises(Refused, match="ann accepted it at"):
            made.accept(BOB)
    assert made.one().accepted_by == "ann"
    assert sorted(made.told()) == [("ann", "accept", 1, "done"), ("bob", "accept", 1, "refused")]


def test_another_person_of_the_same_name_is_another_one(made):
    made.accept()
    with pytest.raises(Refused, match="ann accepted it"):
        made.accept(replace(ANN, subject="u-another"))


def test_neither_decision_nor_row_is_there_if_the_write_fails(made, monkeypatch):
    def away(*_args: Any, **_how: Any) -> Any:
        raise Temporary("DynamoDB does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(type(made.cluster.data), "put", away)
        with pytest.raises(Temporary):
            made.accept()
    assert (made.one().state, made.rows()) == ("open", [])


def test_who_is_overtaken_again_and_again_is_asked_to_try_again_and_leaves_no_row(
    made, monkeypatch
):
    def overtaken(*_args: Any, **_how: Any) -> Any:
        raise Conflict("somebody else wrote it")

    with monkeypatch.context() as patch:
        patch.setattr(type(made.cluster.data), "put", overtaken)
        with pytest.raises(Conflict):
            made.accept()
    assert made.rows() == []


def test_what_does_not_exist_is_not_found_and_the_attempt_is_recorded(made):
    with pytest.raises(NotFound):
        decisions.accept(made.cluster.data, "harbor", "r-0", by=ANN, seen=1, now=made.now)
    (row,) = made.rows()
    assert (row.object, row.outcome) == ("clusters/harbor/recommendations/r-0", "refused")
    assert row.reason == "there is no recommendation 'r-0'"


@pytest.mark.parametrize(
    ("grant", "may"),
    [
        (Grant(role=PersonRole.VIEWER), False),
        (Grant(role=PersonRole.OPERATOR), True),
        (Grant(role=PersonRole.OPERATOR, clusters=frozenset({"quay"})), False),
        (Grant(role=PersonRole.OPERATOR, clusters=frozenset({"harbor"})), True),
        (Grant(role=PersonRole.ADMIN), True),
    ],
    ids=["viewer", "operator", "of another cluster", "of this cluster", "admin"],
)
def test_operators_of_the_cluster_decide_and_what_others_try_is_recorded(made, grant, may):
    person = replace(ANN, grants=(grant,))
    for decide in (made.accept, made.cancel, made.dismiss):
        if may:
            decide(person)
        else:
            with pytest.raises(Forbidden):
                decide(person)
    assert {(row.role, row.outcome) for row in made.rows()} == {
        (grant.role, "done" if may else "refused")
    }


# --- Dismissing ------------------------------------------------------------------------------------


def test_what_is_dismissed_stays_so_until_its_time_and_is_then_advised_again(made):
    made.dismiss(days=1)
    for _ in range(2):
        made.cluster.advise(without_a(), minutes=60)
        made.cluster.advise(harbor(), minutes=60)
    dismissed = made.one()
    assert dismissed.state == "dismissed"
    assert dismissed.dismissed is not None
    assert (dismissed.dismissed.by, dismissed.dismissed.reason) == ("ann", "sale")
    made.cluster.advise(harbor(), minutes=24 * 60)
    again = made.one()
    assert (again.state, again.version, again.dismissed) == ("open", 2, None)
    assert made.accept(BOB).accepted_by == "bob"


def test_a_dismissal_that_ended_while_nothing_is_advised_leaves_it_withdrawn(made):
    made.dismiss(days=1)
    made.cluster.advise(without_a(), minutes=25 * 60)
    assert (made.one().state, made.one().note) == ("withdrawn", "the dismissal by ann ended")


def test_what_is_dismissed_is_not_accepted_and_who_did_it_is_named(made):
    made.dismiss()
    with pytest.raises(Refused, match=r"dismissed by ann until 20.* UTC: sale; cancel the"):
        made.accept(BOB)


def test_a_dismissal_that_is_delivered_twice_is_one_and_another_reason_is_another(made):
    first = made.dismiss()
    assert made.dismiss() == first
    with pytest.raises(Refused, match="dismissed by ann"):
        made.dismiss(why="another reason")
    assert [row.outcome for row in made.rows()].count("done") == 1
    assert made.rows()[-1].reason == "sale"


@pytest.mark.parametrize("days", [-1, 0, 401])
def test_a_dismissal_ends_within_four_hundred_days(made, days):
    with pytest.raises(Malformed, match="until"):
        made.dismiss(days=days)
    assert made.one().state == "open"


# --- Cancelling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("decided", ["accept", "dismiss"])
def test_what_is_cancelled_is_open_as_a_new_version_that_the_delayed_decision_does_not_fit(
    made, decided
):
    getattr(made, decided)()
    open_ = made.cancel(BOB)
    assert (open_.state, open_.version, open_.accepted_by) == ("open", 2, "")
    assert open_.change == f"bob cancelled it; it was {decided}ed by ann"
    with pytest.raises(Changed, match="bob cancelled it"):
        getattr(made, decided)(ANN, 1)
    made.cluster.advise(harbor())
    assert (made.one().state, made.one().version) == ("open", 2)
    assert made.cluster.waiting() == []


def test_a_cancellation_that_is_delivered_twice_is_one_also_after_the_next_run(made):
    made.accept()
    first = made.cancel(seen=1)
    assert made.cancel(seen=1) == first
    made.cluster.advise(harbor())
    assert made.cancel(seen=1).state == "open"
    assert sorted(made.told()) == [("ann", "accept", 1, "done"), ("ann", "cancel", 1, "done")]


def test_what_is_signed_is_not_cancelled_any_more(made):
    made.accept()
    (number,) = made.cluster.advise(harbor()).instructions
    with pytest.raises(Refused, match=f"instruction {number} was signed"):
        made.cancel()
    assert made.one().state == "accepted"


def test_a_run_that_signs_while_somebody_cancels_issues_nothing(made, monkeypatch):
    made.accept()
    real, first = made.cluster.data.put, [True]

    def put(cluster: str, key: str, body: bytes, **how: Any) -> Any:
        if key == RECOMMENDATIONS and first:
            first.clear()
            made.cancel()
        return real(cluster, key, body, **how)

    with monkeypatch.context() as patch:
        patch.setattr(type(made.cluster.data), "put", lambda _, *args, **how: put(*args, **how))
        with pytest.raises(Conflict):
            made.cluster.advise(harbor())
    made.cluster.advise(harbor())
    assert (made.one().state, made.cluster.waiting()) == ("open", [])
    assert not list(made.cluster.data.list("harbor", "instruction#", "instruction#~"))


def test_what_nobody_decided_is_not_cancelled(made):
    with pytest.raises(Refused, match="is open: there is nothing to cancel"):
        made.cancel()


# --- Reading the audit log -------------------------------------------------------------------------


def page(made: Decided, by: Principal = ANN, **query: str) -> AuditRows:
    asked = page_request(query, prefix="", filters=FILTERS)
    return audit_rows(made.cluster.data, by, asked, made.now)


def test_admins_read_the_audit_log_by_pages_newest_first_and_by_filters(made):
    made.accept()
    made.cluster.time += timedelta(seconds=1)
    made.cancel(BOB)
    made.cluster.time += timedelta(seconds=1)
    made.dismiss()
    newest = page(made, limit="2")
    assert newest.next is not None
    assert [row.action for row in newest.items] == ["dismiss", "cancel"]
    (last,) = page(made, limit="2", after=newest.next).items
    assert last.action is Action.ACCEPT
    assert [row.action for row in page(made, who="bob").items] == ["cancel"]
    assert [row.action for row in page(made, who=ANN.subject).items] == ["dismiss", "accept"]
    assert page(made, object="clusters/quay").items == ()
    assert len(page(made, object="clusters/harbor/", outcome="done").items) == 3
    with pytest.raises(Malformed):
        page(made, action="drop")


@pytest.mark.parametrize("role", [PersonRole.VIEWER, PersonRole.OPERATOR])
def test_nobody_else_reads_it(made, role):
    with pytest.raises(Forbidden):
        page(made, replace(ANN, grants=(Grant(role=role),)))
