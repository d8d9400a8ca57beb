"""Refusals in the exact shape of the API server: a Status object, and a Retry-After where it says.

Clients decide by `code`, `reason` and `details.causes`, so these are as in
k8s.io/apimachinery/pkg/api/errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll_simulation.fake_cluster.edits import Json, put
from plimsoll_simulation.fake_cluster.resources import Resource


class RefusedError(Exception):
    """A request that the API server refuses; `status` is the body of its answer."""

    def __init__(self, status: Json) -> None:
        super().__init__(status.get("message"))
        self.status = status

    @property
    def code(self) -> int:
        """The HTTP status."""
        return int(self.status["code"])

    @property
    def retry_after(self) -> int | None:
        """Seconds the client is asked to wait, where it is asked."""
        seconds = self.status.get("details", {}).get("retryAfterSeconds")
        return None if seconds is None else int(seconds)


def _status(code: int, reason: str, message: str, details: Json | None = None) -> RefusedError:
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details is not None:
        status["details"] = details
    return RefusedError(status)


def _details(resource: Resource, name: str) -> Json:
    details: Json = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return details


def bad_request(message: str) -> RefusedError:
    """400: the request itself makes no sense."""
    return _status(400, "BadRequest", message)


def unauthorized() -> RefusedError:
    """401: no token, or a wrong one."""
    return _status(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, why: str, *, cause: str | None = None) -> RefusedError:
    """403: an admission plugin says no."""
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    causes = {} if cause is None else {"causes": [{"reason": cause}]}
    return _status(403, "Forbidden", message, {**_details(resource, name), **causes})


def denied(webhook: str, code: int) -> RefusedError:
    """The code that an admission webhook gives for its denial, without a reason or words of its own."""
    return _bare(code, f'admission webhook "{webhook}" denied the request without explanation')


def not_called(webhook: str) -> RefusedError:
    """500: an admission webhook that must be asked does not answer."""
    why = f'failed calling webhook "{webhook}": failed to call webhook'
    details = {"causes": [{"message": why}]}
    return _status(500, "InternalError", f"Internal error occurred: {why}", details)


def not_found(resource: Resource, name: str) -> RefusedError:
    """404: no such object."""
    message = f'{resource.qualified} "{name}" not found'
    return _status(404, "NotFound", message, _details(resource, name))


def no_such_page() -> RefusedError:
    """404: no such path."""
    return _status(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> RefusedError:
    """405: this verb is not served here."""
    return _status(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
    )


def already_exists(resource: Resource, name: str) -> RefusedError:
    """409: the name is taken."""
    message = f'{resource.qualified} "{name}" already exists'
    return _status(409, "AlreadyExists", message, _details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> RefusedError:
    """409: the object is not what the client thinks it is."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return _status(409, "Conflict", message, _details(resource, name))


STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def expired(oldest: int, asked: int) -> RefusedError:
    """410: the watch or the list continues from a version that is no longer kept."""
    return _status(410, "Expired", f"too old resource version: {asked} ({oldest})")


def unsupported_media(content_type: str) -> RefusedError:
    """415: a patch of a kind that is not served."""
    return _status(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, "
        f"application/strategic-merge-patch+json (not {content_type})",
        {},
    )


def unfit() -> RefusedError:
    """422: a JSON patch that cannot be applied to the object as it is. The real server does not say why.

    Source: NewGenericServerResponse in k8s.io/apimachinery/pkg/api/errors.
    """
    message = "the server rejected our request due to an error in our request"
    return _status(422, "Invalid", message, {})


def invalid(resource: Resource, name: str, field: str, why: str) -> RefusedError:
    """422: a field is wrong."""
    message = f'{resource.kind}{f".{resource.group}" if resource.group else ""} "{name}" is invalid: {field}: {why}'
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    details = {**_details(resource, name), "kind": resource.kind, "causes": causes}
    return _status(422, "Invalid", message, details)


def too_many_requests(
    message: str, *, retry_after: int | None, causes: Sequence[Json] = ()
) -> RefusedError:
    """429: with causes, a budget's answer; without them, the API server protects itself."""
    details: Json = {}
    if retry_after is not None:
        details["retryAfterSeconds"] = retry_after
    if causes:
        details["causes"] = list(causes)
    return _status(429, "TooManyRequests", message, details)


def internal(message: str) -> RefusedError:
    """500, as eviction answers for two budgets: a bare Status without a reason."""
    return _bare(500, message)


def _bare(code: int, message: str) -> RefusedError:
    refused = _status(code, "", message)
    return RefusedError(
        {k: v for k, v in put(refused.status, ("metadata",), {}).items() if v != ""}
    )
