"""A server that speaks AWS's protocols: requests in, plain values to the answers, and out again.

moto's protocol half does the speaking, from botocore's own service models, so every action that the
SDK knows is understood; who answers is ours. moto's other half, its models, is left out: it starts
a group's instances all in one zone, by chance, never lacks capacity, and keeps a second truth beside
the fleet of the drill.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any, Final, Self, override
from xml.sax.saxutils import escape

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request
from moto.core.routing import get_service_router
from moto.core.serialize import get_serializer_class
from werkzeug.exceptions import NotFound
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

type Parameters = Mapping[str, Any]
type Operation = Callable[[Parameters], Mapping[str, Any]]

_SCOPE: Final = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request")


class AwsError(Exception):
    """An error as AWS says it: a code of the service, and words."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class LoopbackServer(ABC):
    """Answers HTTP on loopback and a free port; use it as a context manager."""

    def __init__(self) -> None:
        self._server = make_server(
            "127.0.0.1", 0, self._serve, threaded=True, request_handler=_Quiet
        )
        self._thread = Thread(
            target=self._server.serve_forever, args=(0.05,), name="aws", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, environ: dict[str, Any], start_response: Any) -> Any:
        return self.respond(Request(environ))(environ, start_response)

    @abstractmethod
    def respond(self, request: Request) -> Response:
        """Return the answer to a request; threads may ask at once."""


class AwsServer(LoopbackServer):
    """Answers `service:Action` from a table.

    Args:
        answers: `ec2:DescribeInstances` -> what answers it. An action that is not there is an
            error that names it.
    """

    def __init__(self, answers: Mapping[str, Operation]) -> None:
        super().__init__()
        self._calls: Counter[str] = Counter()
        self._answers = answers

    @property
    def calls(self) -> Counter[str]:
        """How often each action was asked, the unknown ones included."""
        return self._calls

    @override
    def respond(self, request: Request) -> Response:
        """Answer an action in the protocol in which it was asked for."""
        scope = _SCOPE.search(request.headers.get("Authorization", ""))
        if scope is None:
            return Response("the request is not signed as boto3 signs it", status=403)
        service = scope.group(1)
        try:
            operation, uri = get_service_router(service).match(request)
        except NotFound:
            action = request.form.get("Action", f"{request.method} {request.path}")
            return _unknown(service, action)
        action = f"{service}:{operation.name}"
        self._calls[action] += 1
        if action not in self._answers:
            return _unknown(service, str(operation.name))
        protocol = operation.service_model.metadata["protocol"]
        parameters = PROTOCOL_PARSERS[protocol](operation).parse(
            {
                "method": request.method,
                "values": request.values,
                "headers": request.headers,
                "body": request.get_data(),
                "url_path": request.path,
                "url_params": uri,
            }
        )
        try:
            result = self._answers[action](parameters)
        except AwsError as error:
            return _error(service, error.code, str(error))
        serializer = get_serializer_class(service, protocol)(operation_model=operation)
        said = serializer.serialize(result)
        return Response(said["body"], status=said["status_code"], headers=said["headers"])


def _unknown(service: str, action: str) -> Response:
    code = "UnknownOperationException" if service == "eks" else "InvalidAction"
    return _error(service, code, f"the drill's fleet does not answer {service}:{action}")


def _error(service: str, code: str, words: str) -> Response:
    """Return an error in the protocol of the service: moto's serializer wants moto's own classes."""
    if service == "eks":
        status = 404 if code == "ResourceNotFoundException" else 400
        return Response(
            json.dumps({"message": words}),
            status=status,
            headers={"x-amzn-ErrorType": code},
            content_type="application/json",
        )
    error = f"<Error><Code>{code}</Code><Message>{escape(words)}</Message></Error>"
    body = (
        f"<Response><Errors>{error}</Errors></Response>"
        if service == "ec2"
        else f"<ErrorResponse>{error}</ErrorResponse>"
    )
    return Response(body, status=400, content_type="text/xml")


class _Quiet(WSGIRequestHandler):
    """Keeps connections open, and the terminal free for the drill."""

    protocol_version = "HTTP/1.1"

    @override
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing; `calls` counts."""
