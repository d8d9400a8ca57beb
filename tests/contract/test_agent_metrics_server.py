"""The agent's one port: whoever is silent, slow or many keeps neither the kubelet nor Prometheus waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from http.client import RemoteDisconnected
from socket import create_connection, socket
from threading import active_count
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll_agent import metrics_server
from plimsoll_agent.metrics_server import MOST_CONNECTIONS, MetricsServer, serve
from plimsoll_agent.output import Output


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    found = serve(Output(SystemClock()).registry, 0, lambda: True)
    yield found
    found.shutdown()
    found.server_close()


def ask(server: MetricsServer, path: str) -> tuple[int, str, str]:
    with urlopen(f"http://127.0.0.1:{server.server_address[1]}{path}", timeout=2) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def open_to(server: MetricsServer) -> socket:
    return create_connection(("127.0.0.1", server.server_address[1]), timeout=5)


def test_it_serves_health_and_metrics(server):
    assert ask(server, "/healthz") == (200, "text/plain", "ok\n")
    status, kind, body = ask(server, "/metrics?x=1")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    assert "plimsoll_agent_spooled_snapshots 0.0" in body


def test_an_agent_that_hangs_says_so(server):
    server.healthy = lambda: False
    with pytest.raises(HTTPError, match="503"):
        ask(server, "/healthz")


def test_a_silent_connection_keeps_nobody_waiting(server):
    with open_to(server), open_to(server) as half:
        half.sendall(b"GET /healthz HT")
        assert ask(server, "/healthz")[0] == 200


def test_a_silent_connection_is_closed(server, monkeypatch):
    monkeypatch.setattr(metrics_server._Handler, "timeout", 0.2)
    with open_to(server) as silent:
        assert silent.recv(1) == b""


def test_however_many_connections_are_held_open_health_is_answered_and_threads_stay_few(server):
    before = active_count()
    with ExitStack() as held:
        for _ in range(5 * MOST_CONNECTIONS):
            held.enter_context(open_to(server)).sendall(b"G")
        assert ask(server, "/healthz")[0] == 200
        until = monotonic() + 5
        while active_count() > before + MOST_CONNECTIONS and monotonic() < until:
            sleep(0.05)
        assert active_count() <= before + MOST_CONNECTIONS


def test_a_peer_that_goes_is_no_fault_and_a_fault_is_told(server, capsys):
    open_to(server).close()
    ask(server, "/healthz")
    assert capsys.readouterr().err == ""

    def fail() -> bool:
        raise ZeroDivisionError

    server.healthy = fail
    with pytest.raises(RemoteDisconnected):
        ask(server, "/healthz")
    assert "ZeroDivisionError" in capsys.readouterr().err
