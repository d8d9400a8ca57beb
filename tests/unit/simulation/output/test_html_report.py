"""The page about a drill: what is in it, that it stands alone, and that nothing breaks out of it."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll_cli import main
from plimsoll_simulation.measure.history import History
from plimsoll_simulation.measure.listening import Quiet, RecordingListener
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.output.page.charts import NODE_STEPS, STEPS
from plimsoll_simulation.output.page.document import page
from plimsoll_simulation.output.page.marks import Mark, gathered, gravest, stacked
from plimsoll_simulation.output.page.runs import Run
from plimsoll_simulation.output.page.scales import thinned
from plimsoll_simulation.rigs.registry import RESPONDERS
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill

EXAMPLES = Path(__file__).parents[4] / "examples"
EXAMPLE = EXAMPLES / "all-spot-at-once.yaml"
SMALL = str(EXAMPLES / "one-node.yaml")
VOID = {"meta", "link", "img", "br", "hr", "input"}


@dataclass
class Tag:
    name: str
    attributes: dict[str, str | None]
    text: str = ""


@dataclass
class Reader(HTMLParser):
    """Reads a page as a browser would, and insists that every tag is closed."""

    tags: list[Tag] = field(default_factory=list)
    open: list[Tag] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attrs):
        found = Tag(tag, dict(attrs))
        self.tags.append(found)
        if tag not in VOID:
            self.open.append(found)

    def handle_endtag(self, tag):
        assert self.open.pop().name == tag

    def handle_data(self, data):
        for tag in self.open:
            tag.text += data

    def all(self, name: str, style: str | None = None) -> list[Tag]:
        return [
            tag
            for tag in self.tags
            if tag.name == name
            and (style is None or style in (tag.attributes.get("class") or "").split())
        ]

    def by_id(self, name: str) -> Tag:
        return next(tag for tag in self.tags if tag.attributes.get("id") == name)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def played(responder: str) -> Run:
    history = History()
    drill = read_drill(EXAMPLE)
    report = run(
        drill,
        responder=responder,
        seed=7,
        listener=RecordingListener(Quiet(), history),
        history=history,
    )
    return Run(report=report, history=history)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [played(who) for who in RESPONDERS]


@pytest.fixture(scope="module")
def html(runs) -> str:
    return page(runs, description="Everything goes.")


@pytest.fixture(scope="module")
def reader(html) -> Reader:
    return read(html)


def test_every_workload_has_one_plot_for_each_responder(runs, reader):
    told = [svg.attributes.get("aria-label") or "" for svg in reader.all("svg")]
    for row in runs[0].report["workloads"]:
        name = f"{row['kind']} {row['namespace']}/{row['name']}"
        assert any(name in h3.text for h3 in reader.all("h3"))
        for who in RESPONDERS:
            assert sum(f"{name} with {who} " in label for label in told) == 1


def test_every_node_of_the_reports_has_its_row_and_its_moments(runs, reader):
    nodes = reader.by_id("nodes").text
    for each in runs:
        for row in each.report["nodes"]:
            assert f"Node {row['name']}" in nodes
            assert f"{row['notice']} at {row['noticed']:g} s" in nodes
            for milestone in ("cordoned", "empty", "gone"):
                told = "never" if row[milestone] is None else f"{row[milestone]:g} s"
                assert f"{milestone} {told}" in nodes


def test_every_reason_of_the_reports_is_listed(runs, reader):
    reasons = reader.by_id("reasons").text
    told = [reason for report in runs[0].report["reports"] for reason in report["reasons"]]
    assert told
    assert all(reason in reasons for reason in told)


def test_what_was_done_with_its_reason_is_on_a_mark_that_can_be_focused(runs, reader):
    tips = [button.text for button in reader.all("button", "mark")]
    evictions = [line.what for line in runs[0].history.lines if line.what.startswith("evict Pod")]
    assert evictions
    assert all(any(line in tip for tip in tips) for line in evictions)
    assert all(button.attributes["type"] == "button" for button in reader.all("button"))


def test_totals_and_verdict_stand_at_the_top(runs, reader):
    verdict = reader.by_id("verdict").text
    assert "Every expectation held" in verdict
    assert "Measured only" in verdict
    for each in runs:
        assert f"{each.report['totals']['ready_replica_seconds_lost']:,.1f}" in verdict


def test_failed_expectations_are_listed(runs):
    report = {**runs[0].report, "expect": {"held": False, "failures": ["podsKilled: 3 of 0"]}}
    reader = read(page([Run(report=report, history=runs[0].history)]))
    assert "1 not as expected" in reader.by_id("verdict").text
    assert "podsKilled: 3 of 0" in reader.by_id("verdict").text


def test_the_page_needs_nothing_from_anywhere(html, reader):
    assert not re.search(
        r"https?:|//[a-z]", re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    )
    assert not re.search(r"url\((?!#)", html)
    assert "@import" not in html
    assert not [tag for tag in reader.tags if "src" in tag.attributes or tag.name == "link"]
    assert all((a.attributes["href"] or "").startswith("#") for a in reader.all("a"))
    policy = next(
        m
        for m in reader.all("meta")
        if "content" in m.attributes and m.attributes.get("http-equiv")
    )
    assert (policy.attributes["content"] or "").startswith("default-src 'none'")


def test_every_link_and_every_label_has_its_target(reader):
    ids = [tag.attributes["id"] for tag in reader.tags if "id" in tag.attributes]
    assert len(ids) == len(set(ids))
    for tag in reader.tags:
        if tag.name == "a":
            assert (tag.attributes["href"] or "")[1:] in ids
        if "aria-labelledby" in tag.attributes:
            assert tag.attributes["aria-labelledby"] in ids


def test_marks_differ_by_sign_and_not_by_colour_alone(reader):
    signs = {}
    for sign in reader.all("span", "sign"):
        if style := (sign.attributes["class"] or "").replace("sign", "").strip():
            signs[style] = sign.text
    assert len(set(signs.values())) == len(signs) == 9


def hostile(runs: list[Run]) -> Report:
    report: Report = json.loads(json.dumps(runs[0].report))
    report = {**report, "drill": "<script>alert(1)</script>"}
    report["reports"][0]["reasons"].append('"><img src=x onerror=alert(2)> & co')
    return report


def test_names_and_reasons_cannot_break_out(runs):
    history = copy.deepcopy(runs[0].history)
    history.said(30.0, "acted on </span></button><b onclick='x'> Deployment shop/web")
    html = page([Run(report=hostile(runs), history=history)], description="a < b & 'c'")
    reader = read(html)
    assert reader.all("h1")[0].text == "<script>alert(1)</script>"
    assert len(reader.all("script")) == 1
    assert not reader.all("img")
    assert not [tag for tag in reader.tags if any(name.startswith("on") for name in tag.attributes)]
    assert '"><img src=x onerror=alert(2)> & co' in reader.by_id("reasons").text
    assert any("</span></button><b onclick='x'>" in b.text for b in reader.all("button", "mark"))


def test_a_workload_that_only_one_run_has_is_said_to_be_missing_in_the_other(runs):
    report = {**runs[1].report, "workloads": runs[1].report["workloads"][1:]}
    reader = read(page([runs[0], Run(report=report, history=runs[1].history)]))
    assert "was not there" in reader.by_id("workloads").text


def test_a_long_series_is_thinned_out_and_keeps_its_dips():
    steps = [(float(n), 5) for n in range(10_000)]
    steps[6_543] = (6_543.0, 1)
    for most in (STEPS, NODE_STEPS):
        kept = thinned(steps, most)
        assert len(kept) <= most
        assert steps[6_543] in kept
        assert (kept[0], kept[-1]) == (steps[0], steps[-1])
        assert list(kept) == sorted(kept)


def test_marks_that_would_cover_each_other_are_one_and_look_like_the_gravest():
    marks = [
        Mark(seconds=9.0, kind="acted", words="later"),
        Mark(seconds=1.0, kind="acted", words="first"),
        Mark(seconds=2.0, kind="killed", words="then"),
    ]
    bunches = gathered(marks, gap=3.0)
    assert [[mark.words for mark in bunch] for bunch in bunches] == [["first", "then"], ["later"]]
    assert gravest(bunches[0]) == "killed"


def test_moments_that_are_too_near_for_one_row_go_to_the_first_row_with_space():
    assert stacked([0, 4, 8, 10, 14, 30], gap=10) == [0, 1, 2, 0, 1, 0]
    assert stacked([], gap=10) == []


def test_the_page_of_a_drill_in_which_nothing_happened_can_be_made(runs):
    calm = {**runs[2].report, "nodes": [], "reports": [], "workloads": [], "seconds": 0.0}
    html = page([Run(report=calm, history=History())])
    read(html)
    assert calm["drill"] in html


# The command.


def drill(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["drill", *arguments])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_option_html_writes_the_page_and_changes_nothing_else(here):
    result = drill(SMALL, "--html", "page.html", "--json", "-")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads(drill(SMALL, "--json", "-").stdout)
    reader = read((here / "page.html").read_text())
    assert reader.all("h1")[0].text == "one-node"
    assert "One spot instance gets its notice" in reader.all("header")[0].text


def test_compare_plays_all_and_shows_one_table_json_as_a_list_and_columns(here):
    result = drill(SMALL, "--compare", "--html", "page.html", "--json", "all.json")
    assert result.exit_code == 0
    reports = json.loads((here / "all.json").read_text())
    assert [report["responder"] for report in reports] == ["plimsoll", "drain", "none"]
    assert result.stdout.count("all workloads") == 1
    assert "every expectation held" in result.stdout
    columns = read((here / "page.html").read_text()).all("div", "columns")
    assert columns[0].text == "plimsolldrainnone"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--compare", "plimsoll,hope"], "no responder hope"),
        (["--compare", "plimsoll,"], "no responder (empty)"),
        (["--compare", "none", "--responder", "drain"], "give either --responder or --compare"),
        (["--html", "no/such/page.html"], "there is no directory no/such"),
        (["--html", "."], "--html . is a directory"),
    ],
)
def test_what_is_wrong_is_named_before_anything_is_played(here, arguments, words):
    result = drill(str(EXAMPLE), *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
