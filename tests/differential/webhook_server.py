"""A server of admission webhooks that answers by the path of its URL, as the fake cluster reads it."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, override

from plimsoll_simulation.fake_cluster.webhooks import with_request, with_sidecar
from plimsoll_testbed.rigs.certificates import server_context
from tests.differential.bench import WEBHOOKS


class WebhookServer:
    """Answers on loopback while it is open.

    `/deny/CODE/START` denies with CODE what is about an object whose name begins with START, and admits all else.
    `/sidecar/CPU` and `/cpu/CPU` change a new pod. Every other path answers 503, which is no answer of a webhook.
    """

    def __init__(self, folder: Path) -> None:
        context, ca = server_context(folder)
        self._ca = base64.b64encode(ca.encode()).decode()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop to answer."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reached(self, body: Any) -> Any:
        """Return a request's body in which webhooks have the address and the certificate of this server."""
        match body:
            case {"clientConfig": {"url": str(url)}}:
                here = url.replace(WEBHOOKS, f"https://127.0.0.1:{self._server.server_port}")
                return {**body, "clientConfig": {"url": here, "caBundle": self._ca}}
            case {"webhooks": list(hooks)}:
                return {**body, "webhooks": [self.reached(hook) for hook in hooks]}
            case _:
                return body


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        said = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(said)["request"]
        meta = (request["object"] or request["oldObject"])["metadata"]
        name = meta.get("name") or meta.get("generateName") or request.get("name", "")
        match self.path.partition("?")[0].split("/"):
            case ["", "deny", code, start]:
                denied = {"allowed": False, "status": {"code": int(code)}}
                answer = denied if name.startswith(start) else {"allowed": True}
                self._say(200, request["uid"], answer)
            case ["", "sidecar", cpu]:
                self._change(request, with_sidecar(request["object"], cpu))
            case ["", "cpu", cpu]:
                self._change(request, with_request(request["object"], cpu))
            case _:
                self._say(503, request["uid"], {})

    def _change(self, request: Any, changed: Any) -> None:
        patch = [{"op": "replace", "path": "/spec", "value": changed["spec"]}]
        answer = {"allowed": True, "patchType": "JSONPatch"}
        answer["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        self._say(200, request["uid"], answer)

    def _say(self, status: int, uid: str, answer: dict[str, Any]) -> None:
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = json.dumps({**review, "response": {"uid": uid, **answer}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
