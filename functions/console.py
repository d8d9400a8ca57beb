"""The console, hosted: each screen is declared in `service.yaml` and routed here by Chalice.

Anybody can call it: who asks is whoever holds the session of the cookie, which is read at each request. Whoever holds
none is led to the sign-in, and back to the page that was asked for. Answers are bytes, and compressed here: API
Gateway, told to compress, would also decompress what agents signed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from hmac import compare_digest
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from chalice.app import Chalice, Request, Response

from functions.console_requests import (
    PREFIX,
    cookies_of,
    form_of,
    header,
    place_of,
    query_of,
    sent,
    to,
)
from functions.refusals import detail_of, note, status_of
from plimsoll.domain.errors import BadInput, NotFound
from plimsoll.observability import logger, metrics
from plimsoll_console.answers import Answer, answer, file
from plimsoll_console.hosted.asked import Asked, HostedRoute
from plimsoll_console.hosted.cookies import (
    SESSION,
    SIGN_IN,
    SIGN_IN_LIFE,
    Begun,
    cookie,
    way_back,
)
from plimsoll_console.hosted.routes import ROUTES
from plimsoll_console.hosted.storms import TenantStorms
from plimsoll_console.pages import Page, missing, name_in, url
from plimsoll_console.pages import Request as PageRequest
from plimsoll_service import bootstrap
from plimsoll_service.domain.access import (
    SESSION_LIFE,
    Bearer,
    BearerKind,
    PersonRole,
    Principal,
    Role,
    csrf_token,
    subject_of,
)
from plimsoll_service.domain.advice import AdviceRequest
from plimsoll_service.domain.errors import Forbidden, Unproven
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_service.services.cluster_rows import cluster_rows, has_cluster
from plimsoll_service.services.limits import count

SIGN_INS_PER_MINUTE: Final = 60
"""From one address: the people behind it may all begin at once."""
SCREENS_PER_MINUTE: Final = 240
"""Of one session: a storm is asked for every two seconds in each window."""
_ANY: Final = ["*/*"]
_FORM: Final = ["application/x-www-form-urlencoded"]
_DELETED: Final = timedelta()
_LONGEST_TENANT: Final = 40
_TITLES: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.UNAUTHORIZED: "You are not signed in.",
    HTTPStatus.FORBIDDEN: "You may not do that.",
    HTTPStatus.NOT_FOUND: "That is not there.",
    HTTPStatus.PRECONDITION_FAILED: "It has changed since you saw it.",
    HTTPStatus.CONFLICT: "That is not possible.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests came.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The service does not answer.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "This page failed.",
}

app = Chalice(app_name="plimsoll-console")
app.api.binary_types = _ANY


@app.middleware("http")
def router_refusals(request: Request, get_response: Callable[[Request], Response]) -> Response:
    """Make a page of what Chalice itself refuses: a path, or a kind of content."""
    answered = get_response(request)
    if isinstance(answered.body, Mapping):
        return _shown(missing("There is no such page."))
    return answered


def _routed(route: HostedRoute) -> Callable[..., Response]:
    def screen(**parts: str) -> Response:
        named = {name: name_in(part) for name, part in parts.items()}
        return _guarded(lambda: _screen(route, named))

    return screen


for _route in ROUTES:
    app.route(
        f"{PREFIX}{_route.path.rstrip('/')}",
        methods=[_route.method],
        content_types=_FORM if _route.method == "POST" else _ANY,
    )(_routed(_route))


@app.route(f"{PREFIX}/static/{{name}}", content_types=_ANY)
def read_file(name: str) -> Response:
    """Return a style, a script or the icon."""
    return sent(_request(), file(name))


@app.route(f"{PREFIX}/sign-in", content_types=_ANY)
def sign_in() -> Response:
    """Return the page with the link to the issuer: a form that leads there the policy of our pages would block."""
    return _guarded(lambda: _sign_in_page("Sign in.", *_wanted()))


@app.route(f"{PREFIX}/sign-in/begin", content_types=_ANY)
def begin_sign_in() -> Response:
    """Lead to the issuer; the browser keeps what only its own sign-in is finished with."""

    def begun() -> Response:
        _count_address()
        way, tenant = _wanted()
        attempt, place = bootstrap.relying_party().begin(_redirect_uri())
        kept = Begun(attempt=attempt, tenant=tenant, to=way)
        return sent(_request(), to(place), cookie(SIGN_IN, kept.text(), SIGN_IN_LIFE))

    return _guarded(begun)


@app.route(f"{PREFIX}/sign-in/callback", content_types=_ANY)
def finish_sign_in() -> Response:
    """Begin a session of whom the issuer named, and lead to the page that was asked for."""

    def finished() -> Response:
        _count_address()
        begun = Begun.read(cookies_of(_request()).get(SIGN_IN, ""))
        if begun is None:
            raise Unproven("this browser did not begin the sign-in, or took longer than 10 minutes")
        now, party = bootstrap.clock().now(), bootstrap.relying_party()
        identity = party.finish(query_of(_request()), begun.attempt, _redirect_uri(), now)
        try:
            bearer, _ = bootstrap.sessions().begin(identity, begun.tenant or None, now)
        except (BadInput, Forbidden) as error:
            return _sign_in_page("You are not let in.", begun.to, "", why=str(error), status=403)
        return sent(
            _request(),
            to(f"../{way_back(begun.to)}"),
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
            _refuse_forged(form_of(_request()), bearer)
            bootstrap.sessions().end(person.tenant, person.kid)
        return sent(_request(), to("sign-in"), cookie(SESSION, "", _DELETED))

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
    """Answer with a screen to whoever is signed in; lead everybody else to the sign-in."""
    request = _request()
    path = request.to_original_event().get("path") or "/"
    if route.path == "/" and not path.endswith("/"):
        # Links of the first page are relative to the root of the console.
        return sent(request, to("console/"))
    person, bearer = _signed_in()
    if person is None:
        return sent(request, _to_sign_in(route, named))
    try:
        page = _page(route, named, person, bearer)
    except Exception as error:  # noqa: BLE001 - becomes a page; a fault is logged
        page = _failed(error)
        if page.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            # Only whoever is signed in may ring the alarm.
            metrics.add_metric(ServiceMetric.FAULTS, "Count", 1)
    own = {
        "person": person,
        "is_admin": person.may(PersonRole.ADMIN),
        "form_token": csrf_token(bearer),
    }
    return _shown(replace(page, given={**page.given, **own}))


def _page(route: HostedRoute, named: Mapping[str, str], person: Principal, bearer: str) -> Page:
    http, now = _request(), bootstrap.clock().now()
    count(bootstrap.members(), person.kid, "screens", most=SCREENS_PER_MINUTE, now=now)
    form = form_of(http) if route.method == "POST" else {}
    if route.method == "POST":
        _refuse_forged(form, bearer)
    cluster = _cluster(person, named["cluster"]) if "cluster" in named else ""
    request = PageRequest(
        named=named, query=query_of(http), form=form, fragment=place_of(http).fragment
    )
    stack = bootstrap.interruption_stack()
    registered = stack.registered(cluster, now) if stack is not None and cluster else None
    asked = Asked(
        person=person,
        now=now,
        data=bootstrap.tenants().of(person.tenant),
        reads=bootstrap.reads(),
        people=bootstrap.people(),
        members=bootstrap.members(),
        stack=stack,
        storms=TenantStorms(
            stack=stack,
            registered={named["cluster"]: registered} if registered is not None else {},
            time=now,
            at=request.number("at"),
            title=person.tenant,
        ),
        ask_for_advice=lambda of: bootstrap.advice_queue().send(
            [AdviceRequest(tenant=person.tenant, cluster=of, at=now)]
        ),
        cluster=cluster,
    )
    return route.view(request, asked)


def _cluster(person: Principal, name: str) -> str:
    """Return the id of a cluster that the person may see, by its name in the tenant or in the interruption stack.

    Raises:
        NotFound: there is none of that name, or the person may not see it.
    """
    data, now = bootstrap.tenants().of(person.tenant), bootstrap.clock().now()
    found: str | None = subject_of(person.tenant, Role.AGENT, name)
    stack = bootstrap.interruption_stack()
    if found is not None and not has_cluster(data, found):
        # The message of a storm links to the name that its stack knows.
        ours = [row.id for row in cluster_rows(data, now)]
        found = stack.agent_of(name, ours, now) if stack else None
    if found is None or not person.may(PersonRole.VIEWER, found):
        raise NotFound(f"there is no cluster {name[:64]}")
    return found


def _signed_in() -> tuple[Principal | None, str]:
    """Return who holds the session of the cookie, and its secret; None: nobody, or it has ended."""
    bearer = cookies_of(_request()).get(SESSION, "")
    read = Bearer.read(bearer)
    # The token of a program opens the API, and no screen.
    if read is None or read.kind is not BearerKind.SESSION:
        return None, ""
    return bootstrap.sessions().find(bearer, bootstrap.clock().now()), bearer


def _refuse_forged(form: Mapping[str, str], bearer: str) -> None:
    """Let only what one of our own pages sent pass.

    Raises:
        Forbidden: another site sent it, or a page of another session.
    """
    site, ours = header(_request(), "sec-fetch-site"), urlsplit(bootstrap.config().console_url)
    origin = header(_request(), "origin")
    same = site == "same-origin" if site else origin == f"{ours.scheme}://{ours.netloc}"
    given = form.get("csrf", "").encode()
    if not same or not compare_digest(given, csrf_token(bearer).encode()):
        raise Forbidden("another site sent this, or the page is old: load it again")


def _to_sign_in(route: HostedRoute, named: Mapping[str, str]) -> Answer:
    place = place_of(_request())
    if place.fragment:  # what is shown stays, and grows old
        return Answer(status=401)
    query = query_of(_request()) if route.method == "GET" else {}
    parts = [named.get(part.strip("{}"), part) for part in route.path.strip("/").split("/")]
    way = way_back(url(*parts, **query)) if route.path != "/" else ""
    return to(place.root + url("sign-in", to=way))


def _wanted() -> tuple[str, str]:
    """Return where the person wants to go after the sign-in, and the tenant that was named."""
    query = query_of(_request())
    return way_back(query.get("to", "")), query.get("tenant", "")[:_LONGEST_TENANT]


def _sign_in_page(
    title: str, way: str, tenant: str, *, why: str = "", status: int = 200
) -> Response:
    root = place_of(_request()).root
    given = {
        "title": title,
        "why": why,
        "sign_in": f"{root}sign-in",
        "to": way,
        "tenant": tenant,
        "begin": root + url("sign-in", "begin", to=way, tenant=tenant),
        "issuer": urlsplit(bootstrap.relying_party().client.issuer).hostname,
    }
    return _shown(Page(template="hosted/sign_in.html.j2", given=given, status=status))


def _guarded(answering: Callable[[], Response]) -> Response:
    """Answer; with a page where that fails."""
    try:
        return answering()
    except Exception as error:  # noqa: BLE001 - becomes a page; a fault is logged
        return _shown(_failed(error))


def _failed(error: Exception) -> Page:
    status = status_of(error)
    note(error)
    given = {"title": _TITLES.get(status, f"{status.phrase}."), "cure": detail_of(error)}
    return Page(template="error.html.j2", given=given, status=status)


def _shown(page: Page) -> Response:
    source = TenantStorms(stack=None, registered={}, time=bootstrap.clock().now())
    return sent(_request(), answer(page, place_of(_request()), source))


def _redirect_uri() -> str:
    return f"{bootstrap.config().console_url.rstrip('/')}/sign-in/callback"


def _count_address() -> None:
    """Count a request of nobody yet against the limit of the address that it comes from."""
    address = _request().context["identity"]["sourceIp"]
    now = bootstrap.clock().now()
    count(bootstrap.members(), address, "sign-ins", most=SIGN_INS_PER_MINUTE, now=now)


def _request() -> Request:
    request = app.current_request
    if request is None:
        raise BadInput("this is no request of API Gateway")
    return request
