"""The screens of the console: what each says of what its source knows."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from plimsoll.domain.observation import Observation
from plimsoll.domain.reports import Reason, Report
from plimsoll_console.pages import Request, url
from plimsoll_console.placements import Chip, GroupBoxes, NodeBox, Placement, Table
from plimsoll_console.queues import GangLine, QueueLine, QueuesSeen, QuotaLine
from plimsoll_console.rendering import Place, rendered
from plimsoll_console.routes import ROUTES
from plimsoll_console.sources import ClusterState, Outcome, Rehearsal, Source
from plimsoll_console.views.storm import storm
from tests.support.builders import NOON, a_deployment, a_group, a_node, a_pod
from tests.support.console_sources import GivenSource, state_of
from tests.support.observations import interrupted, looked, noon

NEXT = {"from": "100"}
HOSTILE = (
    "<script>document.title='run'</script>",
    '"><img src=x onerror=alert(1)>',
    "a\x1b]52;c;Y3VybA==\x07",
    "{{ 7 * 7 }}",
    "n" * 253,
)


def pod(name: str, node: str | None, *, after: float | None = None, **how):
    created = {} if after is None else {"created": f"{noon(after):%Y-%m-%dT%H:%M:%SZ}"}
    return a_pod(name, node=node, labels={"app": "web"}, **created, **how)


def shop(*replacements, ready: bool = True, **how) -> Observation:
    pods = [pod(f"web-{n}", "spot", ready=ready) for n in range(3)]
    nodes = [interrupted("spot"), a_node("od")]
    return looked(nodes, [*pods, *replacements], [a_deployment(replicas=3)], **how)


def calm() -> Observation:
    nodes = [a_node("spot", capacity="spot"), a_node("od")]
    pods = [pod("web-0", "spot"), pod("web-1", "spot"), pod("web-2", "od")]
    return looked(nodes, pods, [a_deployment(replicas=3)])


def shown(path: str, source: Source, **query: str) -> str:
    """Return what a browser shows of a page: its words, one space apart."""
    for route in ROUTES:
        named = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path), path)
        if named:
            page = route.view(Request(named=named.groupdict(), query=query), source)
            html = rendered(page, Place(path=path), source)
            return " ".join(re.sub(r"<[^>]*>", " ", html).split())
    raise AssertionError(path)


def watched(*seen: Observation, **how) -> GivenSource:
    return GivenSource({"harbor": state_of(*seen)}, **how)


# The storm.


def test_the_worst_comes_first_in_the_verdict():
    dark = shop(pod("new-1", None, after=5), ready=False)
    text = shown("/c/harbor/storm", watched(dark))
    assert "1 workload is at zero. 0 of 3 pods are safe." in text


def test_a_storm_says_what_to_do_where_only_a_person_helps():
    waiting = [pod(f"new-{n}", None, after=5) for n in range(3)]
    full = watched(shop(*waiting, groups=[a_group("base", desired=0, max_size=0)]))
    assert "You: base has as many nodes as its owner allows: raise its maximum" in shown(
        "/c/harbor/storm", full
    )
    coming = watched(shop(*waiting, groups=[a_group("base", desired=3, max_size=6)]))
    assert "You: nothing yet. 3 nodes come" in shown("/c/harbor/storm", coming)
    done = watched(shop(*[pod(f"new-{n}", "od", after=5) for n in range(3)]))
    text = shown("/c/harbor/storm", done)
    assert "You: nothing. Every replacement has a node" in text
    assert "All 3 pods are safe. Every floor holds." in text


def test_a_storm_is_replayed_at_a_second_of_the_url():
    ready = [pod(f"new-{n}", "od", after=5) for n in range(3)]
    source = watched(shop(), shop(*ready))
    assert "replay, 0:04 after the notice" in shown("/c/harbor/storm", source, at="4")
    assert "0 of 3 pods are safe" in shown("/c/harbor/storm", source, at="4")
    assert "All 3 pods are safe" in shown("/c/harbor/storm", source, at="12")
    assert "All 3 pods are safe" in shown("/c/harbor/storm", source, at="nan")


def test_a_storm_is_late_only_once_its_next_frame_is():
    source = watched(shop())
    source.seconds = 10.0
    assert "live, frame 1" in shown("/c/harbor/storm", source)
    source.seconds = 40.0
    text = shown("/c/harbor/storm", source)
    assert "not live: the last frame is 39 s old" in text
    assert "Deadlines still run" in text


def test_a_poll_that_has_seen_the_last_frame_gets_nothing():
    source = watched(shop(), seconds=5.0)
    asked = Request(named={"cluster": "harbor"}, query={"seen": "1"}, fragment=True)
    assert storm(asked, source).status == 204
    older = replace(asked, query={"seen": "0"})
    assert storm(older, source).status == 200


def test_a_cluster_without_a_storm_links_to_the_drill():
    text = shown("/c/harbor/storm", watched(calm()))
    assert "No storm. No node of harbor has a notice." in text
    assert "plimsoll console --drill examples/all-spot-at-once.yaml" in text


def test_a_cluster_that_was_never_read_says_why():
    unread = GivenSource({"harbor": ClusterState(name="harbor", at=NOON)})
    assert "harbor is being read." in shown("/c/harbor/storm", unread)
    failed = GivenSource({"harbor": ClusterState(name="harbor", at=NOON, error="no route")})
    assert "harbor is not read. no route" in shown("/c/harbor/storm", failed)


def test_five_hundred_nodes_and_forty_workloads_fit_on_one_screen_of_counts():
    nodes = [interrupted(f"spot-{n}") for n in range(500)]
    pods = [
        a_pod(f"w{n % 40}-{n}", node=f"spot-{n}", owner=("ReplicaSet", f"w{n % 40}-abc"))
        for n in range(500)
    ]
    seen = looked(nodes, pods, [a_deployment(f"w{n}", replicas=12) for n in range(40)])
    text = shown("/c/harbor/storm", watched(seen, seconds=5.0))
    assert "488 more" in text  # twelve nodes are named
    assert "40 workloads wait for their turn" in text  # and fold to one line
    assert "Every workload keeps its floor, and 500 pods wait for their turn." in text
    assert "500 nodes of harbor" in text


# The queues.


def queueing(found: QueuesSeen | None) -> GivenSource:
    return GivenSource({"harbor": replace(state_of(calm()), queues=found)})


def test_queues_show_quota_use_share_who_waits_and_why():
    source = queueing(queues_named("research"))
    text = shown("/c/harbor/queues", source)
    assert "1 gang waits, the first for 1 min." in text
    assert "research cohort research stopped" in text
    assert (
        "research, research: 6 of 4, 2 borrowed 0.25 3 1 (nodes), 1 (quota or nodes) 1 preempted"
        in text
    )
    assert "lab/research queue research waiting 0/6 1 min ago research" in text
    assert "lab/runs" not in shown("/c/harbor/queues", source, q="RESEARCH")
    assert "No gang matches." in shown("/c/harbor/queues", source, queue="other")


def test_many_gangs_are_shown_page_by_page_and_those_not_listed_are_counted():
    seen = queues_named("research")
    gangs = [replace(seen.gangs[0], name=f"lab/g{n}") for n in range(60)]
    source = queueing(replace(seen, gangs=gangs, waiting=62, more=7))
    text = shown("/c/harbor/queues", source)
    assert "62 gangs wait" in text
    assert ("lab/g49" in text, "lab/g50" in text, "Next" in text) == (True, False, True)
    assert "lab/g59" in shown("/c/harbor/queues", source, **{"from": "50"})
    assert "7 more gangs are not listed" in text


def test_a_cluster_without_queues_says_how_to_configure_them_and_one_that_refuses_says_why():
    text = shown("/c/harbor/queues", queueing(None))
    assert "harbor has no batch queues." in text
    assert "plimsoll queues apply -f queues.yaml --context harbor" in text
    refused = QueuesSeen(at=NOON, error="may not list jobs")
    assert "May not list jobs." in shown("/c/harbor/queues", queueing(refused))


# The other screens.


def test_the_fleet_names_a_storm_and_what_to_do():
    text = shown("/", watched(shop(), seconds=5.0))
    assert "1 storm runs." in text
    assert "harbor 0 of 3 pods are safe." in text
    assert "Watch harbor" in text


def test_the_fleet_says_of_a_cluster_that_it_was_not_read_lately():
    text = shown("/", watched(calm(), seconds=300.0))
    assert "1 cluster is not read." in text
    assert "not seen lately" in text


def test_the_fleet_can_be_filtered_and_paged():
    states = {f"c{n:03}": state_of(calm(), name=f"c{n:03}") for n in range(120)}
    source = GivenSource(states, seconds=5.0)
    assert "50 of 120 clusters" in shown("/", source)
    assert "c119" in shown("/", source, **NEXT)
    assert "1 of 120 clusters" in shown("/", source, q="C007")


def test_a_workload_shows_what_stays_beside_what_is_promised():
    text = shown("/c/harbor/w/Deployment/default/web", watched(calm()))
    assert (
        "default/web: 1 of 3 would stay if all spot went. No on-demand floor is asked for." in text
    )
    promised = replace(
        calm(),
        workloads=[a_deployment(replicas=3, annotations={"plimsoll.dev/min-on-demand": "2"})],
    )
    text = shown("/c/harbor/w/Deployment/default/web", watched(promised))
    assert "1 would stay if all spot went; the on-demand floor is 2." in text
    assert "its pod template lacks" in text


def test_in_a_storm_a_load_line_is_that_from_before():
    text = shown("/c/harbor/w/Deployment/default/web", watched(calm(), shop(), seconds=12.0))
    assert "before the storm" in text
    assert "2 of 3 Ready pods stand on spot." in text


def test_an_interruption_shows_its_steps_by_seconds_after_the_notice():
    report = Report(
        interruption="i-1@noon",
        cluster="harbor",
        node="spot",
        kind="spot-interruption",
        noticed=NOON,
        cordoned=noon(1),
        emptied=noon(82),
        lowest_ready={"Deployment default/web": 2},
        below_floor={"Deployment default/web": 1},
        reasons=(
            Reason(
                why="others serve", verb="evict", about="Deployment default/web", first=noon(61)
            ),
        ),
    )
    source = GivenSource({"harbor": state_of(calm(), reports=[report])})
    assert "1 below floor" in shown("/c/harbor/interruptions", source)
    text = shown("/c/harbor/interruptions/i-1@noon", source)
    assert "+1:01 evict Deployment default/web : others serve" in text
    assert "empty +1:22" in text


def test_a_page_of_what_is_not_there_says_so():
    source = watched(calm())
    assert "There is no cluster quay." in shown("/c/quay/storm", source)
    assert "harbor has no Deployment default/api" in shown(
        "/c/harbor/w/Deployment/default/api", source
    )
    assert "harbor has no report of i-2" in shown("/c/harbor/interruptions/i-2", source)


def placement_named(name: str) -> Placement:
    """Return a plan in which everything has one name."""
    first, second, third = (
        Table(title=title, columns=(name,), rows=((name,),), note=name)
        for title in ("Floors", "Reserve", "Changes")
    )
    node = NodeBox(
        name=name,
        facts=name,
        staying=False,
        chips=[Chip(name=name, pods=2, floor=True)],
        more=1,
    )
    return Placement(
        floors=1,
        missed=[name],
        problems=[name],
        notes=[name],
        workloads=first,
        promises=[[name, name]],
        groups=[(name, [GroupBoxes(title=name, state=name, closed=True, boxes=[node], more=1)])],
        reserve=second,
        steps=third,
        held=name,
    )


def hostile_source(name: str) -> GivenSource:
    """Return a cluster in a storm in which everything has one name."""
    seen = shop(
        pod("new-1", None, after=5),
        groups=[replace(a_group("base", desired=0, max_size=0), name=name)],
    )
    web = replace(seen.workloads[0], ref=seen.workloads[0].ref._replace(name=name))
    nodes = [replace(interrupted("spot"), name=name, zone=name), *seen.nodes[1:]]
    pods = [
        replace(each, node=name if each.node == "spot" else each.node, name=f"{name}{n}")
        for n, each in enumerate(seen.pods)
    ]
    sets = {ref: replace(each, controller=web.ref) for ref, each in seen.replica_sets.items()}
    hostile = replace(seen, nodes=nodes, pods=pods, workloads=[web], replica_sets=sets)
    report = Report(
        interruption=name,
        cluster="harbor",
        node=name,
        kind=name,
        noticed=NOON,
        killed=(name,),
        refused={name: name},
        lowest_ready={name: 1},
        reasons=(Reason(why=name, verb=name, about=name),),
    )
    state = state_of(
        replace(hostile, nodes=[replace(nodes[0], interruption=None), nodes[1]]),
        hostile,
        name=name,
        reports=[report],
        placement=placement_named(name),
    )
    made = Rehearsal(
        number=1,
        cluster=name,
        scope=f"zone:{name}",
        at=NOON,
        stage="done",
        verdict=name,
        outcomes=(Outcome(workload=name, replicas=1, floor=1, lowest=1, unharmed=True, stop=name),),
        tables=(Table(title=name, columns=(name,), rows=((name,),), note=name),),
        notes=(name,),
    )
    state = replace(state, queues=queues_named(name))
    return GivenSource({name: state}, title=name, made=[made])


def queues_named(name: str, **gang: Any) -> QueuesSeen:
    """Return a queue that borrows, and a gang that waits in it."""
    use = QuotaLine(flavor=name, resource=name, used=6, quota=4, most=8, words="6 of 4, 2 borrowed")
    line = QueueLine(
        name=name,
        cohort=name,
        stopped=True,
        quotas=[use],
        share=0.25,
        running=3,
        waiting=[("nodes", 1), ("quota or nodes", 1)],
        preempted=1,
    )
    waiting = GangLine(
        name=f"lab/{name}",
        queue=name,
        state="waiting",
        running=0,
        pods=6,
        since=NOON,
        reason=name,
        why=(name, name),
    )
    runs = replace(waiting, name="lab/runs", state="running", running=6, reason="", why=())
    return QueuesSeen(at=NOON, queues=[line], gangs=[replace(waiting, **gang), runs], waiting=1)


def hostile_pages(name: str) -> list[str]:
    """Return every page of it."""
    parts = ["storm", "queues", "interruptions", "rehearsals"]
    return [
        "",
        url("c", name),
        *(url("c", name, part) for part in parts),
        url("c", name, "w", "Deployment", "default", name),
        url("c", name, "interruptions", name),
        url("c", name, "rehearsals", "1"),
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_words_on_every_screen(name: str):
    source = hostile_source(name)
    for route in ROUTES:
        named = {
            "cluster": name,
            "kind": "Deployment",
            "namespace": "default",
            "name": name,
            "interruption": name,
        }
        if route.method == "POST":
            continue
        page = route.view(Request(named=named | {"number": "1"}), source)
        assert page.status == 200, route.path
        html = rendered(page, Place(path=route.path), source)
        assert_harmless(html)


class Tags(HTMLParser):
    """The tags of a page, with what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_harmless(html: str) -> None:
    tags = Tags()
    tags.feed(html)
    assert "img" not in {tag for tag, _ in tags.found}
    for tag, said in tags.found:
        assert tag != "script" or said["src"]
        assert not [name for name in said if name == "style" or name.startswith("on")]
        assert not (said.get("href") or "").startswith(("javascript:", "data:", "//"))
