"""Every PromQL of the boards, run by a real Prometheus on what the agent's own port serves."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll_agent.metrics_server import serve
from plimsoll_agent.output import Output
from plimsoll_batch.domain.overview import QueueOverview, QuotaUse, Wait
from plimsoll_cli.batch.list_queues import metrics
from plimsoll_testbed.rigs.supervised import SupervisedProcess, free_port, listens
from tests.package.test_boards import promql

ROOT = Path(__file__).parents[2]
SECONDS_TO_START = 60
SCRAPES = 4
VARIABLES = {"$__rate_interval": "1m", "$cluster": ".*"}
CONFIGURATION = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: agent
    static_configs: [{{targets: ["127.0.0.1:{agent}"], labels: {{cluster: harbor}}}}]
  - job_name: another
    static_configs: [{{targets: ["127.0.0.1:{prometheus}"]}}]
  - job_name: textfile
    static_configs: [{{targets: ["127.0.0.1:{queues}"], labels: {{cluster: harbor}}}}]
"""
QUEUE = QueueOverview(
    name="lab",
    cohort=None,
    stopped=False,
    quotas=[
        QuotaUse(flavor="any", resource="cpu", quota=2000, most=4000, used=3000, borrowed=1000)
    ],
    share=500,
    running=1,
    waiting={Wait.NODES: 2},
    preempted=1,
    longest_seconds=60,
)

looked = subprocess.run(
    [ROOT / "infra/local/prometheus.sh", "--path"], capture_output=True, text=True, check=False
)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(looked.returncode != 0, reason=looked.stderr.strip()),
]


class TextFile(BaseHTTPRequestHandler):
    """What a node exporter serves of the file that `plimsoll queues list` wrote."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write("".join(f"{line}\n" for line in metrics([QUEUE])).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


def a_busy_agent() -> Output:
    """Something was sent, dropped, refused, answered and seen of GPUs."""
    output = Output(SystemClock())
    output.spooled(2, 4096)
    output.gpus_read(answered=1, asked=3, left_out=2)
    output.gpu_alerts(1)
    return do_more(output)


def do_more(output: Output) -> Output:
    output.taken(full=True, size=2048)
    output.sent(2048)
    output.dropped("spool full")
    output.failed("send")
    output.answered("drain", "done")
    return output


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus that has scraped the agent, the queues, and itself."""
    folder = tmp_path_factory.mktemp("prometheus")
    output = a_busy_agent()
    agent = serve(output.registry, 0, lambda: True)
    queues = ThreadingHTTPServer(("127.0.0.1", 0), TextFile)
    Thread(target=queues.serve_forever, daemon=True).start()
    port = free_port()
    ports = {"agent": agent.server_port, "queues": queues.server_port, "prometheus": port}
    (folder / "prometheus.yml").write_text(CONFIGURATION.format(**ports))
    server = SupervisedProcess(
        name="prometheus",
        command=[
            looked.stdout.strip(),
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        folder=folder,
        log=folder / "prometheus.log",
    )
    server.start()
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: listens(port), server)
        for scrapes in range(1, SCRAPES):
            # What is counted grows between scrapes: else every rate would be zero.
            until(lambda at_least=scrapes: scraped(address) >= at_least, server)
            do_more(output)
        until(lambda: scraped(address) >= SCRAPES, server)
        yield address
    finally:
        server.end()
        for each in (agent, queues):
            each.shutdown()
            each.server_close()


def until(holds: Any, server: SupervisedProcess) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while not holds():
        assert not server.ended, server.tail()
        assert time.monotonic() < deadline, server.tail()
        time.sleep(0.2)


def scraped(address: str) -> int:
    """How often each port was scraped, at least."""
    found = asked(address, "min(count_over_time(up[5m]) * on (job) (up == 1))")
    return int(float(found[0]["value"][1])) if found else 0


def asked(address: str, query: str) -> list[Any]:
    words = urlencode({"query": query})
    with urlopen(f"{address}/api/v1/query?{words}", timeout=30) as answer:
        told = json.load(answer)
    assert told["status"] == "success", told
    found: list[Any] = told["data"]["result"]
    return found


QUERIES = [*promql("agent"), *promql("queues")]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_finds_what_the_ports_serve_of_this_cluster_alone(prometheus: str, query: str):
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    found = asked(prometheus, query)
    assert {series["metric"]["cluster"] for series in found} == {"harbor"}
    assert all(float(series["value"][1]) > 0 for series in found)
