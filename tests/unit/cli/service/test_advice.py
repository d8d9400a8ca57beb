"""`plimsoll login`, `savings` and `recommendations`: what a person sees of the service's advice."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping, Sequence
from csv import DictReader
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec
import pytest
from msgspec.structs import replace

from plimsoll.domain.errors import MissingRights, PlimsollError, Refused, Temporary
from plimsoll_agent.service import Service
from plimsoll_cli.service import login as service_login
from plimsoll_cli.service.login import FILE, Login, log_in, logged_in
from plimsoll_cli.service.pages import pages
from plimsoll_service.services import decisions
from plimsoll_service.services.cluster_rows import CLUSTER, remember_cluster
from plimsoll_service.services.clusters import CLUSTER_FILTERS, clusters
from plimsoll_service.services.kept_advice import SAVINGS
from plimsoll_service.services.paging import Filter, PageRequest, page_request
from plimsoll_service.services.recommendation_pages import (
    RECOMMENDATION,
    RECOMMENDATION_FILTERS,
    recommendation_page,
)
from plimsoll_service.wire.access import Enrolled
from plimsoll_service.wire.advice import DismissRequest, Frees
from plimsoll_service.wire.clusters import Clusters
from plimsoll_service.wire.documents import decode
from plimsoll_service.wire.snapshot import Amounts
from plimsoll_service.wire.views import Period, Periods
from plimsoll_simulation.fake_aws.service_stores import MemoryTenantData
from tests.support.advised import AdvisedCluster, harbor
from tests.support.bills import LARGE, Months
from tests.support.cli_environment import MemoryEnvironment, StillClock, run
from tests.support.enrolled import person_of

ENROLLED = Enrolled(cluster_id="p-ada", kid="k-1")
URL = "https://api.example.com/prod"
DAY = datetime(2026, 11, 21, tzinfo=UTC)
PERIODS = Periods(
    cluster_id="harbor",
    since=DAY - timedelta(days=91),
    periods=(
        Period(
            start=DAY,
            snapshots=1440,
            nodes=2.5,
            spot_nodes=1.5,
            pods=10,
            pending=0.25,
            allocatable=Amounts(cpu_m=8000),
            requested=Amounts(cpu_m=5000),
            used=Amounts(cpu_m=1250),
        ),
    ),
)


def a_consolidation() -> Months:
    """A node that went, with a scale-up days later, and a volume that AWS may still bill."""
    made = Months(days=31)
    made.since(11, on_demand={"m5.large": 3})
    made.since(14, on_demand={"m5.large": 6}, pods=30, cpu_m=10_000)
    made.carry_out("consolidate-node", 10, LARGE)
    made.carry_out("orphan-volume", 10, Frees(), monthly=4.0, seen_at=None, measurable=False)
    return made


@dataclass
class Api:
    """The service behind its API, as `plimsoll_agent.service.Service` calls it."""

    cluster: AdvisedCluster = field(default_factory=AdvisedCluster)
    names: tuple[str, ...] = ("harbor",)

    def __post_init__(self) -> None:
        self.cluster.advise(harbor())

    asked: list[str] = field(default_factory=list)

    def call(  # noqa: PLR0911, PLR0913 - as the service has it; an answer for each path
        self,
        method: str,
        path: str,
        kind: type[Any],
        *,
        query: str = "",
        body: bytes = b"",
        version: int | None = None,
    ) -> Any:
        self.asked.append(f"{path}?{query}")
        data = self.cluster.data
        match method, path.split("/")[2:]:
            case "GET", ["clusters"]:
                listed = tenant_of(self.names)
                return clusters(listed, page_asked(query, CLUSTER, CLUSTER_FILTERS), DAY)
            case "GET", ["clusters", "harbor", "savings"]:
                document = data.get("harbor", SAVINGS)
                assert document is not None
                return msgspec.json.decode(document.body, type=kind)
            case "GET", ["clusters", "harbor", "recommendations"]:
                page = page_asked(query, RECOMMENDATION, RECOMMENDATION_FILTERS)
                return recommendation_page(data, "harbor", page, DAY)
            case "GET", ["clusters", "harbor", "savings", "history"]:
                return a_consolidation().history()
            case "GET", ["clusters", "harbor", "days"]:
                return PERIODS
            case "POST", ["clusters", "harbor", "recommendations", id_, what]:
                assert version is not None
                now = self.cluster.now()
                how: Any = {"by": person_of(now=now), "seen": version, "now": now}
                if what == "dismiss":
                    asked = decode(body, DismissRequest)
                    return decisions.dismiss(data, "harbor", id_, asked, **how)
                return {"accept": decisions.accept, "cancel": decisions.cancel}[what](
                    data, "harbor", id_, **how
                )
            case _:
                raise AssertionError(f"{method} {path}")


def page_asked(query: str, prefix: str, filters: Mapping[str, Filter]) -> PageRequest:
    return page_request(dict(parse_qsl(query)), prefix=prefix, filters=filters)


def tenant_of(names: Sequence[str]) -> MemoryTenantData:
    data = MemoryTenantData(StillClock())
    for name in names:
        remember_cluster(data, name, name, StillClock().now())
    return data


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    made = Api()
    monkeypatch.setattr("plimsoll_cli.service.advice.logged_in", lambda _folder, _clock: made)
    return made


def shown(*args: str) -> str:
    result = run(MemoryEnvironment(), *args)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_savings_stand_side_by_side_by_the_month_and_the_year(api):
    lines = shown("savings").splitlines()
    found = {line.split("  ")[0]: line.split()[-2:] for line in lines if "$" in line}
    assert found["a month"][0] == "$140.16"
    assert found["a year"][0] == "$1,681.92"
    assert "prices: us-east-1, on-demand of 2026-07-20" in "\n".join(lines)
    assert "m5.large" in "\n".join(lines)


def test_savings_as_json_are_what_the_service_answers(api):
    assert (
        json.loads(shown("savings", "--cluster", "harbor", "--output", "json"))["today"]["nodes"]
        == 3
    )


def test_recommendations_say_what_they_save_and_why(api):
    text = " ".join(shown("recommendations").split())
    assert "1 $70.08 open consolidate-node Node a its pods (1) fit on b" in text


def test_what_is_accepted_is_printed_first_and_who_accepted_it_is_listed_for_good(api):
    id_ = api.cluster.all()["consolidate-node a"].id
    first, last = shown("recommendations", "--cluster", "harbor", "accept", id_).splitlines()
    assert first.startswith(f"{id_} version 1: consolidate-node a, its pods (1) fit on b")
    assert last == f"{id_} is accepted: consolidate-node a"
    api.cluster.advise(harbor())
    api.cluster.report("done")
    api.cluster.advise(harbor())
    text = " ".join(shown("recommendations").split())
    assert "(accepted by ada; done: so)" in text


def test_a_version_that_is_named_is_what_is_accepted_and_another_one_is_refused(api):
    id_ = api.cluster.all()["consolidate-node a"].id
    refused = run(MemoryEnvironment(), "recommendations", "accept", id_, "--version", "2")
    assert refused.exit_code == 2
    assert "is version 1, and you saw version 2" in refused.output
    assert "is accepted" in shown("recommendations", "accept", id_, "--version", "1")


def test_a_dismissal_has_a_reason_and_an_end_and_is_cancelled(api):
    id_ = api.cluster.all()["consolidate-node a"].id
    words = ("recommendations", "dismiss", id_)
    until = f"{api.cluster.time + timedelta(days=9):%Y-%m-%d}"
    assert run(MemoryEnvironment(), *words, "--until", until).exit_code == 2
    assert "is dismissed" in shown(*words, "--until", until, "--reason", "a sale")
    found = api.cluster.all()["consolidate-node a"].dismissed
    assert (found.reason, f"{found.until:%Y-%m-%d}") == ("a sale", until)
    assert "is open" in shown("recommendations", "cancel", id_)


def test_foreseen_and_realised_of_a_month_stand_side_by_side_with_what_else_changed(api):
    head, row = shown("recommendations", "savings").splitlines()
    assert head.split()[:7] == ["MONTH", "DAYS", "GAPS", "ASSUMED", "COST", "FORESEEN", "UNTOLD"]
    assert row.split()[:8] == ["2026-10", "31", "0", "0", "$357.12", "$46.08", "$0.00", "$46.08"]
    assert "nodes 4.0 to 5.5, pods 20.0 to 28.5, vCPU 5.0 to 9.2" in row


def test_savings_by_recommendation_say_why_something_cannot_be_told(api):
    text = " ".join(shown("recommendations", "savings", "--by", "recommendation").split())
    assert "$70.08 $70.08" in text
    assert "cannot be told the cluster does" in text


def test_savings_as_csv_have_numbers_and_leave_empty_what_is_not_known(api):
    found = list(
        DictReader(
            shown("recommendations", "savings", "--by", "recommendation", "--csv").splitlines()
        )
    )
    node, volume = found
    assert (node["foreseen"], node["realised"], node["verdict"]) == ("70.08", "70.08", "realised")
    assert (node["nodes before"], node["vCPU before"]) == ("4.0", "5.0")
    assert (volume["realised"], volume["nodes before"]) == ("", "")
    days = shown("recommendations", "savings", "--by", "day", "--csv").splitlines()
    assert days[0] == "day,cost,foreseen,untold,realised,prices,assumed,why"
    assert len(days) == 32


def test_savings_before_a_day_are_asked_for(api):
    shown("recommendations", "savings", "--before", "2026-10-01")
    assert api.asked[-1] == "/v1/clusters/harbor/savings/history?before=2026-10-01"


@pytest.mark.parametrize(
    ("names", "args", "said"),
    [
        (("harbor", "pier"), ["savings"], "name one of the clusters with --cluster: harbor, pier"),
        (("harbor",), ["savings", "--cluster", "quay"], "there is no cluster quay"),
        ((), ["savings"], "enrolled: none yet"),
        (("harbor",), ["recommendations", "accept", "../x"], "give the id of a recommendation"),
        (("harbor",), ["recommendations", "cancel", "r-0"], "there is no recommendation r-0"),
    ],
    ids=["several", "unknown", "none", "no-id", "not there"],
)
def test_what_cannot_be_is_said_with_the_cure(api, names, args, said):
    api.names = names
    result = run(MemoryEnvironment(), *args)
    assert result.exit_code == 2
    assert said in result.output


def test_lists_are_read_to_their_end(api):
    api.names = (*(f"bay-{n:04}" for n in range(450)), "harbor")
    assert "2026-11-21" in shown("history", "days", "--cluster", "harbor")
    assert len(api.asked) == 3 + 1, "two full pages, the last one, and the days"


def test_a_list_without_end_is_given_up():
    class Endless:
        def call(self, *_: Any, **__: Any) -> Clusters:
            return replace(clusters(tenant_of(["a"]), PageRequest(), DAY), next="again")

    with pytest.raises(Refused, match="gives no end"):
        list(pages(cast("Service", Endless()), "/v1/clusters", Clusters))


class Enrolling(Service):
    """A service that enrols, or does not, without a network."""

    refusal: PlimsollError | None = None

    def enrol(self, join_token: str, cluster_uid: str) -> Enrolled:
        assert (join_token, cluster_uid) == ("join", "person")
        if self.refusal is not None:
            raise self.refusal
        return ENROLLED


@pytest.fixture
def enrolling(monkeypatch: pytest.MonkeyPatch) -> type[Enrolling]:
    monkeypatch.setattr(service_login, "Service", Enrolling)
    monkeypatch.setattr(Enrolling, "refusal", None)
    return Enrolling


def test_a_login_is_kept_where_only_its_owner_can_read_it(enrolling, tmp_path: Path):
    folder = tmp_path / "settings"
    result = run(MemoryEnvironment(), "login", URL, "--join-token", "join", "--config", str(folder))
    assert result.output == "logged in as p-ada\n"
    assert [file.name for file in folder.iterdir()] == [FILE]
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert isinstance(logged_in(folder, StillClock()), Service)


def key_of(file: Path) -> bytes:
    key = decode(file.read_bytes(), Login).private_key
    assert key is not None
    return key


@pytest.mark.parametrize(("url", "same"), [(URL, True), (f"{URL}-2", False)])
def test_a_login_whose_answer_was_lost_enrols_the_same_key_again_at_that_service(
    enrolling, tmp_path: Path, url: str, same
):
    """So the join token, which is good for one key, is not spent."""
    enrolling.refusal = Temporary("no answer")
    with pytest.raises(Temporary):
        log_in(tmp_path, URL, "join", StillClock())
    begun = key_of(tmp_path / f"{FILE}.new")
    enrolling.refusal = None
    log_in(tmp_path, url, "join", StillClock())
    assert (key_of(tmp_path / FILE) == begun) is same


def test_a_login_that_is_refused_leaves_the_one_before(enrolling, tmp_path: Path):
    log_in(tmp_path, URL, "join", StillClock())
    before = (tmp_path / FILE).read_bytes()
    enrolling.refusal = MissingRights("used already")
    with pytest.raises(MissingRights):
        log_in(tmp_path, URL, "join", StillClock())
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"), [(None, "you are not logged in"), (b"{}", "is invalid")]
)
def test_without_a_login_the_cure_is_said(tmp_path: Path, content, said):
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    result = run(MemoryEnvironment(), "savings", "--config", str(tmp_path))
    assert result.exit_code == 2
    assert said in result.output


def test_an_address_without_tls_is_refused_before_the_token_is_sent(tmp_path: Path):
    result = run(
        MemoryEnvironment(),
        *("login", "http://api.example.com", "--join-token", "x", "--config", str(tmp_path)),
    )
    assert result.exit_code == 2
    assert "must be https" in result.output


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody is logged in."""
    monkeypatch.setenv("PLIMSOLL_CONFIG", str(tmp_path))


