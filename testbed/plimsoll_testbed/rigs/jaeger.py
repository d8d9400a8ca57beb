"""Jaeger, as it is released, with its traces in memory: takes OTLP over HTTP, and answers searches.

It listens on loopback alone. The Go module has no pages of its UI, so only its API is served.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Self, override

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.controlplane.builds import built
from plimsoll_testbed.rigs.supervised import SupervisedProcess, free_port, start_on_free_ports

NAME: Final = "jaeger"
READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_STORE: Final = "memory"


class Jaeger(AbstractContextManager["Jaeger"]):
    """A Jaeger, while its block lasts."""

    def __init__(self) -> None:
        self._folder = Path()
        self._process: SupervisedProcess | None = None
        self._otlp = self._query = 0

    @override
    def __enter__(self) -> Self:
        """Build it where that was not done yet, start it, and wait until it answers.

        Raises:
            Refused: it cannot be built, or does not start.
        """
        _, program = built(NAME)
        self._folder = Path(tempfile.mkdtemp(prefix="plimsoll-jaeger-"))
        start_on_free_ports(lambda: self._start(program), self._stop)
        return self

    @override
    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stop it."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def traces_url(self) -> str:
        """Where OTLP/HTTP takes traces."""
        return f"http://127.0.0.1:{self._otlp}/v1/traces"

    def search(self, service: str, tags: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """Return the traces of a service with a span that has all these tags, as Jaeger's page would get them."""
        asked = urllib.parse.urlencode(
            {"service": service, "tags": json.dumps(dict(tags)), "limit": "100"}
        )
        found: Sequence[Mapping[str, Any]] = self._get(f"/api/traces?{asked}")["data"]
        return found

    def _start(self, program: Path) -> None:
        self._otlp, self._query = free_port(), free_port()
        settings = self._folder / "jaeger.json"
        settings.write_text(json.dumps(self._settings()), encoding="utf-8")
        self._process = SupervisedProcess(
            name=NAME,
            command=[program, "--config", f"file:{settings}"],
            folder=self._folder,
            log=self._folder / f"{NAME}.log",
        )
        self._process.start()
        end = time.monotonic() + READY_SECONDS
        while not self._answers():
            if self._process.ended or time.monotonic() > end:
                raise Refused(f"{NAME} does not start:\n{self._process.tail()}")
            time.sleep(_POLL_SECONDS)

    def _stop(self) -> None:
        if self._process is not None:
            self._process.end(by_force=True)

    def _answers(self) -> bool:
        try:
            self._get("/api/services")
        except urllib.error.URLError:
            return False
        return True

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._query}{path}", timeout=10) as answer:
            return json.load(answer)

    def _settings(self) -> Mapping[str, Any]:
        """Return its configuration; YAML, of which JSON is a part."""
        return {
            "service": {
                "extensions": ["jaeger_storage", "jaeger_query"],
                "pipelines": {
                    "traces": {"receivers": ["otlp"], "exporters": ["jaeger_storage_exporter"]}
                },
                "telemetry": {"metrics": {"level": "none"}},
            },
            "extensions": {
                "jaeger_storage": {"backends": {_STORE: {_STORE: {"max_traces": 1000}}}},
                "jaeger_query": {
                    "storage": {"traces": _STORE},
                    "http": {"endpoint": f"127.0.0.1:{self._query}"},
                    "grpc": {"endpoint": f"127.0.0.1:{free_port()}"},
                },
            },
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{self._otlp}"}}}},
            "exporters": {"jaeger_storage_exporter": {"trace_storage": _STORE}},
        }


if __name__ == "__main__":
    built(NAME)
