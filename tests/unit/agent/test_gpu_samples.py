"""Series of dcgm-exporter, forged ones too, read into what a snapshot tells of GPUs."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from time import process_time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from plimsoll.domain.errors import Temporary
from plimsoll_agent.exposition import LONGEST_LINE, MOST_SERIES, series_of
from plimsoll_agent.gpu_samples import Known, Read, Series, gpu_samples, missing_from
from plimsoll_service.wire.gpu import COUNTERS, GpuSample
from plimsoll_service.wire.snapshot import Owner, Pod
from tests.support.snapshots import NOW, wire_node

PRODUCT = "NVIDIA-H100-80GB-HBM3"


def a_pod(name: str, node: str = "a", **changes: Any) -> Pod:
    facts: dict[str, Any] = {
        "uid": f"uid-{name}",
        "namespace": "ml",
        "name": name,
        "node": node,
        "created_at": NOW,
    }
    return Pod(**facts | changes)


EXPORTER = a_pod(
    "dcgm-x", namespace="gpu-operator", owner=Owner(kind="DaemonSet", name="dcgm", uid="uid-dcgm")
)
NODES = (
    wire_node("a", labels={"kubernetes.io/hostname": "host-a", "nvidia.com/gpu.product": PRODUCT}),
    wire_node("b", labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"}),
)
KNOWN = Known(NODES, (a_pod("chat"), a_pod("other", "b"), EXPORTER))


def line(metric: str, value: str, **labels: str) -> str:
    said = {"gpu": "0", "UUID": "GPU-0", "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "a"}
    told = ",".join(f'{k}="{v}"' for k, v in (said | labels).items())
    return f"{metric}{{{told}}} {value}\n"


def read_of(*lines: str, node: str = "a") -> Read:
    body = "".join(lines).encode()
    names = KNOWN.names_of(node) | {"dcgm-x": node}
    return gpu_samples(series_of(body), KNOWN, names, node)


def only(*lines: str, node: str = "a") -> GpuSample:
    (found,) = read_of(*lines, node=node).samples
    return found


HELD = {"namespace": "ml", "pod": "chat", "container": "main"}


def test_a_gpu_is_told_with_its_pod_in_our_units():
    found = only(
        "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n",
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n",
        line("DCGM_FI_DEV_GPU_UTIL", "31", **HELD),
        line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.0004", **HELD),
        line("DCGM_FI_PROF_SM_ACTIVE", "0.5", **HELD),
        line("DCGM_FI_PROF_DRAM_ACTIVE", "1", **HELD),
        line("DCGM_FI_DEV_FB_USED", "1000", **HELD),
        line("DCGM_FI_DEV_FB_FREE", "80000", **HELD),
        line("DCGM_FI_DEV_FB_RESERVED", "559", **HELD),
        line("DCGM_FI_DEV_POWER_USAGE", "71.3", **HELD),
        line("DCGM_FI_DEV_XID_ERRORS", "79", **HELD),
        line("DCGM_FI_DEV_SM_CLOCK", "1980", **HELD),
    )
    assert found == GpuSample(
        node="a",
        gpu="GPU-0",
        model="H100-80GB-HBM3",
        pod="uid-chat",
        duty=1,
        sm_active=500,
        dram_active=1000,
        memory_used_mib=1000,
        memory_total_mib=81559,
        power_w=72,
        last_xid=79,
    )
    assert not missing_from([found])


def test_what_an_exporter_does_not_tell_is_none_and_named():
    found = only(line("DCGM_FI_DEV_GPU_UTIL", "31"), line("DCGM_FI_DEV_FB_USED", "1000"))
    assert (found.duty, found.memory_used_mib, found.memory_total_mib) == (310, 1000, None)
    assert (found.pod, found.sm_active) == ("", None)
    assert missing_from([found]) == [
        "DCGM_FI_PROF_SM_ACTIVE",
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_XID_ERRORS",
    ]
    assert {*missing_from([found])} <= COUNTERS.keys()


def test_an_instance_of_mig_has_its_profile_and_never_the_use_of_the_whole_gpu():
    instance = {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": "7", **HELD}
    found = only(line("DCGM_FI_DEV_GPU_UTIL", "90", **instance))
    assert (found.instance, found.instance_id, found.duty) == ("1g.10gb", "7", None)
    both = read_of(
        line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.2", **instance),
        line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.3", **instance | {"GPU_I_ID": "8"}),
    )
    assert [each.duty for each in both.samples] == [200, 300]


def test_pods_that_share_a_gpu_are_told_each():
    shared = read_of(
        line("DCGM_FI_DEV_FB_USED", "100", Hostname="b", namespace="ml", pod="other"),
        line("DCGM_FI_DEV_FB_USED", "200", Hostname="b"),
        node="b",
    )
    assert [(each.pod, each.memory_used_mib) for each in shared.samples] == [
        ("uid-other", 100),
        ("", 200),
    ]
    assert {each.sharing for each in shared.samples} == {"time-slicing"}


def test_labels_that_prometheus_exported_go_before_those_of_the_exporter():
    exporter = {"namespace": "gpu-operator", "pod": "dcgm-x"}
    exported = exporter | {"exported_namespace": "ml", "exported_pod": "chat"}
    assert only(line("DCGM_FI_DEV_FB_USED", "1", **exported)).pod == "uid-chat"
    assert not only(line("DCGM_FI_DEV_FB_USED", "1", **exporter)).pod


@pytest.mark.parametrize("name", ["b", "host-b", "evil", "A"])
def test_a_series_of_another_node_is_left_out_and_counted(name: str):
    found = read_of(line("DCGM_FI_DEV_FB_USED", "1", Hostname=name))
    assert (found.samples, found.foreign) == ([], 1)


@pytest.mark.parametrize(
    "labels",
    [
        {"Hostname": "host-a"},
        {"Hostname": "dcgm-x"},
        {"Hostname": ""},
        {"Hostname": "", "node": "a"},
    ],
)
def test_a_node_may_be_called_by_its_host_name_or_that_of_the_exporter(labels: dict[str, str]):
    assert only(line("DCGM_FI_DEV_FB_USED", "1", **labels)).node == "a"


LONG = "ip-10-0-0-1.ec2.internal"
SCRAPED = Known(
    (wire_node(LONG), wire_node("ip-10-0-0-2")),
    (
        a_pod("train-0", LONG),
        a_pod("dcgm-x", LONG, owner=Owner(kind="DaemonSet", name="dcgm", uid="uid-dcgm")),
        a_pod("twin", LONG, owner=Owner(kind="DaemonSet", name="a", uid="uid-a")),
        a_pod("twin", "ip-10-0-0-2", owner=Owner(kind="DaemonSet", name="a", uid="uid-a")),
    ),
)
EXPORTED = {"exported_namespace": "ml", "exported_pod": "train-0"}


def scraped(**labels: str) -> Read:
    """Return what a series tells that came through Prometheus."""
    said = Series(metric="DCGM_FI_DEV_FB_USED", labels={"UUID": "GPU-0", **labels}, value=1)
    return gpu_samples([said], SCRAPED, SCRAPED.names, None)


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"Hostname": "dcgm-x", "namespace": "gpu-operator", "pod": "dcgm-x"}, LONG),
        ({"Hostname": "dcgm-x", "namespace": "ml", "pod": "train-0"}, LONG),
        ({"Hostname": "dcgm-x", "instance": "10.0.0.1:9400"}, LONG),
        ({"Hostname": "gone", "instance": "10.0.0.1:9400"}, LONG),
        ({"Hostname": "gone", "instance": f"{LONG}:9400"}, LONG),
        ({"Hostname": "gone", "node": LONG}, LONG),
        ({"Hostname": "ip-10-0-0-1"}, LONG),
        ({"Hostname": "ip-10-0-0-2.ec2.internal"}, "ip-10-0-0-2"),
        ({"Hostname": "ip-10-0-0-1.eu-west-1.compute.internal"}, None),
        ({"Hostname": "twin", "pod": "twin"}, None),
        ({"Hostname": "train-0", "pod": "train-0"}, None),
        ({"Hostname": "gone", "pod": "gone", "instance": "10.1.2.3:9400"}, None),
        ({"Hostname": "dcgm-x", "node": "ip-10-0-0-2"}, None),
    ],
)
def test_through_prometheus_the_labels_of_the_target_lead_to_the_node(
    labels: dict[str, str], node: str | None
):
    found = scraped(**labels, **EXPORTED)
    assert [each.node for each in found.samples] == ([] if node is None else [node])
    assert found.foreign == (node is None)
    if node == LONG:
        assert found.samples[0].pod == "uid-train-0"


def test_of_a_short_name_that_two_nodes_share_nothing_is_told():
    known = Known((wire_node("a.one"), wire_node("a.two")), ())
    said = Series(metric="DCGM_FI_DEV_FB_USED", labels={"UUID": "G", "Hostname": "a"}, value=1)
    assert gpu_samples([said], known, known.names, None).foreign == 1


def test_a_pod_of_another_node_is_not_believed_to_have_a_gpu_here():
    assert not only(line("DCGM_FI_DEV_FB_USED", "1", namespace="ml", pod="other")).pod


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1.1", "9e99"])
def test_a_share_that_cannot_be_is_not_believed(value: str):
    assert read_of(line("DCGM_FI_PROF_SM_ACTIVE", value)).samples == []


def test_a_value_that_the_driver_left_blank_is_none():
    assert read_of(line("DCGM_FI_DEV_FB_USED", "9223372036854775794")).samples == []


def test_of_a_series_that_is_there_twice_the_largest_value_counts():
    twice = line("DCGM_FI_DEV_FB_USED", "1"), line("DCGM_FI_DEV_FB_USED", "5")
    assert only(*twice).memory_used_mib == 5


@pytest.mark.parametrize(
    "body",
    [
        b'DCGM_FI_DEV_FB_USED{UUID="a",UUID="b"} 1\n',
        b'DCGM_FI_DEV_FB_USED{UUID="a} 1\n',
        b"DCGM_FI_DEV_FB_USED{} x\n",
        b"DCGM_FI_DEV_FB_USED{\n",
        b"\xff\xfe",
    ],
)
def test_what_is_no_text_of_metrics_is_refused_whole(body: bytes):
    with pytest.raises(Temporary):
        list(series_of(body))


def test_no_more_series_are_read_than_a_node_may_have():
    lines = [line("DCGM_FI_DEV_FB_USED", "1", UUID=f"GPU-{n}") for n in range(MOST_SERIES + 9)]
    assert len(read_of(*lines).samples) == MOST_SERIES


def test_labels_that_are_too_long_or_missing_cost_their_own_series_only():
    found = read_of(
        line("DCGM_FI_DEV_FB_USED", "1", modelName="x" * 300),
        line("DCGM_FI_DEV_FB_USED", "1", UUID=""),
        line("DCGM_FI_DEV_FB_USED", "1", UUID="GPU-1"),
    )
    assert ([each.gpu for each in found.samples], found.foreign) == (["GPU-1"], 2)


@pytest.mark.parametrize(
    "unit",
    [
        '\\"',
        "\\\\",
        '",a="',
        '",,',
        " ",
        '"}{"',
        "\\",
        '"',
        ",",
        "=",
        "1",
        "\n",
        '\\"' * 1000 + "\nDCGM",
    ],
)
def test_no_text_of_a_megabyte_takes_a_second_to_read(unit: str):
    start = 'DCGM_FI_DEV_FB_USED{UUID="'
    body = (start + unit * ((2**20 - len(start)) // len(unit))).encode()
    lines = f"{start}{(unit * LONGEST_LINE)[: LONGEST_LINE - 40]}\n".encode() * 256
    begun = process_time()
    for each in (body, body + b'"} 1\n', lines):
        with suppress(Temporary):
            list(series_of(each))
    assert process_time() - begun < 1


def test_a_line_that_is_too_long_costs_its_own_series_and_is_counted():
    found = read_of(
        line("DCGM_FI_DEV_FB_USED", "1", label_pod='\\"' * LONGEST_LINE),
        line("DCGM_FI_DEV_FB_USED", "1", UUID="GPU-1"),
    )
    assert ([each.gpu for each in found.samples], found.foreign) == (["GPU-1"], 1)


def test_escapes_stand_for_what_the_format_says():
    (found,) = series_of(rb'DCGM_FI_DEV_FB_USED{a="\\\"\n\x",b = "",} +Inf 1700000000' + b"\r\n")
    assert (found.labels, found.value) == ({"a": '\\"\n\\x', "b": ""}, inf)


@given(
    st.dictionaries(
        st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,8}", fullmatch=True),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        max_size=5,
    ),
    st.floats(allow_nan=False),
)
def test_what_an_exporter_writes_is_read_back(labels: dict[str, str], value: float):
    exporter = CollectorRegistry()
    gauge = Gauge("DCGM_FI_DEV_FB_USED", "", [*labels], registry=exporter)
    (gauge.labels(*labels.values()) if labels else gauge).set(value)
    assert list(series_of(generate_latest(exporter))) == [
        Series(metric="DCGM_FI_DEV_FB_USED", labels=labels, value=value)
    ]


WORDS = st.text(max_size=300)
LABELS = st.dictionaries(
    st.sampled_from(["UUID", "Hostname", "GPU_I_ID", "GPU_I_PROFILE", "pod", "modelName", "node"]),
    WORDS | st.sampled_from(["a", "b", "chat"]),
)


@given(
    st.lists(
        st.builds(
            Series, metric=st.sampled_from(sorted(COUNTERS)), labels=LABELS, value=st.floats()
        )
    )
)
def test_whatever_series_say_the_wire_takes_what_is_made_of_them(series: list[Series]):
    found = gpu_samples(series, KNOWN, KNOWN.names, None).samples
    told = msgspec.json.decode(msgspec.json.encode(found), type=list[GpuSample])
    assert told == found
    assert len({(s.node, s.gpu, s.instance_id, s.pod) for s in found}) == len(found)


@pytest.mark.parametrize(
    "labels",
    [
        {"GPU_I_PROFILE": "1g.10gb; reboot", "GPU_I_ID": "7"},
        {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": "\x1b]52;c;\x07"},
        {"UUID": "GPU-1 && reboot"},
        {"UUID": "<script>"},
    ],
)
def test_a_label_that_is_no_name_costs_its_series_and_is_counted(labels: dict[str, str]):
    series = Series(
        metric="DCGM_FI_DEV_FB_USED",
        labels={"UUID": "GPU-1", "Hostname": "a", "modelName": "H200"} | labels,
        value=1,
    )
    found = gpu_samples([series], KNOWN, KNOWN.names, "a")
    assert (found.samples, found.foreign) == ([], 1)