@pytest.mark.parametrize("address", ["nonsense", "https://[x", "ftp://api.example.com", "https://"])
@pytest.mark.parametrize("words", [("login",), ("agent", "install", "--print", "--image", "a:1")])
def test_what_is_no_address_is_refused_and_says_where_one_is_found(stranger, words, address):
    given = ("--service", address) if words[0] == "agent" else (address,)
    said = run(MemoryEnvironment(), *words, *given, "--join-token", "t")
    assert said.exit_code == 2
    assert "the output Url" in said.stderr


def test_an_id_that_is_none_is_refused_before_the_service_is_asked(stranger):
    said = run(MemoryEnvironment(), "recommendations", "accept", "nope")
    assert said.exit_code == 2
    assert "such as r-0123456789abcdef" in said.stderr


def test_the_days_of_a_cluster_stand_in_a_table_that_says_how_to_read_on(api):
    out = shown("history", "days", "--cluster", "harbor", "--before", "2026-11-22")
    assert api.asked[-1] == "/v1/clusters/harbor/days?before=2026-11-22T00:00"
    row = next(line for line in out.splitlines() if line.startswith("2026-11-21"))
    assert row.split()[2:] == ["2.5", "1.5", "10.0", "0.2", "8.0", "5.0", "1.2"]
    assert "--before 2026-08-22T00:00" in out


def test_the_days_of_a_cluster_as_json_are_what_the_service_answers(api):
    found = json.loads(shown("history", "days", "--output", "json"))
    assert found["periods"][0]["snapshots"] == 1440
    assert api.asked[-1] == "/v1/clusters/harbor/days?"
