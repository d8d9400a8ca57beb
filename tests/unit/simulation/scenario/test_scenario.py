"""Scenario files: what they may say, and that each mistake is named with its place and cure."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import parse_duration
from plimsoll_simulation.durations import parse_span, words
from plimsoll_simulation.scenario.capabilities import refuse_unsupported, unsupported
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.scenario.problems import BadScenario
from plimsoll_simulation.scenario.reading import read_scenario
from plimsoll_simulation.scenario.scenario import DrillFile, Scenario
from plimsoll_simulation.scenario.timeline import ApplyEntry, FaultEntry, NoticeEntry, ScaleEntry
from plimsoll_simulation.scenario.validation import resolved, schema

GOOD = """\
apiVersion: plimsoll.dev/v1
kind: Drill
metadata:
  name: all-spot-at-once
  description: Every spot instance gets its notice in the same second.
spec:
  seed: 7
  horizon: 15m
  latency: {notice: 300ms, function: 200ms, api: 20ms}
  prices: {spot: 0.35}
  clusters:
    - name: harbor
      nodeGroups:
        - name: base
          kind: asg
          capacity: on-demand
          instanceType: m6i.2xlarge
          zones: [us-east-1a, us-east-1b]
          size: 2
          max: 20
          startup: 50s..90s
          allocatable: {cpu: 7910m, memory: 29Gi, pods: 58}
          labels: {team: "7"}
          taints: [{key: dedicated, value: shop, effect: NoSchedule}]
          price: 0.384
        - {name: spot-a, kind: asg, capacity: spot, instanceType: m5.2xlarge, zones: [us-east-1a], size: 4, max: 20,
           startup: 70s, allocatable: {cpu: 7910m, memory: 29Gi, pods: 58}}
      manifests: [shop.yaml]
      pods: {startup: 15s, stop: 3s}
      otherControllers: []
      autoscaler: {scan: 10s}
  timeline:
    - {at: 6m, apply: rollout.yaml}
    - {at: 60s, notice: spot-interruption, nodes: {capacity: spot}}
    - {at: 60s, notice: rebalance-recommendation, nodes: {group: spot-a, count: 2}}
    - {at: 70s, fault: api-server-down, for: 20s}
    - {at: 70s, fault: insufficient-capacity, nodes: {group: base}, for: 60s}
    - {at: 5m, scale: {kind: Deployment, namespace: default, name: web, replicas: 12}}
  expect:
    podsKilled: 0
    cordonedWithin: 5s
    emptiedBeforeGone: true
    settled: true
    workloads:
      default/web: {minReady: 3, secondsBelowFloor: 0}
      "*": {secondsAtZero: 0}
