"""`metrics.k8s.io` with constant values, so that HorizontalPodAutoscalers hold and release.

Every container that runs uses the same share of what it requests, a tenth, or what its pod's
annotation `drill.plimsoll.dev/usage` says (`70%`). With a tenth an autoscaler rests at its minimum and
comes back to it; with its target it stays where it is.

Served over HTTPS to the API server's aggregation layer, under the API server's own certificate.

Source: https://github.com/kubernetes/metrics, pkg/apis/metrics/v1beta1.
Left out: nodes, watches, authentication (it listens on loopback).
"""

from __future__ import annotations

import json
import re
import ssl
import sys
import threading
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, override
from urllib.parse import parse_qs, urlsplit

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import matches, parse_labels, parse_quantity
from plimsoll_simulation.fake_cluster.conditions import is_finished
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.pod_annotations import USAGE
from plimsoll_simulation.fake_cluster.stamps import stamp
from plimsoll_testbed.rigs.controlplane.fake_kubelets.loop import Loop, Write

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
USED: Final = "10%"
_PERCENT: Final = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?)%")
_ROOT: Final = f"/apis/{GROUP}/{VERSION}"
_NAME: Final = "metrics"
_NAMESPACE: Final = "kube-system"
_WINDOW: Final = "1s"
"""The controller waits for a whole window after a pod is Ready before it believes its figures."""
_OK, _NOT_FOUND = 200, 404


class Metrics:
    """What pods use, and the server that tells it.

    Args:
        loop: for the time, and to register the server.
        certificates: the folder with apiserver.crt and apiserver.key.
    """

    def __init__(self, loop: Loop, certificates: Path) -> None:
        self._loop = loop
        self._pods: dict[tuple[str, str], Json] = {}
        self._lock = threading.Lock()
        answer = self.answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, body = answer(self.path)
                said = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            @override
            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: the API server asks all the time."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def start(self) -> None:
        """Serve, and let the API server know where."""
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        port = self._server.server_address[1]
        service = {
            "metadata": {"name": _NAME},
            # The aggregation layer goes where a name points; addresses of loopback it refuses.
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        registration = {
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"namespace": _NAMESPACE, "name": _NAME, "port": port},
            },
        }
        for path, body in (
            (f"/api/v1/namespaces/{_NAMESPACE}/services", service),
            ("/apis/apiregistration.k8s.io/v1/apiservices", registration),
        ):
            self._loop.write(Write(method="POST", path=path, body=body))

    def pod(self, change: str, pod: Json) -> None:
        """Take note of a pod; one that says no usage that can be read has no figures."""
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        try:
            _share(pod)
        except BadInput as error:
            sys.stderr.write(f"pod {'/'.join(key)}: {error}\n")
            return
        with self._lock:
            if change == "DELETED":
                self._pods.pop(key, None)
            else:
                self._pods[key] = pod

    def answer(self, target: str) -> tuple[int, Json]:
        """Return status and body for a GET."""
        url = urlsplit(target)
        match url.path.removeprefix(_ROOT).strip("/").split("/"):
            case [""]:
                return _OK, _discovery()
            case ["pods"]:
                return _OK, self._list(None, url.query)
            case ["namespaces", namespace, "pods"]:
                return _OK, self._list(namespace, url.query)
            case ["namespaces", namespace, "pods", name]:
                with self._lock:
                    pod = self._pods.get((namespace, name))
                if pod is not None and _runs(pod):
                    return _OK, _usage(pod, self._loop.now())
            case _:
                pass
        return _NOT_FOUND, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}

    def _list(self, namespace: str | None, query: str) -> Json:
        selector = parse_labels(parse_qs(query).get("labelSelector", [""])[0])
        now = self._loop.now()
        with self._lock:
            pods: Sequence[Json] = list(self._pods.values())
        items = [
            _usage(pod, now)
            for pod in pods
            if namespace in {None, pod["metadata"]["namespace"]}
            and matches(selector, look(pod, "metadata", "labels", default={}))
            and _runs(pod)
        ]
        return {**_kind("PodMetricsList"), "metadata": {}, "items": items}


def _runs(pod: Json) -> bool:
    return look(pod, "status", "phase") == "Running" and not is_finished(pod)


def _usage(pod: Json, now: datetime) -> Json:
    meta, share = pod["metadata"], _share(pod)
    containers = [
        {
            "name": container["name"],
            "usage": {
                "cpu": f"{round(parse_quantity(requests.get('cpu', '0')) * share * 1000)}m",
                "memory": f"{round(parse_quantity(requests.get('memory', '0')) * share)}",
            },
        }
        for container in pod["spec"]["containers"]
        for requests in [look(container, "resources", "requests", default={})]
    ]
    return {
        **_kind("PodMetrics"),
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": meta.get("labels", {}),
            "creationTimestamp": stamp(now),
        },
        "timestamp": stamp(now),
        "window": _WINDOW,
        "containers": containers,
    }


def _share(pod: Json) -> Decimal:
    """Return which share of its requests a pod uses.

    Raises:
        BadInput: the annotation is no percentage.
    """
    text = str(look(pod, "metadata", "annotations", default={}).get(USAGE, USED))
    shape = _PERCENT.fullmatch(text)
    if shape is None:
        raise BadInput(f"{USAGE}: {text!r} is no percentage; write for example 70%")
    return Decimal(shape[1]) / 100


def _kind(kind: str) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": f"{GROUP}/{VERSION}"}


def _discovery() -> Json:
    pods = {
        "name": "pods",
        "singularName": "",
        "namespaced": True,
        "kind": "PodMetrics",
        "verbs": ["get", "list"],
    }
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{VERSION}",
        "resources": [pods],
    }
