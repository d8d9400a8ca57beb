"""`plimsoll gpu apply`: a plan is checked against the cluster, given to it, and followed to its end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, override

import pytest
from click.testing import Result

from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.kubernetes import GPU
from plimsoll_service.wire.gpu_plan import CONFIG_MAP, KEY, GpuPlan, parse_plan
from plimsoll_simulation.rigs.mig_manager import MIG
from tests.support import fake_clusters
from tests.support.cli_environment import MemoryEnvironment, StillClock, run
from tests.support.gpu_nodes import FILE, SLICES, WHOLE, GpuSite, gpu_template

NEW = "all-1g.10gb"


class Working(StillClock):
    """A clock by which plimsoll-gpu and mig-manager work while a command waits."""

    def __init__(self, site: GpuSite) -> None:
        super().__init__(site.clock.time)
        self._site = site

    @override
    def sleep(self, seconds: float) -> None:
        self._site.run(seconds / 60)
        self.pass_to(self._site.clock.time)


@dataclass(kw_only=True)
class Live(MemoryEnvironment):
    """The cluster of a kubeconfig."""

    site: GpuSite
    granted: tuple[str, ...] = (NEW, "all-disabled")
    answers: bool = True
    """Whether the asker may ask what others may do."""

    @override
    def by_kubeconfig(self, *_: object) -> tuple[str, KubernetesCluster]:
        return "harbor", KubernetesCluster(self, "harbor", self.clock, workers=SerialWorkers())

    def call(self, method: str, path: str, **request: Any) -> Response:
        if "subjectaccessreviews" not in path:
            return self.site.transport.call(method, path, **request)
        if not self.answers:
            return Response(status=403, body={"reason": "Forbidden", "message": "no"})
        spec = request["body"]["spec"]
        assert spec["user"] == "system:serviceaccount:plimsoll:plimsoll-gpu"
        allowed = spec["resourceAttributes"]["name"] in self.granted
        return Response(status=201, body={"status": {"allowed": allowed}})


@pytest.fixture
def site() -> GpuSite:
    """A node whose new layout nobody has planned in the cluster yet."""
    site = GpuSite()
    site.transport.call("DELETE", f"/api/v1/namespaces/plimsoll/configmaps/{CONFIG_MAP}")
    return site


def folder_of(site: GpuSite, tmp_path: Path, **more: Any) -> Path:
    plan = {"config": site.source(), "nodes": [site.entry("gpu-1")]} | more
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    return tmp_path


def apply(site: GpuSite, *words: object, **live: Any) -> Result:
    return run(Live(site=site, clock=Working(site), **live), "gpu", "apply", *map(str, words))


def there(site: GpuSite) -> GpuPlan:
    text: str = site.cluster.store.must_get("configmaps", "plimsoll", CONFIG_MAP)["data"][KEY]
    return parse_plan(text)


def test_without_go_it_says_what_would_be_done_and_changes_nothing(site: GpuSite, tmp_path: Path):
    result = apply(site, folder_of(site, tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "will be changed" in result.stdout
    assert site.cluster.store.get("configmaps", "plimsoll", CONFIG_MAP) is None


def test_it_names_what_speaks_against_a_node_by_the_rules_of_the_agent(
    site: GpuSite, tmp_path: Path
):
    site.cordon(on=True, name="spare")
    site.apply(fake_clusters.a_deployment("web", 1, gpu_template("web", {GPU: 1})))
    site.settle()
    folder = folder_of(site, tmp_path, nodes=[site.entry("gpu-1"), site.entry("spare", uid="x")])
    result = apply(site, folder)
    assert result.exit_code == 1
    assert "its uid is another" in " ".join(result.stdout.split())
    assert f"still asks for {GPU}" in " ".join(result.stdout.split())


def test_a_name_that_is_not_granted_is_said_with_the_file_to_commit(site: GpuSite, tmp_path: Path):
    result = apply(site, folder_of(site, tmp_path), granted=())
    assert result.exit_code == 1
    for name in (NEW, "all-disabled"):
        assert f"plimsoll-gpu may not use {name}: kubectl apply -f" in result.stdout
    assert "grants.yaml" in result.stdout.replace("\n", "")
    result = apply(site, folder_of(site, tmp_path), answers=False)
    assert (result.exit_code, f"whether plimsoll-gpu may use {NEW}" in result.stderr) == (0, True)


def test_with_go_it_writes_the_plan_and_follows_the_node_until_it_is_done(
    site: GpuSite, tmp_path: Path
):
    result = apply(site, folder_of(site, tmp_path), "--go", "--nodes-per-hour", "2")
    assert result.exit_code == 0, result.output
    assert there(site).nodes_per_hour == 2
    assert (site.gpus(), site.labels()[MIG], site.cordoned()) == (SLICES, NEW, False)
    told = [line.partition(" gpu-1: ")[2] for line in result.stdout.splitlines()]
    assert told[0] == "will be changed"
    assert "under way: changing since 11:01:10" in told
    assert told[-2] == "done"
    assert "1 of 1 nodes have their layout" in result.stdout
    again = apply(site, folder_of(site, tmp_path), "--go", "--nodes-per-hour", "2")
    assert (again.exit_code, "+++" in again.stdout) == (0, False)


def test_a_layout_that_lacks_a_slice_ends_as_stopped_and_its_exit_status_says_so(
    site: GpuSite, tmp_path: Path
):
    site.manager.lacking.add(NEW)
    result = apply(site, folder_of(site, tmp_path), "--go")
    assert result.exit_code == 1
    assert "stopped: it shows 13 nvidia.com/mig-1g.10gb" in result.stdout
    assert "0 of 1 nodes have their layout" in result.stdout
    assert (site.gpus(), site.cordoned()) == (WHOLE, False)


def test_an_alert_ends_it_and_its_exit_status_says_so(site: GpuSite, tmp_path: Path):
    def somebody_else() -> None:
        if site.step_of() == "changing":
            site.label(mig="all-3g.40gb")

    site.watch = somebody_else
    result = apply(site, folder_of(site, tmp_path), "--go")
    assert result.exit_code == 1
    assert f"alert: somebody set {MIG} to all-3g.40gb" in result.stdout
    assert site.cordoned()
    assert "alert: somebody set" in " ".join(apply(site, folder_of(site, tmp_path)).stdout.split())


def test_of_another_plan_the_difference_is_shown(site: GpuSite, tmp_path: Path):
    apply(site, folder_of(site, tmp_path), "--go")
    result = apply(site, folder_of(site, tmp_path, nodes_per_hour=3))
    assert '-  "nodes_per_hour": 1' in result.stdout
    assert '+  "nodes_per_hour": 3' in result.stdout
    assert there(site).nodes_per_hour == 1


def test_a_plan_is_paused_as_it_stands_in_the_cluster(site: GpuSite, tmp_path: Path):
    assert "nothing to pause" in apply(site, "--pause").stderr
    apply(site, folder_of(site, tmp_path), "--go")
    before = there(site)
    result = apply(site, "--pause")
    assert result.exit_code == 0
    assert (there(site).paused, there(site).nodes) == (True, before.nodes)


def test_a_plan_of_another_config_map_is_not_given_to_the_cluster(site: GpuSite, tmp_path: Path):
    site.config(FILE + "  more: []\n")
    result = apply(site, folder_of(site, tmp_path), "--go")
    assert result.exit_code == 2
    assert "is not as it was when the plan was made" in result.stderr
    assert site.cluster.store.get("configmaps", "plimsoll", CONFIG_MAP) is None
    assert apply(site, folder_of(site, tmp_path)).exit_code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give either the folder of a plan or --pause"),
        (("{folder}", "--pause"), "give either the folder of a plan or --pause"),
        (("--pause", "--go"), "give either"),
    ],
)
def test_refuses_words_that_contradict(
    site: GpuSite, tmp_path: Path, words: tuple[str, ...], said: str
):
    result = apply(site, *(word.format(folder=tmp_path) for word in words))
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_refuses_a_folder_without_a_plan_and_a_file_that_is_none(site: GpuSite, tmp_path: Path):
    assert "plimsoll gpu geometry --files" in apply(site, tmp_path).stderr
    (tmp_path / "plan.json").write_text('{"nodes": []}')
    result = apply(site, tmp_path)
    assert (result.exit_code, "config" in result.stderr) == (2, True)
