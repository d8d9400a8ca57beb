"""The console, hosted: each screen is declared in `service.yaml` and routed here by Chalice.

Anybody can call it: who asks is whoever holds the session of the cookie, which is read at each request. Whoever holds
none is led to the sign-in, and back to the page that was asked for. Answers are bytes, and compressed here: API Gateway,
told to compress, would also decompress what agents signed.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from hmac import compare_digest
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from chalice.app import Chalice, Request, Response

from functions.refusals import detail_of, retry_after, status_of
from plimsoll.domain.errors import BadInput, NotFound
from plimsoll.observability import logger, metrics
from plimsoll_console.answers import HEADERS, Answer, answer, file
from plimsoll_console.hosted.asked import Asked, HostedRoute, cluster_id
from plimsoll_console.hosted.cookies import (
    SESSION,
    SIGN_IN,
    SIGN_IN_LIFE,
    Begun,
    cookie,
    cookies_in,
    way_back,
)
from plimsoll_console.hosted.routes import ROUTES
from plimsoll_console.hosted.storms import TenantStorms
from plimsoll_console.pages import Page, form_in, missing, name_in, url
from plimsoll_console.pages import Request as PageRequest
from plimsoll_console.rendering import Place
from plimsoll_service import bootstrap
from plimsoll_service.domain.access import (
    SESSION_LIFE,
    Bearer,
    BearerKind,
    PersonRole,
    Principal,
    csrf_token,
)
from plimsoll_service.domain.errors import Forbidden, Unproven
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_service.services.history import has_cluster, known_clusters
from plimsoll_service.services.limits import count

PREFIX: Final = "/console"
SIGN_INS_PER_MINUTE: Final = 60
"""From one address: the people behind it may all begin at once."""
SCREENS_PER_MINUTE: Final = 240
"""Of one session: a storm is asked for every two seconds in each window."""
_ANY: Final = ["*/*"]
_FORM: Final = ["application/x-www-form-urlencoded"]
_SMALLEST_COMPRESSED_BYTES: Final = 500
_TITLES: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.FORBIDDEN: "You may not do that.",
    HTTPStatus.NOT_FOUND: "That is not there.",
    HTTPStatus.PRECONDITION_FAILED: "It has changed since you saw it.",
    HTTPStatus.CONFLICT: "That is not possible.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests came.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The service does not answer.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "This page failed.",
}
_DELETED: Final = timedelta()
_ONLY_OVER_TLS: Final = {"strict-transport-security": "max-age=31536000"}

app = Chalice(app_name="plimsoll-console")
app.api.binary_types = _ANY


@app.middleware("http")
def router_refusals(request: Request, get_response: Callable[[Request], Response]) -> Response:
    """Make a page of what Chalice itself refuses: a path, or a kind of content."""
    answered = get_response(request)
    if isinstance(answered.body, Mapping):
        return _sent(_answer(missing("There is no such page.")))
    return answered


def _routed(route: HostedRoute) -> Callable[..., Response]:
    def view(**named: str) -> Response:
        return _screen(route, {name: name_in(part) for name, part in named.items()})

    return view


for _route in ROUTES:
    app.route(
        f"{PREFIX}{_route.path.rstrip('/')}",
        methods=[_route.method],
        content_types=_FORM if _route.method == "POST" else _ANY,
    )(_routed(_route))


@app.route(f"{PREFIX}/static/{{name}}", content_types=_ANY)
def read_file(name: str) -> Response:
    """Return a style, a script or the icon."""
    return _sent(file(name))


@app.route(f"{PREFIX}/sign-in", content_types=_ANY)
def sign_in() -> Response:
    """Return the page with the link to the issuer: a form that leads there the policy of our pages would block."""
    query = _query()
    to, tenant = way_back(query.get("to", "")), query.get("tenant", "")[:40]
    return _guarded(lambda: _sign_in_page("Sign in.", to=to, tenant=tenant))


@app.route(f"{PREFIX}/sign-in/begin", content_types=_ANY)
def begin_sign_in() -> Response:
    """Lead to the issuer; the browser keeps what only its own sign-in is finished with."""

    def begun() -> Response:
        _count_address()
        query = _query()
        attempt, place = bootstrap.relying_party().begin(_redirect_uri())
        kept = Begun(
            attempt=attempt,
            tenant=query.get("tenant", "")[:40],
            to=way_back(query.get("to", "")),
        )
        return _sent(_to(place), cookie(SIGN_IN, kept.text(), SIGN_IN_LIFE))

    return _guarded(begun)


@app.route(f"{PREFIX}/sign-in/callback", content_types=_ANY)
def finish_sign_in() -> Response:
    """Begin a session of whom the issuer named, and lead to the page that was asked for."""

    def finished() -> Response:
        _count_address()
        begun = Begun.read(_cookies().get(SIGN_IN, ""))
        if begun is None:
            raise Unproven("this browser did not begin the sign-in, or took longer than 10 minutes")
        now = bootstrap.clock().now()
        identity = bootstrap.relying_party().finish(_query(), begun.attempt, _redirect_uri(), now)
        try:
            bearer, _ = bootstrap.sessions().begin(identity, begun.tenant or None, now)
        except (BadInput, Forbidden) as error:
            why = str(error)
            return _sign_in_page("You are not let in.", why=why, to=begun.to, status=403)
        return _sent(
            _to(f"../{begun.to}"),
            cookie(SESSION, bearer.text, SESSION_LIFE),
            cookie(SIGN_IN, "", _DELETED),
        )

    return _guarded(finished)


@app.route(f"{PREFIX}/sign-out", methods=["POST"], content_types=_FORM)
def sign_out() -> Response:
    """End the session."""

    def ended() -> Response:
        person, bearer = _signed_in()
        if person is not None:
            _refuse_forged(_form(), bearer)
            bootstrap.sessions().end(person.tenant, person.kid)
        return _sent(_to("sign-in"), cookie(SESSION, "", _DELETED))

    return _guarded(ended)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a request of API Gateway."""
    # Chalice refuses to answer in bytes whoever names no type.
    headers = {"accept": "*/*"} | {n.lower(): v for n, v in (event.get("headers") or {}).items()}
    answered: dict[str, Any] = app({**event, "headers": headers}, context)
    return answered


