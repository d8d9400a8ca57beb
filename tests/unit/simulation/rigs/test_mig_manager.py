"""The stand-in of mig-manager behaves as the real one was measured to, row by row."""

from __future__ import annotations

import pytest

from plimsoll.domain.kubernetes import GPU, MIG_STATE
from plimsoll_simulation.rigs.mig_manager import PAUSED, PLUGIN
from tests.support.gpu_nodes import HALVES, SLICES, STEP, WHOLE, GpuSite, gpu_pod

FOREVER = "10h"


@pytest.fixture
def site() -> GpuSite:
    return GpuSite()


def outcome(site: GpuSite, label: str) -> tuple[str, str, bool]:
    """Ask for a layout; return the state, the plugin's label, and whether its pod runs."""
    site.label(mig=label)
    for _ in range(80):
        site.pass_(STEP)
        if site.manager._read == label and not site.manager.busy:
            break
    site.settle()
    return site.labels()[MIG_STATE], site.labels()[PLUGIN], site.plugin_runs()


def after_a_failure(site: GpuSite) -> None:
    outcome(site, "all-3g.40gb")
    site.manager.failing.add("all-1g.10gb")
    assert outcome(site, "all-1g.10gb") == ("failed", PAUSED, False)


def test_a_change_that_works_ends_in_success_with_the_plugin_back(site):
    assert outcome(site, "all-1g.10gb") == ("success", "true", True)
    assert site.gpus() == SLICES


def test_a_later_change_that_fails_leaves_the_plugin_away(site):
    after_a_failure(site)
    assert site.gpus() == {}


def test_the_old_label_after_a_failure_ends_in_success_without_the_plugin(site):
    after_a_failure(site)
    assert outcome(site, "all-3g.40gb") == ("success", PAUSED, False)


def test_another_label_after_a_failure_works_and_brings_the_plugin_back(site):
    after_a_failure(site)
    assert outcome(site, "all-disabled") == ("success", "true", True)
    assert site.gpus() == WHOLE


def test_a_name_that_is_not_in_the_file_fails_and_touches_nothing(site):
    assert outcome(site, "all-9g") == ("failed", "true", True)
    assert site.gpus() == WHOLE


def test_a_plugin_that_cannot_leave_is_waited_for_and_then_the_state_stays_pending():
    site = GpuSite(plugin_stops=FOREVER)
    site.label(mig="all-1g.10gb")
    site.pass_(STEP)
    assert site.manager.busy
    for _ in range(61):
        site.pass_(STEP)
    assert not site.manager.busy
    assert (site.labels()[MIG_STATE], site.labels()[PLUGIN]) == ("pending", PAUSED)

    for pod in site.on("gpu-1"):
        path = f"/api/v1/namespaces/default/pods/{pod}"
        gone = {"gracePeriodSeconds": 0}
        site.cluster.handle("DELETE", path, {}, gone, now=site.clock.time)
    assert outcome(site, "all-disabled") == ("success", PAUSED, False)

    site.manager.restart()
    site.settle()
    assert (site.labels()[MIG_STATE], site.labels()[PLUGIN]) == ("success", "true")
    assert site.plugin_runs()


def test_it_takes_the_gpus_from_whoever_has_them(site):
    site.apply(gpu_pod("notebook", {GPU: 1}))
    site.settle()
    outcome(site, "all-3g.40gb")
    assert site.manager.killed == ["default/notebook"]
    assert site.gpus() == HALVES


def test_a_node_that_reboots_is_not_ready_meanwhile(site):
    site.manager.reboots = STEP * 10
    site.label(mig="all-1g.10gb")
    for _ in range(6):
        site.pass_(STEP)
    assert (site.labels()[MIG_STATE], site.ready()) == ("rebooting", False)
    for _ in range(12):
        site.pass_(STEP)
    assert (site.labels()[MIG_STATE], site.ready(), site.gpus()) == ("success", True, SLICES)
