"""The file of a configuration, that of a snapshot, and the commands that read them."""

from __future__ import annotations

import copy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.domain.errors import BadInput
from plimsoll_batch.adapters.queues_file import configuration_of
from plimsoll_batch.adapters.snapshot_file import state_of
from plimsoll_batch.domain.quota.cohorts import Order, Quota, Reclaim
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.queue_scenes import Scene, a_job

EXAMPLES = Path(__file__).parents[4] / "examples" / "queues"
PAGE = Path(__file__).parents[4] / "docs" / "guides" / "batch.md"
QUEUES: Any = yaml.safe_load((EXAMPLES / "queues.yaml").read_text())
SNAPSHOT: Any = yaml.safe_load((EXAMPLES / "snapshot.yaml").read_text())
FILES = ("-f", str(EXAMPLES / "queues.yaml"), "--snapshot", str(EXAMPLES / "snapshot.yaml"))
AT = ("--at", "2026-11-17T14:00:00Z")
GPU = "nvidia.com/gpu"


def changed(document, path, value):
    """The document with another value at a path."""
    found = copy.deepcopy(document)
    *above, last = path
    at = found
    for part in above:
        at = at[part]
    at[last] = value
    return found


def quota_path(queue, field):
    return ("queues", queue, "resourceGroups", 0, "flavors", 0, "resources", GPU, field)


def test_quantities_limits_and_policies_are_read():
    configuration = configuration_of(QUEUES)
    research, tests = configuration.queues
    assert research.quotas["on-demand", GPU] == Quota(nominal=4, lending_limit=0)
    assert tests.quotas["spot", GPU] == Quota(nominal=8, borrowing_limit=4)
    assert research.groups[0].flavors == ("spot", "on-demand")
    assert research.preemption.reclaim is Reclaim.ANY
    assert configuration.cohorts[0].order is Order.DOMINANT_RESOURCE_SHARE


@pytest.mark.parametrize(
    ("quantity", "resource", "amount"),
    [("1500m", "cpu", 1500), (2, "cpu", 2000), ("1.5Gi", "memory", 3 * 2**29), (110, "pods", 110)],
)
def test_amounts_are_those_of_kubernetes(quantity, resource, amount):
    group = {"flavors": [{"name": "f", "resources": {resource: {"nominal": quantity}}}]}
    configuration = configuration_of(
        {"flavors": [{"name": "f"}], "queues": [{"name": "q", "resourceGroups": [group]}]}
    )
    assert configuration.queues[0].quotas["f", resource].nominal == amount