def _screen(route: HostedRoute, named: Mapping[str, str]) -> Response:
    """Answer with a screen to whoever is signed in; everybody else is led to the sign-in."""
    path = _request().to_original_event().get("path") or "/"
    if route.path == "/" and not path.endswith("/"):
        # Links of the first page are relative to the root of the console.
        return _sent(_to("console/"))

    def shown() -> Response:
        person, bearer = _signed_in()
        if person is None:
            return _sent(_to_sign_in(route, named))
        try:
            page = _page(route, named, person, bearer)
        except Exception as error:  # noqa: BLE001 - becomes a page; a fault is logged
            page = _failed(error)
            if page.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                # Only whoever is signed in may ring the alarm.
                metrics.add_metric(ServiceMetric.FAULTS, "Count", 1)
        return _sent(_answer(_for_person(page, person, bearer), title=person.tenant))

    return _guarded(shown)


def _page(
    route: HostedRoute, named: Mapping[str, str], person: Principal, bearer: str
) -> Page:
    now = bootstrap.clock().now()
    count(bootstrap.members(), person.kid, "screens", most=SCREENS_PER_MINUTE, now=now)
    form = _form() if route.method == "POST" else {}
    if route.method == "POST":
        _refuse_forged(form, bearer)
    cluster = _cluster(person, named["cluster"]) if "cluster" in named else ""
    if cluster and not person.may(PersonRole.VIEWER, cluster):
        raise NotFound(f"There is no cluster {named['cluster'][:64]}.")
    if not route.admits(person, cluster):
        raise Forbidden(f"This is for the role {route.least}; yours is {person.highest}.")
    request = PageRequest(
        named=named, query=_query(), form=form, fragment=_is_fragment()
    )
    stack = bootstrap.interruption_stack()
    registered = stack.registered(cluster, now) if stack is not None and cluster else None
    asked = Asked(
        person=person,
        now=now,
        cluster=cluster,
        storms=TenantStorms(
            stack=stack,
            registered={named["cluster"]: registered} if registered is not None else {},
            time=now,
            at=request.number("at"),
            title=person.tenant,
        ),
    )
    return route.view(request, asked)


def _cluster(person: Principal, name: str) -> str:
    """Return the id of a cluster of the person's tenant, by its name there or in the interruption stack.

    Raises:
        NotFound: the tenant has none of that name.
    """
    data = bootstrap.tenants().of(person.tenant)
    cluster = cluster_id(person.tenant, name)
    if has_cluster(data, cluster):
        return cluster
    # The message of a storm links to the name that its stack knows.
    stack = bootstrap.interruption_stack()
    ours = [known for known, _ in known_clusters(data)]
    bound = stack.agent_of(name, ours, bootstrap.clock().now()) if stack is not None else None
    if bound is None:
        raise NotFound(f"There is no cluster {name[:64]}.")
    return bound


def _signed_in() -> tuple[Principal | None, str]:
    """Return who holds the session of the cookie, and its secret; None: nobody, or it has ended."""
    bearer = _cookies().get(SESSION, "")
    read = Bearer.read(bearer)
    # The token of a program opens the API and no screen.
    if read is None or read.kind is not BearerKind.SESSION:
        return None, ""
    return bootstrap.sessions().find(bearer, bootstrap.clock().now()), bearer