"""


def read(tmp_path: Path, text: str) -> Scenario:
    file = tmp_path / "drill.yaml"
    file.write_text(text, encoding="utf-8")
    return read_scenario(file)


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(BadScenario) as caught:
        read(tmp_path, text)
    assert len(str(caught.value).splitlines()) == len(caught.value.problems)
    return [str(p).replace(str(tmp_path), "") for p in caught.value.problems]


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def test_the_scenario_of_the_format_reads_with_every_field(tmp_path):
    scenario = read(tmp_path, GOOD)
    cluster = scenario.cluster("harbor")
    base, spot = cluster.node_groups
    assert (scenario.name, scenario.seed, scenario.horizon) == (
        "all-spot-at-once",
        7,
        timedelta(minutes=15),
    )
    assert base.startup.least == timedelta(seconds=50)
    assert base.startup.at(0.5) == timedelta(seconds=70)
    assert base.taints == ({"key": "dedicated", "value": "shop", "effect": "NoSchedule"},)
    assert spot.allocatable == {"cpu": "7910m", "memory": "29Gi", "pods": "58"}
    assert cluster.manifests == (tmp_path / "shop.yaml",)
    assert cluster.autoscaler is not None
    assert [type(e) for e in scenario.timeline] == [
        NoticeEntry,
        NoticeEntry,
        FaultEntry,
        FaultEntry,
        ScaleEntry,
        ApplyEntry,
    ]
    assert scenario.expect is not None
    assert scenario.expect.workloads["default/web"].min_ready == 3
    assert scenario.expect.cordoned_within == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("notice", "goes_after"),
    [
        ("notice: spot-interruption", 120),
        ("notice: spot-interruption, reclaim: 30s", 30),
        ("notice: rebalance-recommendation", None),
        ("notice: rebalance-recommendation, reclaim: 10m", 600),
        ("notice: lifecycle-terminate", 300),
        ("notice: lifecycle-terminate, otherHook: 90s", 90),
        ("notice: health-scheduled-change", 7200),
        ("notice: capacity-reservation-interruption", 120),
        ("notice: state-change, state: running", None),
        ("notice: state-change, state: stopping", 0),
        ("notice: none, reclaim: 0s", 0),
    ],
)
def test_each_notice_says_when_its_instance_goes(tmp_path, notice, goes_after):
    text = changed("notice: spot-interruption", notice)
    entry = next(e for e in read(tmp_path, text).timeline if isinstance(e, NoticeEntry))
    expected = None if goes_after is None else timedelta(seconds=goes_after)
    assert entry.goes_after == expected


@pytest.mark.parametrize(
    ("old", "new", "at", "parts"),
    [
        ("      manifests:", "      manifest:", "manifest:", ["unknown field", "Write manifests"]),
        ("otherControllers: []", "otherControllers: []\n      place: x", "place: x", ["unknown field", "Remove it"]),
        ("instanceType: m6i.2xlarge", "instance_type: m", "instance_type", ["Write instanceType"]),
        ("horizon: 15m", "horizon: 90", "horizon", ["90 (a number)", "Add the unit: 90s"]),
        ("horizon: 15m", "horizon: soon", "horizon", ['"soon"', "such as 90s, 2m, 1h30m or 250ms"]),
        ("horizon: 15m", "horizon: 0s", "horizon", ["more than 0s"]),
        ("50s..90s", "90s..50s", "startup: 90", ["range", "50s..90s"]),
        ("          size: 2", "          size: 21", "size: 21", ["over max 20", "Raise max"]),
        ("          size: 2", "          size:", "size:", ["nothing (null)", "Give it a value"]),
        ("kind: asg\n", "kind: static\n", "max: 20", ["static group cannot grow"]),
        ("kind: asg\n", "kind: karpenter\n          renew: true\n", "renew", ["no such tag"]),
        ("kind: asg\n", "kind: agg\n", "kind: agg", ["asg, eks-nodegroup, karpenter", "Write asg"]),
        ("zones: [us-east-1a, us-east-1b]", "zones: [a, a]", "[a, a]", ["each once"]),
        ("[us-east-1a, us-east-1b]", "us-east-1a", "zones: us-east-1a", ["[us-east-1a]"]),
        ("name: spot-a", "name: base", "name: base, kind", ["again", "line 14"]),
        ('{team: "7"}', "{team: 7}", "team", ['Put it in quotes: "7"']),
        ('{team: "7"}', "{topology.kubernetes.io/zone: a}", "labels", ["rig"]),
        ("memory: 29Gi, pods: 58}\n          lab", "memory: 29GiB}\n          lab", "29GiB", ["quantity"]),
        ("{capacity: spot}", "{group: spott-a}", "spott-a", ["base, spot-a", "Write spot-a"]),
        ("{capacity: spot}", "{zone: us-east-1c}", "1c", ["unknown zone", "us-east-1a"]),
        ("{capacity: spot}", "{capacity: spot, group: base}", "group: base}}", ["no node group"]),
        ("{capacity: spot}", "{}", "nodes: {}", ["at least 1 field"]),
        ("{capacity: spot}", "{cluster: haven, group: base}", "haven", ["unknown cluster"]),
        ("{group: spot-a, count: 2}", "{group: spot-a, count: 2, fraction: 0.5}", "0.5", ["one of"]),
        ("{group: spot-a, count: 2}", "{group: spot-a, fraction: 1.5}", "1.5", ["at most 1"]),
        ("at: 6m, apply", "at: 16m, apply", "16m", ["at most the horizon, 15m"]),
        ("at: 6m, apply", "apply", "apply", ["Add at"]),
        ("apply: rollout.yaml", "aply: rollout.yaml", "aply", ["notice, fault, scale, apply"]),
        ("fault: api-server-down", "fault: api-server-slow", "slow", ["Add latency"]),
        ("fault: api-server-down", "delay: 3s, fault: api-server-down", "delay", ["means nothing"]),
        (", for: 20s", "", "api-server-down", ["Add for"]),
        ("notice: spot-interruption", "notice: state-change", "state-change", ["Name the new state"]),
        ("notice: spot-interruption", "notice: spot-interruption, state: stopped", "state:", ["Remove"]),
        ("kind: Deployment", "kind: DaemonSet", "DaemonSet", ["Deployment, StatefulSet, ReplicaSet"]),
        ("default/web:", "web:", "web: {", ["namespace/name"]),
        ("apiVersion: plimsoll.dev/v1", "apiVersion: plimsoll.dev/v2", "v2", ["plimsoll.dev/v1"]),
        ("seed: 7", "seed: 7\n  seed: 8", "seed: 8", ["again", "line 7"]),
        ("seed: 7", "seed: .nan", "seed", ["finite"]),
        ("seed: 7", "seed: !!python/object:os.system x", "seed", ["tag"]),
        ("seed: 7", "on: 7", "on: 7", ['Put it in quotes: "on"']),
        ("  name: all-spot-at-once", "  name: All Spot", "All Spot", ["lower-case"]),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_line_field_what_is_allowed_and_cure(tmp_path, old, new, at, parts):
    text = changed(old, new)
    found = problems(tmp_path, text)
    match = [p for p in found if all(part in p for part in parts)]
    assert match, found
    if "nothing; allowed" not in match[0]:
        assert f"/drill.yaml:{line_of(text, at)}:" in match[0]
    assert "; allowed: " in match[0]


def test_a_lifecycle_action_for_nodes_of_no_auto_scaling_group_is_refused(tmp_path):
    text = changed("notice: rebalance-recommendation", "notice: lifecycle-terminate")
    read(tmp_path, text)
    text = text.replace("kind: asg, capacity: spot", "kind: static, capacity: spot")
    [problem] = problems(tmp_path, text.replace("size: 4, max: 20", "size: 4"))
    assert "spot-a, which is static" in problem
    assert f"/drill.yaml:{line_of(text, 'notice: lifecycle-terminate')}:" in problem


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path):
    text = (
        changed("seed: 7", "seed: x")
        .replace("capacity: on-demand\n", "capacity: demand\n")
        .replace("at: 6m", "at: 6")
    )
    found = problems(tmp_path, text)
    assert [line.split(":")[2].strip() for line in found] == [
        "spec.seed",
        "spec.clusters[0].nodeGroups[0].capacity",
        "spec.timeline[0].at",
    ]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "empty file"),
        (b"# nothing\n---\n", "empty file"),
        (b"a: [1, 2\nb: 3\n", "YAML"),
        (b"a: \xff\xfe\n", "UTF-8"),
        (b"a: \x00b\n", "YAML of printable characters"),
        (b"- 1\n- 2\n", "a mapping"),
        (b"just text", "a mapping"),
        (b"a: 1\n---\nb: 2\n", "2 documents"),
        (b"[" * 100_000, "nested too deep"),
        (b"a: &a [*a]\n", "nested too deep"),
        (b"a: " + b"x" * (4 * 1024 * 1024 + 1), "at most 4 MiB"),
        (b"? [a, b]\n: 1\n", "keys that are text"),
        (b"a: *b\n", "undefined alias"),
        (b"<<: 3\n", "merge"),
        (b"a: 0x" + b"f" * 20_000, "number"),
    ],
)
def test_a_file_that_is_no_sound_yaml_is_refused_with_its_name(tmp_path, content, part):
    file = tmp_path / "drill.yaml"
    file.write_bytes(content)
    with pytest.raises(BadScenario) as caught:
        read_scenario(file)
    assert part in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_few_lines_of_aliases_cannot_fill_the_memory(tmp_path):
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert "aliases" in problems(tmp_path, "\n".join(lines))[0]


def test_a_file_that_is_not_there_or_is_a_directory_is_named(tmp_path):
    with pytest.raises(BadScenario, match="no such file"):
        read_scenario(tmp_path / "missing.yaml")
    with pytest.raises(BadScenario, match="a directory"):
        read_scenario(tmp_path)
    with pytest.raises(BadScenario, match=r"Correct the path|readable"):
        read_scenario(tmp_path / ("x" * 5000))


def test_a_manifest_that_is_not_there_is_named_where_the_scenario_names_it(tmp_path):
    (tmp_path / "drill.yaml").write_text(GOOD)
    with pytest.raises(BadScenario) as caught:
        read_drill(tmp_path / "drill.yaml")
    assert f"drill.yaml:{line_of(GOOD, 'manifests')}: spec.clusters[0].manifests[0]" in str(
        caught.value
    )
    assert "rollout.yaml" in str(caught.value)


def test_several_clusters_need_to_be_named_where_one_is_meant(tmp_path):
    document = yaml.safe_load(GOOD)
    other = dict(document["spec"]["clusters"][0], name="haven")
    document["spec"]["clusters"].append(other)
    found = problems(tmp_path, yaml.safe_dump(document, sort_keys=False))
    assert len([p for p in found if "with several clusters" in p]) == 2
    for entry in document["spec"]["timeline"]:
        if "apply" in entry:
            entry["cluster"] = "haven"
        if "scale" in entry:
            entry["scale"]["cluster"] = "haven"
    scenario = read(tmp_path, yaml.safe_dump(document, sort_keys=False))
    assert {e.scale.cluster for e in scenario.timeline if isinstance(e, ScaleEntry)} == {"haven"}


def test_a_rig_on_which_device_plugins_report_at_once_refuses_late_ones(tmp_path):
    scenario = read(
        tmp_path, GOOD.replace("size: 2\n", "size: 2\n          devicesAfter: 30s\n", 1)
    )
    (problem,) = unsupported(scenario, "emulated")
    assert "devicesAfter of the node group base, which the rig emulated" in str(problem)
    assert unsupported(scenario, "simulated") == []


TOKENS = ["", "null", "[]", "{}", "-1", "1e999", "yes", '"x"', "{a: 1}", "&a", "*a", "0x", "90s"]


@given(st.data())
def test_whatever_is_damaged_the_scenario_reads_or_says_what_is_wrong(tmp_path_factory, data):
    words = re.split(r"([^\s{},:\[\]]+)", GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(words) - 1))
        words[i] = data.draw(st.sampled_from(TOKENS))
    file = tmp_path_factory.getbasetemp() / "damaged.yaml"
    file.write_text("".join(words))
    try:
        said = [str(c.place) for c in read_scenario(file).clusters]
    except BadScenario as error:
        said = [str(problem.place) for problem in error.problems]
    assert said
    assert all(place.startswith(str(file)) for place in said)


@pytest.mark.parametrize(
    ("fault", "rig", "named"),
    [
        ("api-server-slow, latency: 1s", "emulated", "the fault api-server-slow"),
        ("aws-throttled, service: ec2", "emulated", "the fault aws-throttled"),
        ("aws-throttled, service: s3", "simulated", "the service s3"),
    ],
)
def test_faults_that_a_rig_cannot_play_are_refused_by_name_and_place(tmp_path, fault, rig, named):
    text = changed("insufficient-capacity, nodes: {group: base}", fault)
    scenario = read(tmp_path, text)
    (problem,) = unsupported(scenario, rig)
    assert f"{named}, which the rig {rig}" in str(problem)
    assert f"drill.yaml:{line_of(GOOD, 'insufficient')}" in str(problem)
    with pytest.raises(BadInput):
        refuse_unsupported(scenario, rig)


def test_other_controllers_and_kinds_that_a_rig_cannot_play_and_unknown_rigs_are_refused_by_name(
    tmp_path,
):
    text = changed("otherControllers: []", "otherControllers: [karpenter, hpa, nth]").replace(
        "kind: asg", "kind: karpenter", 1
    )
    scenario = read(tmp_path, text)
    assert unsupported(scenario, "simulated") == []
    assert [p.found.split(",")[0] for p in unsupported(scenario, "emulated")] == [
        "the controller karpenter",
        "the controller hpa",
        "the node group base of kind karpenter",
    ]
    assert "unknown" in str(unsupported(scenario, "moon")[0])


@given(st.integers(0, 10**9))
def test_a_duration_in_words_reads_back_the_same(millis):
    duration = timedelta(milliseconds=millis)
    assert parse_duration(words(duration)) == duration


@pytest.mark.parametrize("text", ["", "s", "5", "1m1h", "-5s", "1.5m", "5 s", "\u0665s", "1s.."])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(BadInput):
        parse_span(text)


def test_the_schema_describes_every_field():
    whole = schema(DrillFile)
    undescribed = [
        f"{model}.{name}"
        for model, rules in [("DrillFile", whole), *whole["$defs"].items()]
        for name, field in rules.get("properties", {}).items()
        if not resolved(field, whole).get("description")
    ]
    assert undescribed == []


def test_other_controllers_have_one_name(tmp_path):
    with pytest.raises(BadScenario, match="rivals"):
        read(tmp_path, changed("otherControllers: []", "rivals: [hpa]"))
