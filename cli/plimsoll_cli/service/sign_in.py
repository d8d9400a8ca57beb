"""Sign-in by the company's issuer: a browser that comes back to this machine, or a device code.

https://www.rfc-editor.org/rfc/rfc8252 https://www.rfc-editor.org/rfc/rfc8628
"""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final, override
from urllib.parse import parse_qsl, urlsplit

from plimsoll.domain.errors import BadInput, MissingRights, NotFound, Refused, Throttled
from plimsoll.services.ports import Clock
from plimsoll_agent.service import Service
from plimsoll_cli.service.login import begin_session
from plimsoll_service.domain.errors import Unproven
from plimsoll_service.services.relying_party import Attempt, authorization_url, code_of
from plimsoll_service.wire.people import Issuer, SignedIn, SignIn, StartedDevice

WAITS: Final = timedelta(minutes=5)
"""How long the browser may take."""
_CALLBACK: Final = "/callback"
_DONE: Final = "You are signed in. You may close this page and go back to the terminal."
_NOT_OURS: Final = "This is not the sign-in that the terminal waits for."


def issuer_of(url: str, clock: Clock) -> Issuer | None:
    """Return where people of a service sign in; None: it names no issuer, and they come by keys.

    Raises:
        PlimsollError: it does not answer.
    """
    try:
        return Service(url, None, clock).ask("GET", "/v1/issuer", Issuer)
    # API Gateway answers 403 where an older service has no such path.
    except (NotFound, MissingRights, Refused):
        return None


def by_browser(  # noqa: PLR0913 - the parts of a sign-in
    folder: Path,
    url: str,
    issuer: Issuer,
    tenant: str | None,
    clock: Clock,
    *,
    show: Callable[[str], None],
    open_browser: Callable[[str], bool] = webbrowser.open,
) -> SignedIn:
    """Sign in by the browser of this machine.

    Args:
        folder: Where the session is kept.
        url: Of the service.
        issuer: As the service names it.
        tenant: Where the person belongs to several.
        clock: The time.
        show: Shows the address to open, where no browser opens by itself.
        open_browser: Opens an address; whether it could.

    Raises:
        BadInput: the browser did not come back in time.
        PlimsollError: the issuer or the service refuses, or does not answer.
    """
    attempt = Attempt.new()
    with _Callback(issuer, attempt) as callback:
        redirect_uri = f"http://127.0.0.1:{callback.server_port}{_CALLBACK}"
        address = authorization_url(
            issuer.authorization_endpoint, issuer.client_id, issuer.scopes, attempt, redirect_uri
        )
        show(address)
        open_browser(address)
        code = callback.wait(clock)
    asked = SignIn(
        code=code,
        verifier=attempt.verifier,
        nonce=attempt.nonce,
        redirect_uri=redirect_uri,
        tenant=tenant,
    )
    return begin_session(folder, url, asked, clock)


def by_device(
    folder: Path,
    url: str,
    tenant: str | None,
    clock: Clock,
    *,
    show: Callable[[StartedDevice], None],
) -> SignedIn:
    """Sign in by a code that is confirmed in the browser of any machine.

    Raises:
        BadInput: nobody confirmed it in time.
        PlimsollError: the issuer or the service refuses, or does not answer.
    """
    started = Service(url, None, clock).ask("POST", "/v1/devices", StartedDevice)
    show(started)
    until = clock.now() + timedelta(seconds=started.expires_in)
    wait = float(started.interval)
    while clock.now() < until:
        clock.sleep(wait)
        try:
            asked = SignIn(device_code=started.device_code, tenant=tenant)
            return begin_session(folder, url, asked, clock)
        except Throttled as error:
            wait = max(float(started.interval), error.retry_after or 0.0)
    raise BadInput(f"nobody confirmed {started.user_code} in time: begin again")


@dataclass(slots=True)
class _Answer:
    """What the browser brought; only one of both is set."""

    code: str = ""
    refusal: str = ""


class _Callback(HTTPServer):
    """Waits on loopback, at a random port, for the browser to come back with this attempt's code."""

    def __init__(self, issuer: Issuer, attempt: Attempt) -> None:
        super().__init__(("127.0.0.1", 0), _CallbackHandler)
        self.issuer = issuer
        self.attempt = attempt
        self.answer = _Answer()
        self.timeout = 1

    def wait(self, clock: Clock) -> str:
        """Return the code.

        Raises:
            BadInput: nobody brought one in time.
            Refused: the issuer refused.
        """
        until = clock.now() + WAITS
        while clock.now() < until:
            self.handle_request()
            if self.answer.refusal:
                raise Refused(self.answer.refusal)
            if self.answer.code:
                return self.answer.code
        raise BadInput("the browser did not come back: begin again, or use --device")


class _CallbackHandler(BaseHTTPRequestHandler):
    server: _Callback
    timeout = 5
    """Seconds; a connection that says nothing must not hold up the browser's."""

    def do_GET(self) -> None:
        """Take the code of this attempt. What others bring changes nothing: it is waited for further."""
        parts = urlsplit(self.path)
        answer = dict(parse_qsl(parts.query))
        if parts.path != _CALLBACK or answer.get("state") != self.server.attempt.state:
            self._say(HTTPStatus.BAD_REQUEST, _NOT_OURS)
            return
        issuer = self.server.issuer
        try:
            code = code_of(
                answer,
                self.server.attempt,
                issuer=issuer.issuer,
                names_itself=issuer.names_itself,
            )
        except Unproven as error:
            self.server.answer = _Answer(refusal=str(error))
            self._say(HTTPStatus.BAD_REQUEST, "The sign-in failed: the terminal says why.")
            return
        self.server.answer = _Answer(code=code)
        self._say(HTTPStatus.OK, _DONE)

    def _say(self, status: HTTPStatus, words: str) -> None:
        body = f"<!doctype html><title>Plimsoll</title><p>{words}</p>".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", "default-src 'none'")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the request line holds the code."""