def test_a_weight_is_exact():
    configuration = configuration_of({"cohorts": [{"name": "c", "weight": "0.1"}]})
    assert configuration.cohorts[0].weight == Fraction(1, 10)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("queues", 0, "cohort"), "labs", "queue research: cohort: there is no cohort labs"),
        (("queues", 0, "cohort"), None, "a limit needs a cohort above, to borrow from or lend to"),
        (("queues", 0, "name"), "serving-tests", "queue serving-tests: stands there twice"),
        (("queues", 0, "wieght"), 1, "queues.0.wieght: is no field here: did you mean weight?"),
        (("queues", 0, "weight"), -1, "queue research: weight: must be at least 0"),
        (("queues", 0, "preemption", "withinQueue"), "Always", "queues.0.preemption.withinQueue:"),
        (("cohorts", 0, "parent"), "lab", "cohort lab: parent: a cycle: lab < lab"),
        (("cohorts", 0, "parent"), "root", "cohort lab: parent: there is no cohort root"),
        (
            quota_path(0, "nominal"),
            "many",
            f"queue research: quota of {GPU} in spot: 'many' is not a quantity",
        ),
        (quota_path(0, "nominal"), -1, f"quota of {GPU} in spot: must be at least 0"),
        (
            ("queues", 0, "resourceGroups", 0, "flavors", 0, "name"),
            "spto",
            f"queue research: quota of {GPU} in spto: there is no flavor spto",
        ),
        (
            ("queues", 0, "resourceGroups", 0, "flavors", 0, "resources"),
            {"cpu": {"nominal": 1}},
            "queue research: resourceGroups.0: its flavors name different resources",
        ),
        (
            ("queues", 0, "preemption", "borrowWithinCohort"),
            {"policy": "LowerPriority"},
            "borrowing while preempting is only for the order priority",
        ),
        (("queues",), "all", "queues: must be a list, not 'all'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(path, value, told):
    with pytest.raises(BadInput) as error:
        configuration_of(changed(QUEUES, path, value))
    assert told in str(error.value)


def test_a_share_on_spot_is_a_number_from_0_to_1():
    share = changed(QUEUES, ("queues", 0, "spotShare"), 0.25)
    labels = ("flavors", 0, "nodeLabels")
    found = configuration_of(changed(share, labels, {"karpenter.sh/capacity-type": "spot"}))
    assert found.queues[0].spot_share == Fraction(1, 4)
    with pytest.raises(BadInput, match=r"queues\.0\.spotShare"):
        configuration_of(changed(QUEUES, ("queues", 0, "spotShare"), 1.5))


@pytest.mark.parametrize(
    ("flavor", "told"),
    [
        ({"interruptionsPerHour": 1}, "counts beside a price only"),
        ({"price": 1, "nodeLabels": {"karpenter.sh/capacity-type": "spot"}}, "is needed too"),
        ({"price": 0}, "flavors.0.price"),
        ({"price": "1e-999999999"}, "flavors.0.price"),
        ({"price": 1, "interruptionsPerHour": "1e9"}, "flavors.0.interruptionsPerHour"),
        ({"price": "NaN"}, "flavors.0.price"),
    ],
)
def test_a_price_that_says_nothing_or_too_much_is_refused(flavor, told):
    named = QUEUES["flavors"][0]["name"]
    with pytest.raises(BadInput) as error:
        configuration_of(changed(QUEUES, ("flavors", 0), {"name": named, **flavor}))
    assert told in str(error.value)


def test_a_weight_of_0_is_refused_where_shares_are_divided_by_it():
    document = changed(QUEUES, ("queues", 0, "weight"), 0)
    assert configuration_of(document).queues[0].weight == 0
    with pytest.raises(BadInput, match="queue research: weight: 0 means"):
        configuration_of(changed(document, ("cohorts", 0, "order"), "drf"))


def test_a_cycle_of_several_cohorts_is_named_once_for_each():
    cohorts = [{"name": a, "parent": b} for a, b in (("a", "b"), ("b", "c"), ("c", "a"))]
    with pytest.raises(BadInput, match="cohort a: parent: a cycle: a < b < c < a"):
        configuration_of({"cohorts": cohorts})


def test_only_the_root_says_the_order_of_a_tree():
    cohorts = [{"name": "a"}, {"name": "b", "parent": "a", "order": "drf"}]
    with pytest.raises(BadInput, match="cohort b: order: only the root"):
        configuration_of({"cohorts": cohorts})


def test_cohorts_too_deep_are_refused():
    cohorts = [{"name": f"c{n}", "parent": f"c{n - 1}" if n else None} for n in range(20)]
    with pytest.raises(BadInput, match="cohort c16: parent: more than 16 cohorts above each other"):
        configuration_of({"cohorts": cohorts})


def test_many_problems_are_told_together_and_bounded():
    queues = [{"name": f"q{n}", "cohort": "gone"} for n in range(100)]
    with pytest.raises(BadInput) as error:
        configuration_of({"queues": queues})
    assert len(str(error.value).splitlines()) == 21
    assert str(error.value).endswith("and 80 more")


def test_gangs_that_are_alike_share_one_shape():
    document = changed(SNAPSHOT, ("gangs", 5, "roles"), SNAPSHOT["gangs"][4]["roles"])
    seen = state_of(document, configuration_of(QUEUES))
    notebook, huge = seen.gangs[1:3]
    assert notebook.shape is huge.shape


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("gangs", 3, "name"), "notebook", "gang lab/notebook: stands there twice"),
        (("gangs", 3, "roles"), [], "gangs.3.roles:"),
        (("gangs", 3, "roles", 0, "pods"), 0, "gangs.3.roles.0.pods:"),
        (("gangs", 3, "since"), "2026-11-17T12:00:00", "gangs.3.since:"),
        (("gangs", 0, "runs", "pods"), {"ps": {"spot-a": 1}}, "runs: it has no role ps"),
        (("nodes", 1, "name"), "spot-a", "node spot-a: stands there twice"),
        (("nodes", 1, "allocatable"), {"cpu": "x"}, "'x' is not a quantity"),
    ],
)
def test_what_is_wrong_in_a_snapshot_is_named_with_its_place(path, value, told):
    with pytest.raises(BadInput) as error:
        state_of(changed(SNAPSHOT, path, value), configuration_of(QUEUES))
    assert told in str(error.value)


# --- Commands -----------------------------------------------------------------------------------

COMMANDS = {
    "queues check -f examples/queues/queues.yaml": ("check", *FILES[:2]),
    "queues plan -f examples/queues/queues.yaml --snapshot examples/queues/snapshot.yaml": (
        "plan",
        *FILES,
        *AT,
    ),
    "queues why lab/train -f examples/queues/queues.yaml --snapshot examples/queues/snapshot.yaml": (
        "why",
        "lab/train",
        *FILES,
        *AT,
    ),
}


