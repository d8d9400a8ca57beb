"""An API server of a large cluster, on loopback over TLS, in a process of its own.

Objects are written while they are sent, so the server stays small. It lists in pages, by field
selectors, as metadata alone, and compressed as API servers do; watches tell what was written here and
send bookmarks. Patches change what is served, an eviction removes its pod, and nothing else moves: no
controller runs.

    python -m benchmarks.large_cluster.server PODS

One line on standard output says where it listens.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, override
from urllib.parse import parse_qsl, urlsplit

from benchmarks.large_cluster.objects import Json, Kind, LargeCluster
from plimsoll_simulation.fake_cluster.patches import merged
from plimsoll_testbed.rigs.certificates import server_context

COMPRESSED: Final = 128 * 1024
"""Bytes from which an API server compresses an answer, at the level 1.
https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go"""
PIECE: Final = 50
"""Objects that are made at once."""
BOOKMARK_SECONDS: Final = 5.0
_PATH: Final = re.compile(
    r"(?P<root>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[a-z]+))?"
)
_UNFINISHED: Final = {"status.phase!=Succeeded", "status.phase!=Failed"}
"""Selectors that hold for each pod here."""


class Store:
    """What is served: the cluster, and what was written since."""

    def __init__(self, cluster: LargeCluster) -> None:
        self.cluster = cluster
        self.written: dict[str, dict[tuple[str | None, str], Json | None]] = {}
        """By collection: objects as they are now, None where one was deleted."""
        self.news: list[tuple[str, str, Json]] = []
        self.changed = threading.Condition()
        for kind in cluster.kinds.values():
            _ = kind.numbers  # else each thread of the first patches makes it, for seconds

    @property
    def version(self) -> int:
        """Return the newest resource version."""
        return 1_000_000 + len(self.news)

    def get(self, path: str, key: tuple[str | None, str]) -> Json | None:
        """Return an object; None where there is none."""
        if key in self.written.get(path, {}):
            return self.written[path][key]
        kind = self.cluster.kinds.get(path)
        number = None if kind is None else kind.numbers.get(key)
        return None if kind is None or number is None else json.loads(kind.text(number))

    def put(self, path: str, key: tuple[str | None, str], obj: Json, event: str) -> Json:
        """Write an object, or its deletion, and tell the watches."""
        with self.changed:
            obj["metadata"]["resourceVersion"] = str(self.version + 1)
            self.written.setdefault(path, {})[key] = None if event == "DELETED" else obj
            self.news.append((path, event, obj))
            self.changed.notify_all()
        return obj

    def chosen(self, kind: Kind, selector: str) -> Sequence[int]:
        """Return the numbers of the objects that a field selector chooses.

        Raises:
            ValueError: it is not one of those that are asked for.
        """
        terms = [term for term in selector.split(",") if term and term not in _UNFINISHED]
        match [term.partition("=") for term in terms]:
            case []:
                return range(kind.count)
            case [("metadata.name", _, name)]:
                return [n for (_, each), n in kind.numbers.items() if each == name]
            case [("spec.nodeName", _, "")]:
                return ()
            case [("spec.nodeName", _, node)] if kind.plural == "pods":
                return self.cluster.pods_on(node)
        raise ValueError(selector)

    def texts(self, kind: Kind, numbers: Iterable[int]) -> Iterator[str]:
        """Yield objects as JSON, as they are now."""
        written = self.written.get(kind.path, {})
        for number in numbers:
            if written:
                values = kind.fill(number)[1]
                key = (values.get("namespace"), values["name"])
                if key in written:
                    if (obj := written[key]) is not None:
                        yield json.dumps(obj, separators=(",", ":"))
                    continue
            yield kind.text(number)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store: Store

    def do_GET(self) -> None:
        """Serve a list, a watch or an object."""
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        path, key, _ = _target(url.path)
        if key[1]:
            self._answer(self.store.get(path, key))
        elif path not in self.store.cluster.kinds:
            self._answer(None)
        elif query.get("watch") in {"1", "true", "True"}:
            self._watch(path, query)
        else:
            self._list(self.store.cluster.kinds[path], query)

    def do_PATCH(self) -> None:
        """Merge a patch into an object."""
        path, key, _ = _target(urlsplit(self.path).path)
        patch, obj = self._body(), self.store.get(path, key)
        if obj is not None:
            obj = self.store.put(path, key, merged(obj, patch), "MODIFIED")
        self._answer(obj)

    def do_POST(self) -> None:
        """Create an object, or evict a pod."""
        path, key, subresource = _target(urlsplit(self.path).path)
        body = self._body()
        if not subresource:
            self._answer(
                self.store.put(path, (key[0], body["metadata"]["name"]), body, "ADDED"), 201
            )
            return
        pod = self.store.get(path, key)
        self._answer(pod and self.store.put(path, key, pod, "DELETED"), 201)

    def do_PUT(self) -> None:
        """Replace an object."""
        path, key, _ = _target(urlsplit(self.path).path)
        self._answer(self.store.put(path, key, self._body(), "MODIFIED"))

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _list(self, kind: Kind, query: dict[str, str]) -> None:
        numbers = self.store.chosen(kind, query.get("fieldSelector", ""))
        begin = int(query.get("continue", 0))
        end = begin + (int(query.get("limit", 0)) or len(numbers))
        more = {"continue": str(end)} if end < len(numbers) else {}
        metadata = json.dumps({"resourceVersion": str(self.store.version), **more})
        texts = self.store.texts(kind, numbers[begin:end])
        name = f"{kind.kind}List"
        if "PartialObjectMetadata" in self.headers.get("Accept", ""):
            name = "PartialObjectMetadataList"
            texts = (json.dumps({"metadata": json.loads(text)["metadata"]}) for text in texts)
        head = f'{{"kind":"{name}","metadata":{metadata},"items":['
        separated = (f",{text}" if n else text for n, text in enumerate(texts))
        self._stream(chain([head], separated, ["]}"]))

    def _stream(self, parts: Iterator[str]) -> None:
        """Send an answer in pieces, compressed where it is long and the client takes that."""
        pieces = _pieces(parts)
        start = [next(pieces)]
        while sum(map(len, start)) < COMPRESSED and (piece := next(pieces, None)):
            start.append(piece)
        long = sum(map(len, start)) >= COMPRESSED
        packs = long and "gzip" in self.headers.get("Accept-Encoding", "")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        if packs:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
        for piece in chain(start, pieces):
            self._chunk(packer.compress(piece) if packs else piece)
        if packs:
            self._chunk(packer.flush())
        self.wfile.write(b"0\r\n\r\n")

    def _watch(self, path: str, query: dict[str, str]) -> None:
        """Tell what is written until the time is over; a bookmark whenever nothing was for a while."""
        kind = self.store.cluster.kinds[path]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        end = time.monotonic() + float(query.get("timeoutSeconds", 300))
        seen = int(query.get("resourceVersion") or self.store.version) - 1_000_000
        while time.monotonic() < end:
            with self.store.changed:
                self.store.changed.wait_for(lambda: len(self.store.news) > seen, BOOKMARK_SECONDS)  # noqa: B023 - used at once
                news, seen = self.store.news[seen:], len(self.store.news)
            events = [{"type": event, "object": obj} for of, event, obj in news if of == path]
            if not news and "allowWatchBookmarks" in query:
                mark = {"kind": kind.kind, "metadata": {"resourceVersion": str(self.store.version)}}
                events = [{"type": "BOOKMARK", "object": mark}]
            for event in events:
                self._chunk(json.dumps(event).encode() + b"\n")
        self.wfile.write(b"0\r\n\r\n")

    def _answer(self, obj: Json | None, status: int = 200) -> None:
        missing = {"kind": "Status", "reason": "NotFound", "code": 404, "message": "not found"}
        body = json.dumps(missing if obj is None else obj).encode()
        self.send_response(404 if obj is None else status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))


def _target(path: str) -> tuple[str, tuple[str | None, str], str | None]:
    """Return the collection, the object's namespace and name, and the subresource."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise ValueError(path)
    parts = found.groupdict()
    key = (parts["namespace"], parts["name"] or "")
    return f"{parts['root']}/{parts['plural']}", key, parts["subresource"]


def _pieces(parts: Iterator[str]) -> Iterator[bytes]:
    while piece := "".join(islice(parts, PIECE)):
        yield piece.encode()


@contextmanager
def served(pods: int) -> Iterator[dict[str, str]]:
    """Serve a cluster of so many pods from threads; give the URL and the CA."""

    class OfStore(Handler):
        store = Store(LargeCluster(pods))

    with tempfile.TemporaryDirectory() as folder:
        context, ca = server_context(Path(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), OfStore)
    server.daemon_threads = True
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {"url": f"https://127.0.0.1:{server.server_port}", "ca": ca}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    """Serve until standard input ends."""
    with served(int(sys.argv[1])) as address:
        print(json.dumps(address), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
