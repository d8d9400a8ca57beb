"""Applying a plan of GPU layouts: a Node is changed, or comes back, or waits for a person, whatever goes wrong."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from plimsoll.domain.kubernetes import GPU, GPU_CHANGE, MIG_STATE
from plimsoll_simulation.rigs.mig_manager import MIG, PLUGIN
from tests.support import fake_clusters
from tests.support.gpu_nodes import (
    FILE,
    SLICES,
    SMALL,
    WHOLE,
    GpuSite,
    gpu_pod,
    gpu_template,
)

FOREVER = "10h"
SPOT = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
KARPENTER = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
STEPS = ("emptying", "labelled", "changing", "checking")


@pytest.fixture
def site() -> GpuSite:
    return GpuSite()


def in_service(site: GpuSite, gpus: dict[str, int]) -> bool:
    return site.ready() and not site.cordoned() and site.gpus() == gpus


def said(site: GpuSite, words: str) -> bool:
    return any(words in line for line in (*site.heard.lines, *site.heard.warnings))


def reach(site: GpuSite, step: str) -> None:
    """Begin a change and bring it to a step, where it stays for a while."""
    if step == "emptying":
        site.serve_whole_and_ask_for_slices()
    if step == "labelled":
        site.manager.up = False
    if step == "changing":
        site.manager.applying = timedelta(minutes=10)
    assert site.run(20, until=lambda: site.step_of() == step), site.heard.lines


# The eight steps


def test_an_empty_node_is_changed_and_comes_back_with_its_slices(site):
    assert site.run(10, until=lambda: site.step_of() == "done")
    assert in_service(site, SLICES)
    change = site.change()
    assert change is not None
    assert (change.saved, change.target, change.old) == ("all-disabled", "all-1g.10gb", WHOLE)
    assert site.heard.alerts == 0


def test_the_journal_is_written_in_the_same_patch_as_what_it_tells_of(site):
    site.run(10, until=lambda: site.step_of() == "done")
    nodes = [body for _, path, body in site.wire.writes if path.endswith("/nodes/gpu-1")]
    assert all(GPU_CHANGE in body["metadata"]["annotations"] for body in nodes)
    assert all("resourceVersion" in body["metadata"] for body in nodes)
    assert [body["spec"] for body in nodes if "spec" in body] == [
        {"unschedulable": True},
        {"unschedulable": None},
    ]
    assert [body["metadata"]["labels"] for body in nodes if "labels" in body["metadata"]] == [
        {MIG: "all-1g.10gb"}
    ]


def test_a_serving_pod_leaves_only_once_its_replacement_is_ready(site):
    site.serve_whole_and_ask_for_slices()
    site.cordon(on=False, name="spare")
    lowest = []
    site.watch = lambda: lowest.append(len(serving(site, "web")))
    assert site.run(30, until=lambda: site.step_of() == "done")
    assert min(lowest) == 1
    assert site.manager.killed == []


def serving(site: GpuSite, app: str) -> list[str]:
    pods = site.cluster.store.all("pods")
    return [
        p["metadata"]["name"]
        for p in pods
        if p["metadata"].get("labels", {}).get("app") == app and is_serving(p)
    ]


def is_serving(pod) -> bool:
    ready = any(
        c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ())
    )
    return ready and "deletionTimestamp" not in pod["metadata"]


def test_a_pod_without_gpus_stays_where_it_is(site):
    template = fake_clusters.a_template("plain", nodeSelector={"kubernetes.io/hostname": "gpu-1"})
    site.apply(fake_clusters.a_deployment("plain", 1, template))
    site.settle()
    before = site.on(app="plain")
    assert site.run(10, until=lambda: site.step_of() == "done")
    assert site.on(app="plain") == before


def test_a_reboot_is_waited_for(site):
    site.manager.reboots = timedelta(minutes=40)
    assert site.run(60, until=lambda: site.step_of() == "done")
    assert in_service(site, SLICES)


def test_the_device_plugin_shares_gpus_by_its_own_label():
    site = GpuSite()
    site.label(sharing="default")
    site.manager.shared["ts4"] = {GPU: 8}
    entry = site.entry("gpu-1", label="nvidia.com/device-plugin.config", value="ts4")
    site.plan(entry | {"allocatable": {GPU: 8}})
    assert not site.run(5, until=lambda: site.step_of() == "done")
    assert said(site, "ts4 is no name")
    site.plan(entry | {"allocatable": {GPU: 8}}, config=site.source(key="ts4"))
    site.config(FILE, key="ts4")
    assert site.run(10, until=lambda: site.step_of() == "done")
    assert in_service(site, {GPU: 8})


# What is not begun


def refused(site: GpuSite, words: str) -> None:
    writes = len(site.wire.writes)
    site.run(10)
    assert said(site, words), site.heard.lines
    assert len(site.wire.writes) == writes
    assert in_service(site, site.gpus())


def test_one_node_is_begun_in_an_hour():
    site = GpuSite(nodes=("gpu-1", "gpu-2"))
    site.run(58)
    assert (site.step_of("gpu-1"), site.step_of("gpu-2")) == ("done", "none")
    assert site.run(10, until=lambda: site.step_of("gpu-2") == "done")


def test_more_are_begun_where_the_plan_allows_it():
    site = GpuSite(nodes=("gpu-1", "gpu-2"))
    site.plan(site.entry("gpu-1"), site.entry("gpu-2"), nodes_per_hour=2)
    done = {"done"}
    assert site.run(10, until=lambda: {site.step_of("gpu-1"), site.step_of("gpu-2")} == done)


def test_no_other_node_is_begun_while_one_needs_a_person():
    site = GpuSite(nodes=("gpu-1", "gpu-2"))
    site.plan(site.entry("gpu-1"), site.entry("gpu-2"), nodes_per_hour=5)
    site.run(5, until=lambda: site.step_of() == "changing")
    site.label(mig="all-3g.40gb")
    site.run(90)
    assert site.step_of("gpu-2") == "none"
    assert said(site, "needs a person first")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.plan(s.entry("gpu-1", uid="other")), "its uid is another"),
        (lambda s: s.plan(s.entry("gpu-1"), paused=True), "the plan is paused"),
        (lambda s: s.plan_text("{"), "the plan cannot be read"),
        (lambda s: s.plan(s.entry("gpu-1") | {"value": "all-9g"}), "all-9g is no name"),
        (lambda s: s.plan(s.entry("gpu-1", "all-disabled")), "its label says so already"),
        (lambda s: s.plan(s.entry("gpu-1"), config=s.source(name="gone")), "404"),
        (lambda s: s.plan(s.entry("gpu-1"), config=s.source(key="gone")), "is not there"),
        (lambda s: s.config(FILE + "  another: []\n"), "is not as it was"),
        (lambda s: s.label(state="failed"), f"{MIG_STATE} is failed"),
        (lambda s: s.label(state="pending"), f"{MIG_STATE} is pending"),
        (lambda s: s.annotate(**{"karpenter.sh/do-not-disrupt": "true"}), "is protected"),
        (lambda s: s.taint(SPOT), "it has the taint"),
        (
            lambda s: s.taint(KARPENTER),
            "taken away",
        ),
    ],
)
def test_a_bad_plan_or_a_node_that_is_not_in_order_is_refused(site, change, words):
    change(site)
    refused(site, words)


@pytest.mark.parametrize("name", ["all-1g.10gb", "all-disabled"])
def test_a_change_is_begun_only_if_its_layout_and_the_way_back_are_granted(site, name):
    site.wire.ungranted.add(name)
    refused(site, f"grant the verb use on configurations.gpu.plimsoll.dev/{name}")
    site.wire.ungranted.clear()
    assert site.run(10, until=lambda: site.step_of() == "done")


def test_a_name_that_only_the_journal_has_is_not_set_and_the_node_waits_for_a_person(site):
    """Whoever writes the annotation would else choose the layout of a Node whose change fails."""
    reach(site, "changing")
    forged = msgspec.structs.replace(site.change(), saved="all-7g.80gb")
    site.annotate(**{GPU_CHANGE: forged.text()})
    site.wire.ungranted.add("all-7g.80gb")
    site.label(state="failed")
    site.manager.up = False
    site.run(60, until=lambda: site.step_of() == "alert")
    site.run(30)
    assert (site.step_of(), site.cordoned()) == ("alert", True)
    assert said(site, "grant the verb use on configurations.gpu.plimsoll.dev/all-7g.80gb")
    labels = [body["metadata"].get("labels", {}) for _, _, body in site.wire.writes]
    assert {each[MIG] for each in labels if MIG in each} == {"all-1g.10gb"}


def test_a_journal_that_names_another_label_is_no_journal(site):
    reach(site, "emptying")
    text = site.node("gpu-1")["metadata"]["annotations"][GPU_CHANGE]
    site.annotate(**{GPU_CHANGE: text.replace(MIG, "team")})
    site.run(10)
    assert site.heard.alerts == 1
    assert "team" not in site.node("gpu-1")["metadata"]["labels"]


def test_a_grant_that_is_withdrawn_while_a_node_is_emptied_ends_its_change(site):
    reach(site, "emptying")
    site.wire.ungranted.add("all-1g.10gb")
    assert site.run(10, until=lambda: site.step_of() == "undone")
    assert in_service(site, WHOLE)


def test_a_node_without_a_label_has_no_way_back_and_is_refused():
    site = GpuSite()
    site.managers["gpu-1"].up = False
    site.label(mig=None)
    refused(site, "as the way back")


def test_a_node_that_shows_no_gpus_is_refused(site):
    site.label(plugin="false")
    site.settle()
    site.run(5)
    assert said(site, "it shows no GPUs")
    assert site.step_of() == "none"


def test_a_node_that_somebody_cordoned_is_refused(site):
    site.cordon(on=True)
    site.run(10)
    assert said(site, "somebody cordoned it")
    assert site.step_of() == "none"


def test_training_and_bare_pods_are_waited_for_before_anything_is_cordoned(site):
    site.apply(gpu_pod("train", {GPU: 1}))
    site.settle()
    refused(site, "Pod default/train is of no Deployment")
    site.delete("train")
    assert site.run(10, until=lambda: site.step_of() == "done")


def test_a_template_that_still_asks_for_whole_gpus_is_refused_by_name(site):
    site.serve_whole_and_ask_for_slices()
    site.cordon(on=False, name="spare")
    site.apply(fake_clusters.a_deployment("web", 1, gpu_template("web", {GPU: 1})))
    refused(site, "Deployment default/web still asks for nvidia.com/gpu")


def test_an_interruption_elsewhere_comes_first():
    site = GpuSite(nodes=("gpu-1", "gpu-2"))
    site.plan(site.entry("gpu-1"))
    site.interrupt("gpu-2")
    refused(site, "is interrupted: voluntary moves wait")


def test_a_journal_that_somebody_wrote_over_stops_everything(site):
    site.annotate(**{GPU_CHANGE: "{}"})
    site.run(10)
    assert site.cordoned() is False
    assert site.heard.alerts == 1
    assert said(site, f"annotation {GPU_CHANGE}")


# What goes wrong


def test_a_later_change_that_fails_returns_to_the_old_layout_with_its_plugin():
    site = GpuSite()
    site.manager.failing.add("all-1g.10gb")
    assert site.run(20, until=site.ended)
    assert site.step_of() == "stopped"
    assert in_service(site, WHOLE)
    assert site.plugin_runs()
    assert site.labels()[MIG] == "all-disabled"
    site.run(120)
    assert site.step_of() == "stopped"  # not tried again by itself
    site.manager.failing.clear()
    site.annotate(**{GPU_CHANGE: None})
    assert site.run(10, until=lambda: site.step_of() == "done")


def test_a_first_change_that_fails_returns_to_the_old_layout(site):
    site.manager.restart()
    site.manager.failing.add("all-1g.10gb")
    assert site.run(20, until=site.ended)
    assert (site.step_of(), in_service(site, WHOLE)) == ("stopped", True)


def test_a_name_that_the_manager_does_not_know_returns_to_the_old_layout(site):
    del site.manager.layouts["all-1g.10gb"]
    assert site.run(20, until=site.ended)
    assert (site.step_of(), in_service(site, WHOLE)) == ("stopped", True)


def test_a_plugin_that_cannot_leave_returns_to_the_old_layout_after_thirty_minutes():
    site = GpuSite(plugin_stops=FOREVER)
    assert not site.run(29, until=site.ended)
    assert site.run(15, until=site.ended)
    assert (site.step_of(), in_service(site, WHOLE)) == ("stopped", True)
    assert site.labels()[PLUGIN] == "true"


def test_a_manager_that_does_not_begin_returns_to_the_old_label(site):
    site.manager.up = False
    assert site.run(10, until=site.ended)
    assert (site.step_of(), in_service(site, WHOLE)) == ("stopped", True)
    site.manager.up = True
    site.run(10)
    assert in_service(site, WHOLE)
    assert site.manager.killed == []


def test_one_slice_short_stays_cordoned_with_an_alert_and_returns_once(site):
    site.manager.lacking.add("all-1g.10gb")
    assert site.run(15, until=lambda: site.step_of() == "alert")
    assert site.cordoned()
    assert said(site, "13 nvidia.com/mig-1g.10gb")
    assert site.run(20, until=lambda: site.step_of() == "stopped")
    assert in_service(site, WHOLE)


def test_where_the_old_layout_does_not_come_back_either_it_stays_cordoned_with_an_alert(site):
    site.manager.lacking |= {"all-1g.10gb", "all-disabled"}
    site.run(180)
    assert site.alerted()
    assert site.cordoned()
    assert site.heard.alerts == 1
    writes = len(site.wire.writes)
    site.run(180)
    assert len(site.wire.writes) == writes


def test_a_person_who_uncordons_it_ends_an_alert(site):
    site.manager.lacking |= {"all-1g.10gb", "all-disabled"}
    site.run(180)
    site.cordon(on=False)
    site.run(5)
    assert (site.step_of(), site.cordoned(), site.heard.alerts) == ("stopped", False, 0)


@pytest.mark.parametrize("step", STEPS)
def test_a_label_that_a_person_changes_stays_and_the_node_waits_for_them(step):
    site = GpuSite()
    reach(site, step)
    site.label(mig="all-3g.40gb")
    site.run(60)
    assert site.labels()[MIG] == "all-3g.40gb"
    assert site.alerted()
    assert site.cordoned()


@pytest.mark.parametrize("step", STEPS)
def test_a_person_who_uncordons_is_not_overruled(step):
    site = GpuSite()
    reach(site, step)
    site.cordon(on=False)
    site.run(60)
    assert not site.cordoned()
    assert site.step_of() == "stopped"
    assert said(site, "somebody uncordoned it")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("taint", [True, False])
def test_a_spot_notice_comes_first_and_nothing_more_is_written(step, taint):
    site = GpuSite()
    reach(site, step)
    if taint:
        site.taint(SPOT)
    else:
        site.interrupt()
    writes = len(site.wire.writes)
    site.run(2)
    assert len(site.wire.writes) == writes
    assert site.cordoned()
    site.cluster.vanish("gpu-1", now=site.clock.time)
    del site.managers["gpu-1"]
    site.run(5)
    assert not site.exists()
    assert site.heard.alerts == 0


@pytest.mark.parametrize("step", STEPS)
def test_a_notice_that_is_withdrawn_lets_the_change_go_on(step):
    site = GpuSite()
    reach(site, step)
    site.interrupt()
    site.run(5)
    site.annotate(**{"plimsoll.dev/interruption": None})
    site.manager.up = True
    site.cordon(on=False, name="spare")
    assert site.run(90, until=site.ended)
    assert in_service(site, SLICES) or in_service(site, WHOLE)


@pytest.mark.parametrize("step", STEPS)
def test_a_minute_without_the_api_server_changes_nothing(step):
    site = GpuSite()
    reach(site, step)
    site.cluster.take_api_away(now=site.clock.time)
    site.run(1)
    site.cluster.bring_api_back(now=site.clock.time)
    site.manager.up = True
    site.cordon(on=False, name="spare")
    assert site.run(90, until=site.ended)
    assert in_service(site, SLICES) or in_service(site, WHOLE)


@pytest.mark.parametrize("step", ["labelled", "changing", "checking"])
def test_a_plan_that_goes_away_does_not_leave_a_node_behind(step):
    site = GpuSite()
    reach(site, step)
    site.plan()
    site.manager.up = True
    assert site.run(90, until=site.ended)
    assert in_service(site, SLICES)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.plan(),
        lambda s: s.plan_text("{"),
        lambda s: s.plan(s.entry("gpu-1", "all-3g.40gb")),
        lambda s: s.config(FILE.replace("all-1g.10gb", "renamed")),
        lambda s: s.plan(s.entry("gpu-1"), config=s.source(sha256="0" * 64)),
    ],
    ids=["gone", "broken", "another layout", "renamed", "another file"],
)
def test_a_plan_or_a_configuration_that_changes_before_the_label_undoes_the_cordon(change):
    site = GpuSite()
    reach(site, "emptying")
    change(site)
    assert site.run(5, until=lambda: site.step_of() == "undone")
    assert in_service(site, WHOLE)
    assert len(serving(site, "web")) == 1


def test_a_plan_that_is_paused_lets_a_node_end_that_was_begun(site):
    reach(site, "changing")
    site.plan(site.entry("gpu-1"), paused=True)
    assert site.run(60, until=lambda: site.step_of() == "done")


def test_a_node_that_does_not_empty_in_time_comes_back_and_nobody_was_moved(site):
    reach(site, "emptying")
    before = serving(site, "web")
    assert site.run(40, until=lambda: site.step_of() == "undone")
    assert in_service(site, WHOLE)
    assert serving(site, "web") == before
    assert said(site, "holds GPUs after 0:30:00")


def test_releases_are_undone_with_the_cordon(site):
    """A replacement that never becomes Ready, so that the released pod stays."""
    reach(site, "emptying")
    never = gpu_template("web", {SMALL: 1})
    site.cordon(on=False, name="spare")
    site.watch = lambda: site.starve("spare")
    site.apply(fake_clusters.a_deployment("web", 1, never))
    assert site.run(45, until=lambda: site.step_of() == "undone")
    assert site.released() == []
    assert len(serving(site, "web")) >= 1


def test_a_pod_that_tolerates_the_cordon_is_never_run_over(site):
    reach(site, "emptying")
    site.delete_all("web")
    site.apply(gpu_pod("daemon", {GPU: 1}, tolerations=[{"operator": "Exists"}]))
    assert site.run(45, until=lambda: site.step_of() == "undone")
    assert site.manager.killed == []
    assert in_service(site, WHOLE)


def test_a_pod_that_comes_while_a_failed_change_is_undone_keeps_the_label_as_it_is(site):
    site.manager.failing.add("all-1g.10gb")
    reach(site, "checking")
    site.run(1, until=site.plugin_runs)
    site.settle()
    site.apply(gpu_pod("daemon", {GPU: 1}, tolerations=[{"operator": "Exists"}]))
    assert site.run(15, until=lambda: site.step_of() == "alert")
    assert site.cordoned()
    site.delete("daemon")
    assert site.run(15, until=lambda: site.step_of() == "stopped")
    assert in_service(site, WHOLE)
    assert site.manager.killed == []


def test_a_node_that_loses_its_gpus_while_it_is_emptied_is_not_uncordoned(site):
    reach(site, "emptying")
    site.manager.gpus = {GPU: 1}
    site.run(40)
    assert site.alerted()
    assert site.cordoned()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_whoever_dies_before_or_after_any_write_is_followed_by_one_who_ends_it(after, fails):
    def play(kill: int | None) -> GpuSite:
        site = GpuSite()
        site.serve_whole_and_ask_for_slices()
        site.cordon(on=False, name="spare")
        if fails:
            site.manager.failing.add("all-1g.10gb")
        site.wire.kill = None if kill is None else (kill, after)
        assert site.run(60, until=site.ended)
        assert site.wire.kill is None
        return site

    for kill in range(len(play(None).wire.writes)):
        site = play(kill)
        assert in_service(site, WHOLE if fails else SLICES)
        assert site.step_of() == ("stopped" if fails else "done")
        assert site.manager.killed == []