def shown(*args):
    result = run(MemoryEnvironment(), "queues", *args)
    assert result.exit_code == 0, result.output
    return result.stdout.replace(f"{EXAMPLES}/", "examples/queues/").rstrip()


@pytest.mark.parametrize("typed", COMMANDS)
def test_the_page_shows_exactly_what_the_command_prints(typed):
    assert f"$ plimsoll {typed}\n{shown(*COMMANDS[typed])}\n" in PAGE.read_text()


def test_the_page_of_gpu_pools_shows_what_the_check_of_its_file_prints():
    file = EXAMPLES.parent / "gpu-tenancy" / "queues.yaml"
    said = shown("check", "-f", str(file)).replace(str(file), "examples/gpu-tenancy/queues.yaml")
    page = PAGE.with_name("gpu-tenancy.md").read_text()
    assert f"$ plimsoll queues check -f examples/gpu-tenancy/queues.yaml\n{said}\n" in page


def test_a_wrong_configuration_ends_with_status_2_and_names_the_file(tmp_path):
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump(changed(QUEUES, ("queues", 0, "cohort"), "labs")))
    result = run(MemoryEnvironment(), "queues", "check", "-f", str(file))
    assert result.exit_code == 2
    assert f"{file}:\nqueue research: cohort: there is no cohort labs" in result.stderr


def test_of_a_gang_that_does_not_wait_the_answer_is_no():
    result = run(MemoryEnvironment(), "queues", "why", "lab/nobody", *FILES, *AT)
    assert (result.exit_code, result.stderr) == (1, "no gang lab/nobody waits\n")


def test_a_plan_is_json_on_request():
    assert '"decision": "preempt"' in shown("plan", *FILES, *AT, "--output", "json")


# --- On a cluster --------------------------------------------------------------------------------


def test_apply_keeps_a_checked_configuration_in_the_cluster_and_replaces_it():
    scene = Scene(nodes=1)
    environment = MemoryEnvironment(transports={"harbor": scene.wire})
    apply = ("queues", "apply", "--yes", "-f", str(EXAMPLES / "queues.yaml"))
    assert run(environment, *apply).exit_code == 0
    result = run(environment, *apply)
    assert result.output == "ConfigMap plimsoll/plimsoll-queues says the same already\n"
    assert scene.service().cluster.configuration() == configuration_of(QUEUES)


def test_apply_writes_nothing_of_a_wrong_configuration(tmp_path):
    scene = Scene(nodes=1)
    before = scene.service().cluster.configuration()
    wrong = tmp_path / "queues.yaml"
    wrong.write_text("flavors: []\nqueues: [{name: lab, cohort: nowhere, resourceGroups: []}]\n")
    environment = MemoryEnvironment(transports={"harbor": scene.wire})
    assert run(environment, "queues", "apply", "-f", str(wrong)).exit_code == 2
    assert scene.service().cluster.configuration() == before


def test_run_starts_what_has_a_place_and_says_so():
    scene = Scene(nodes=1)
    scene.submit(a_job("one"))
    environment = MemoryEnvironment(transports={"harbor": scene.wire})
    environment.clock = scene.clock  # type: ignore[assignment] # it stands still no more
    result = run(environment, "queues", "run", "--seconds", "10")
    assert result.exit_code == 0, result.output
    assert "gang started: lab/one: within the quota of its queue" in result.output
    assert scene.running("one") == 1


def test_each_pod_that_runs_in_a_snapshot_counts_as_one_of_the_quota_of_pods():
    quotas = {"cpu": {"nominal": 100}, "pods": {"nominal": 5}}
    configuration = configuration_of(
        {
            "flavors": [{"name": "any"}],
            "queues": [
                {
                    "name": "q",
                    "resourceGroups": [{"flavors": [{"name": "any", "resources": quotas}]}],
                }
            ],
        }
    )
    runs = {"since": "2026-01-01T11:00:00Z", "flavors": {"cpu": "any", "pods": "any"}}
    gang = {
        "namespace": "lab",
        "name": "runs",
        "queue": "q",
        "since": "2026-01-01T11:00:00Z",
        "roles": [{"name": "w", "pods": 3, "requests": {"cpu": 1}}],
        "runs": runs,
    }
    [running] = state_of({"gangs": [gang]}, configuration).running
    assert running.usage == {("any", "cpu"): 3000, ("any", "pods"): 3}
