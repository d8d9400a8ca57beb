"""Whom the agent asks of GPUs, and what a hostile answer costs: itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from time import monotonic, process_time
from typing import Any, override
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import BadInput, Temporary
from plimsoll_agent import gpu_metrics
from plimsoll_agent.cluster_reader import ClusterReader
from plimsoll_agent.gpu_metrics import GpuMetrics, Target, fetched, targets_of
from plimsoll_agent.objects import Endpoints, Exporter
from plimsoll_agent.snapshots import full_snapshot
from plimsoll_agent.workloads import Owning
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.gpu import MOST_SAMPLES
from tests.support.builders import NOON, node_json, pod_json, pod_spec_json
from tests.support.cli_environment import StillClock
from tests.support.snapshots import wire_workload
from tests.unit.agent.test_snapshots import Listed, an_object

SERVICE = ("gpu-operator", "dcgm")
USED = 'DCGM_FI_DEV_FB_USED{UUID="GPU-0",Hostname="%s",namespace="shop",pod="chat"} %d\n'

type Answer = Callable[[BaseHTTPRequestHandler], None]


def answering(body: bytes, status: int = 200) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


@contextmanager
def serving(answer: Answer) -> Iterator[int]:
    """Answer each request on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        @override
        def handle_error(self, request: Any, client_address: Any) -> None:
            """The agent hangs up on those who go on."""

    server = Server(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def fetched_from(answer: Answer, *, seconds: float = 0.5, most: int = 1000) -> bytes:
    with serving(answer) as port:
        connection = HTTPConnection("127.0.0.1", port, timeout=seconds)
        return fetched(connection, "/metrics", seconds=seconds, most=most)


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(b"x" * 2**16)


def dripping(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "900")
    request.end_headers()
    for _ in range(900):
        request.wfile.write(b"x")
        request.wfile.flush()
        Event().wait(0.1)


def dripping_headers(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(900):
        request.wfile.write(b"x")
        request.wfile.flush()
        Event().wait(0.1)


def silent(request: BaseHTTPRequestHandler) -> None:
    Event().wait(3)


def redirecting(request: BaseHTTPRequestHandler) -> None:
    request.send_response(302)
    request.send_header("Location", "http://169.254.169.254/latest/meta-data")
    request.end_headers()


def cut_off(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "900")
    request.end_headers()
    request.wfile.write(b"DCGM")


def in_pieces(request: BaseHTTPRequestHandler) -> None:
    request.protocol_version = "HTTP/1.1"
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.wfile.write(b"1\r\nx\r\n" * 900 + b"0\r\n\r\n")


def test_an_answer_is_read_whole():
    assert fetched_from(answering(b"x" * 1000)) == b"x" * 1000


@pytest.mark.parametrize(
    "answer",
    [
        answering(b"x" * 1001),
        answering(b"no", 500),
        endless,
        dripping,
        dripping_headers,
        silent,
        redirecting,
        cut_off,
        in_pieces,
    ],
    ids=[
        "large",
        "fault",
        "endless",
        "drips",
        "drips headers",
        "silent",
        "redirects",
        "cut off",
        "in pieces",
    ],
)
def test_an_answer_that_is_too_large_too_slow_or_no_answer_is_given_up_in_time(answer: Answer):
    begun = monotonic()
    with pytest.raises(Temporary):
        fetched_from(answer)
    assert monotonic() - begun < 3


# Whom to ask.


def an_exporter(**changes: Any) -> Exporter:
    facts: dict[str, Any] = {
        "uid": "uid-x",
        "name": "dcgm-x",
        "node": "node-1",
        "daemon_set": "uid-dcgm",
        "addresses": ("10.0.0.7",),
        "ports": (9400,),
    }
    return Exporter(**facts | changes)


def endpoints(address: str = "10.0.0.7", uid: str = "uid-x", **changes: Any) -> Endpoints:
    facts: dict[str, Any] = {
        "namespace": "gpu-operator",
        "service": "dcgm",
        "ready": 1,
        "addresses": ((uid, address),),
        "ports": (9400,),
    }
    return Endpoints(**facts | changes)


DAEMON_SET = Owning(
    wire_workload("dcgm", kind="DaemonSet", namespace="gpu-operator", uid="uid-dcgm"), {}
)


def targets(told: Endpoints, exporter: Exporter, controller: Owning = DAEMON_SET) -> list[Target]:
    return targets_of(SERVICE, [told], [exporter, None], [controller])


def test_a_pod_of_the_daemon_set_is_asked_at_its_own_address_and_port():
    assert targets(endpoints(), an_exporter()) == [Target("node-1", "dcgm-x", "10.0.0.7", 9400)]


@pytest.mark.parametrize(
    ("told", "exporter"),
    [
        (endpoints("10.0.0.8"), an_exporter()),
        (endpoints(uid="uid-y"), an_exporter()),
        (endpoints(ports=(10250,)), an_exporter()),
        (endpoints(ports=()), an_exporter()),
        (endpoints(service="other"), an_exporter()),
        (endpoints(namespace="shop"), an_exporter()),
        (endpoints(), an_exporter(daemon_set="uid-of-a-tenant")),
        (endpoints(), an_exporter(node="")),
        *(
            (endpoints(address), an_exporter(addresses=(address,)))
            for address in (
                "127.0.0.1",
                "::1",
                "169.254.169.254",
                "fe80::1",
                "fd00:ec2::254",
                "::ffff:127.0.0.1",
                "0.0.0.0",
                "224.0.0.1",
                "metadata",
            )
        ),
    ],
)
def test_nobody_else_is_asked_whatever_endpoints_say(told: Endpoints, exporter: Exporter):
    assert targets(told, exporter) == []


def test_a_daemon_set_of_another_namespace_vouches_for_nobody():
    foreign = Owning(wire_workload("x", kind="DaemonSet", namespace="shop", uid="uid-dcgm"), {})
    assert targets(endpoints(), an_exporter(), foreign) == []
    deployment = Owning(wire_workload("x", namespace="gpu-operator", uid="uid-dcgm"), {})
    assert targets(endpoints(), an_exporter(), deployment) == []


# A cluster.


class Heard:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.counts: dict[str, int] = {}

    def gpus_read(self, **counts: int) -> None:
        self.counts = counts


def a_pod_that_listens(name: str, node: str, port: int) -> Any:
    pod = pod_json(name, namespace="gpu-operator", node=node, owner=("DaemonSet", "dcgm"))
    pod["metadata"]["ownerReferences"][0]["uid"] = "uid-dcgm"
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": port}]
    pod["status"]["podIPs"] = [{"ip": "127.0.0.1"}]
    return pod


def a_gpu_pod() -> Any:
    pod = pod_json("chat", namespace="shop", node="node-1")
    pod["metadata"]["labels"]["pod-template-hash"] = "abc"
    container = pod["spec"]["containers"][0]
    container["resources"]["limits"] = container["resources"]["requests"] = {"nvidia.com/gpu": "2"}
    return pod


def a_cluster(*ports: int) -> Listed:
    pods = [a_pod_that_listens(f"dcgm-{n}", f"node-{n}", p) for n, p in enumerate(ports, 1)]
    daemon_set = {"template": {"metadata": {}, "spec": pod_spec_json()}, "selector": {}}
    slices = [
        an_object(
            f"dcgm-{number}",
            namespace="gpu-operator",
            labels={"kubernetes.io/service-name": "dcgm"},
            ports=[{"name": "gpu-metrics", "port": port, "protocol": "TCP"}],
            endpoints=[
                {
                    "addresses": ["127.0.0.1"],
                    "conditions": {"ready": True},
                    "targetRef": {"kind": "Pod", "uid": pod["metadata"]["uid"]},
                }
            ],
        )
        for number, (pod, port) in enumerate(zip(pods, ports, strict=True))
    ]
    return Listed(
        nodes=[node_json("node-1"), node_json("node-2")],
        pods=[*pods, a_gpu_pod()],
        namespaces=[],
        daemonsets=[an_object("dcgm", namespace="gpu-operator", spec=daemon_set, status={})],
        endpointslices=slices,
    )


def snapshot_of(server: Listed, source: str) -> tuple[wire.Snapshot, Heard]:
    heard = Heard()
    clock = StillClock(NOON)
    workers = ThreadWorkers(4)
    gpus = GpuMetrics(
        source=source, clock=clock, workers=workers, measures=heard, warn=heard.said.append
    )
    requests = Requests(transport=server, cluster="harbor")
    reader = ClusterReader(requests, workers, clock, lambda _: None, gpus)
    seen = reader.read()
    workers.close()
    found = full_snapshot(seen, cluster_id="harbor", epoch="e", sequence=1, now=NOON)
    return wire.decode(wire.encode(found)), heard


@pytest.fixture
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let exporters be on this machine, as those of a test are."""
    monkeypatch.setattr(gpu_metrics, "_may_be_asked", lambda _: True)


@pytest.mark.usefixtures("_near")
def test_each_exporter_tells_of_its_own_node_and_one_that_fails_is_counted():
    told = (USED % ("node-1", 7)).encode() + (USED % ("node-2", 9)).encode()
    with serving(answering(told)) as good, serving(silent) as bad:
        found, heard = snapshot_of(a_cluster(good, bad), "gpu-operator/dcgm")
    pod = next(each for each in found.pods if each.name == "chat")
    assert (pod.gpus, pod.template) == ({"nvidia.com/gpu": 2}, "abc")
    assert [(s.node, s.pod, s.memory_used_mib) for s in found.gpus] == [("node-1", pod.uid, 7)]
    assert heard.counts == {"answered": 1, "asked": 2, "left_out": 0}
    assert "GPU metrics: 1 of 2 nodes answered" in heard.said
    assert any("DCGM_FI_PROF_SM_ACTIVE, gauge, The ratio" in line for line in heard.said)


@pytest.mark.usefixtures("_near")
def test_the_text_of_a_hostile_exporter_delays_no_other_node():
    hostile = b'DCGM_FI_DEV_FB_USED{UUID="' + rb"\"" * (2**19 - 40) + b'"} 1\n'
    with (
        serving(answering(hostile)) as bad,
        serving(answering((USED % ("node-2", 9)).encode())) as good,
    ):
        begun = process_time()
        found, heard = snapshot_of(a_cluster(bad, good), "gpu-operator/dcgm")
        spent = process_time() - begun
    assert [(s.node, s.memory_used_mib) for s in found.gpus] == [("node-2", 9)]
    assert heard.counts["answered"] == 2
    assert spent < 2, "the whole snapshot, in seconds of processor"


@pytest.mark.usefixtures("_near")
def test_of_too_many_gpus_of_a_node_those_that_a_pod_has_are_told_and_the_rest_is_counted():
    idle = "".join(
        f'DCGM_FI_DEV_FB_USED{{UUID="GPU-{n}",Hostname="node-1"}} 1\n' for n in range(1, 300)
    )
    with serving(answering(f"{idle}{USED % ('node-1', 5)}".encode())) as port:
        found, heard = snapshot_of(a_cluster(port), "gpu-operator/dcgm")
    assert (len(found.gpus), found.gpus_left_out) == (256, 44)
    assert found.gpus[0].pod
    assert heard.counts["left_out"] == 44


def test_nobody_is_asked_where_the_owner_names_nobody():
    server = a_cluster(9400)
    reader = ClusterReader(
        Requests(transport=server, cluster="harbor"), ThreadWorkers(1), StillClock(NOON), print
    )
    assert reader.read().gpus.samples == []


# A Prometheus.


def vector(*series: dict[str, str], value: str = "5") -> bytes:
    result = [{"metric": each, "value": [1.5, value]} for each in series]
    return msgspec.json.encode({"status": "success", "data": {"result": result}})


def prometheus(tells: dict[str, bytes]) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        asked = parse_qs(urlsplit(request.path).query)["query"][0]
        metric = asked.rpartition("(")[2].rstrip(")")
        answering(tells.get(metric, vector()))(request)

    return answer


def test_a_prometheus_is_asked_once_for_each_metric():
    of = {"UUID": "GPU-0", "Hostname": "node-1", "namespace": "shop", "pod": "chat"}
    stranger = of | {"Hostname": "elsewhere"}
    tells = {
        "DCGM_FI_DEV_FB_USED": vector(of, stranger, value="900"),
        "DCGM_FI_DEV_GPU_UTIL": vector(of, value="NaN"),
    }
    with serving(prometheus(tells)) as port:
        found, heard = snapshot_of(a_cluster(), f"http://127.0.0.1:{port}")
    (sample,) = found.gpus
    assert (sample.node, sample.memory_used_mib, sample.duty) == ("node-1", 900, None)
    assert sample.pod == next(each.uid for each in found.pods if each.name == "chat")
    assert heard.counts == {"answered": 1, "asked": 1, "left_out": 0}


@pytest.mark.parametrize("body", [b"<html>", b"{}", vector({"UUID": "x"}, value="x"), b"\xff"])
def test_a_prometheus_that_answers_something_else_costs_its_metrics_only(body: bytes):
    with serving(answering(body)) as port:
        found, heard = snapshot_of(a_cluster(), f"http://127.0.0.1:{port}")
    assert (found.gpus, len(found.nodes)) == ((), 2)
    assert heard.counts == {"answered": 0, "asked": 1, "left_out": 0}


def test_more_gpus_than_a_snapshot_holds_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu_metrics, "MOST_SAMPLES", 3)
    assert MOST_SAMPLES == 16_000
    many = [{"UUID": f"GPU-{n}", "Hostname": "node-1"} for n in range(5)]
    with serving(prometheus({"DCGM_FI_DEV_FB_USED": vector(*many)})) as port:
        found, _ = snapshot_of(a_cluster(), f"http://127.0.0.1:{port}")
    assert (len(found.gpus), found.gpus_left_out) == (3, 2)


@pytest.mark.parametrize("source", ["dcgm", "ftp://x", "http://", "a/b/c", "http://[", "A/b"])
def test_a_source_that_is_none_is_refused(source: str):
    with pytest.raises(BadInput):
        GpuMetrics(
            source=source,
            clock=StillClock(NOON),
            workers=ThreadWorkers(1),
            measures=Heard(),
            warn=print,
        )