def _refuse_forged(form: Mapping[str, str], bearer: str) -> None:
    """Let only what one of our own pages sent pass.

    Raises:
        Forbidden: another site sent it, or a page of a session that has ended.
    """
    site = _header("sec-fetch-site")
    ours = urlsplit(bootstrap.config().console_url)
    same = site == "same-origin" if site else _header("origin") == f"{ours.scheme}://{ours.netloc}"
    given = form.get("csrf", "").encode()
    if not same or not compare_digest(given, csrf_token(bearer).encode()):
        raise Forbidden("Another site sent this, or the page is old: load it again.")


def _to_sign_in(route: HostedRoute, named: Mapping[str, str]) -> Answer:
    if _is_fragment():  # what is shown stays, and grows old
        return Answer(status=401)
    query = _query() if route.method == "GET" else {}
    parts = [named.get(part.strip("{}"), part) for part in route.path.strip("/").split("/")]
    to = way_back(url(*parts, **query)) if route.path != "/" else ""
    place = _place().root + url("sign-in", to=to)
    return _to(place)


def _sign_in_page(
    title: str, *, to: str, tenant: str = "", why: str = "", status: int = 200
) -> Response:
    given = {
        "title": title,
        "why": why,
        "to": to,
        "tenant": tenant,
        "begin": _place().root + url("sign-in", "begin", to=to, tenant=tenant),
        "issuer": urlsplit(bootstrap.relying_party().client.issuer).hostname,
    }
    return _sent(_answer(Page(template="hosted/sign_in.html.j2", given=given, status=status)))


def _guarded(answering: Callable[[], Response]) -> Response:
    """Answer; with a page where that fails."""
    try:
        return answering()
    except Exception as error:  # noqa: BLE001 - becomes a page; a fault is logged
        return _sent(_answer(_failed(error)))


def _failed(error: Exception) -> Page:
    status = status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("screen failed", exc_info=error)
    elif status is HTTPStatus.SERVICE_UNAVAILABLE:
        logger.warning("screen not shown", exc_info=error)
    title = _TITLES.get(status, f"{status.phrase}.")
    given = {"title": title, "cure": detail_of(error), "retry": retry_after(error)}
    return Page(template="error.html.j2", given=given, status=status)


def _for_person(page: Page, person: Principal, bearer: str) -> Page:
    """Return a page with what all screens show of whoever is signed in."""
    own = {
        "person": person,
        "is_admin": person.may(PersonRole.ADMIN),
        "form_token": csrf_token(bearer),
    }
    return replace(page, given={**page.given, **own})


def _answer(page: Page, *, title: str = "") -> Answer:
    nothing = TenantStorms(stack=None, registered={}, time=bootstrap.clock().now(), title=title)
    return answer(replace(page, given={"person": None, **page.given}), _place(), nothing)


def _sent(said: Answer, *cookies: str) -> Response:
    headers: dict[str, str | list[str]] = {**said.headers, **_ONLY_OVER_TLS}
    body = said.body
    if len(body) > _SMALLEST_COMPRESSED_BYTES and "gzip" in _header("accept-encoding"):
        body = gzip.compress(body, mtime=0)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    if cookies:
        headers["set-cookie"] = [*cookies]
    return Response(body, headers=headers, status_code=said.status)


def _to(place: str) -> Answer:
    return Answer(status=303, headers={**HEADERS, "location": place})


def _redirect_uri() -> str:
    return f"{bootstrap.config().console_url.rstrip('/')}/sign-in/callback"


def _count_address() -> None:
    """Count a request of nobody yet against the limit of the address that it comes from."""
    address = _request().context["identity"]["sourceIp"]
    now = bootstrap.clock().now()
    count(bootstrap.members(), address, "sign-ins", most=SIGN_INS_PER_MINUTE, now=now)


def _place() -> Place:
    request = _request()
    # Of a path that is no screen the gateway hands over the rest.
    path = (request.uri_params or {}).get("page") or request.path.removeprefix(PREFIX)
    return Place(path=path, fragment=_is_fragment())


def _is_fragment() -> bool:
    return _header("hx-request") == "true"


def _form() -> Mapping[str, str]:
    body = _request().raw_body
    return form_in(body if isinstance(body, bytes) else body.encode())


def _query() -> Mapping[str, str]:
    found: Mapping[str, str] = _request().to_dict().get("query_params") or {}
    return found


def _cookies() -> Mapping[str, str]:
    event = _request().to_original_event()
    several: Mapping[str, Sequence[str]] = event.get("multiValueHeaders") or {}
    found = [each for name, values in several.items() if name.lower() == "cookie" for each in values]
    return cookies_in(found or [_header("cookie")])


def _header(name: str) -> str:
    return str(_request().headers.get(name, ""))


def _request() -> Request:
    request = app.current_request
    if request is None:
        raise BadInput("this is no request of API Gateway")
    return request
