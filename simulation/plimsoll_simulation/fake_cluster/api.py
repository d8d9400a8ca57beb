"""The REST surface of the API server, without a network: a request in, an answer out.

Sources: https://kubernetes.io/docs/reference/using-api/api-concepts/ and the pages it links. Left
out: authentication and authorization (see `serve`), server-side apply, tables,
protobuf. A watch is not a request here: it follows `Store.since` (see `serve`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll_simulation.fake_cluster.admission import admitted, readmitted
from plimsoll_simulation.fake_cluster.deletion import DeleteOptions, delete
from plimsoll_simulation.fake_cluster.discovery import discovered, reviewed
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.patches import patched
from plimsoll_simulation.fake_cluster.queries import continue_after, parse_continue, test_of
from plimsoll_simulation.fake_cluster.refusals import (
    RefusedError,
    bad_request,
    invalid,
    method_not_allowed,
    no_such_page,
)
from plimsoll_simulation.fake_cluster.routes import Target, target_of
from plimsoll_simulation.fake_cluster.store import Store, key_of
from plimsoll_simulation.fake_cluster.subresources import Request, serve_of
from plimsoll_simulation.fake_cluster.webhooks import ask


class FakeApi:
    """The verbs over one store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def handle(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        *,
        now: datetime,
        user: str = "",
    ) -> Response:
        """Answer one request. Refusals are answers too: nothing is raised for a bad request.

        The body is shared with the store: read it, never change it.

        Args:
            method: GET, POST, PUT, PATCH or DELETE.
            path: without the query, for example `/api/v1/nodes/a`.
            query: its parameters, one value each.
            body: the parsed JSON.
            content_type: of the body; says which kind of patch a PATCH is.
            now: the time of the request.
            user: the client's user agent, for whoever watches the requests.
        """
        try:
            page = discovered(path) if method == "GET" else None
            if page is not None:
                return Response(status=200, body=page)
            review = reviewed(path, body) if method == "POST" else None
            if review is not None:
                return Response(status=201, body=review)
            target = target_of(path)
            if target is None:
                raise no_such_page()
            request = Request(
                method=method,
                target=target,
                query=query or {},
                body=body,
                content_type=content_type,
                now=now,
                user=user,
            )
            return self.answer(request)
        except RefusedError as refused:
            wait = refused.retry_after
            headers = {} if wait is None else {"retry-after": str(wait)}
            return Response(status=refused.code, body=refused.status, headers=headers)

    def answer(self, request: Request) -> Response:
        """Answer a request about objects.

        Raises:
            RefusedError: as the server refuses it.
        """
        target = request.target
        if target.subresource is not None:
            status, body = serve_of(target.resource.plural, target.subresource)(self.store, request)
            return Response(status=status, body=body)
        match request.method, target.name:
            case "GET", None:
                body = self._list(target, request.query)
            case "GET", str():
                body = request.found(self.store)
            case "POST", None:
                return Response(status=201, body=self.create(request))
            case "PUT" | "PATCH", str():
                body = self._change(request)
            case "DELETE", str(name):
                body = self._delete(request, name)
            case "DELETE", None:
                body = self._delete_all(request)
            case _:
                raise method_not_allowed()
        return Response(status=200, body=body)

    def _list(self, target: Target, query: Mapping[str, str]) -> Json:
        passes = test_of(target.resource.plural, query)
        line, store = target.resource, self.store
        meta: Json = {"resourceVersion": str(store.revision)}
        token = query.get("continue")
        start = parse_continue(token) if token else None
        keys = store.keys(line.plural, target.namespace, after=start)
        found = (o for key in keys if passes(o := store.must_get(line.plural, *key)))
        limit = int(query.get("limit") or 0)
        items = list(islice(found, limit + 1) if limit else found)
        if limit and len(items) > limit:
            items.pop()
            meta["continue"] = continue_after(key_of(items[-1]), store.revision)
            if not (query.get("labelSelector") or query.get("fieldSelector")):
                # As in the real server, which does not know it where it would have to look.
                meta["remainingItemCount"] = len(keys) - limit
        return {
            "apiVersion": line.api_version,
            "kind": f"{line.kind}List",
            "metadata": meta,
            "items": items,
        }

    def create(self, request: Request) -> Json:
        """Store a new object.

        Raises:
            RefusedError: 404 no such namespace, 409 the name is taken, 422 it is wrong.
        """
        target, obj = request.target, request.body
        if not isinstance(obj, dict):
            raise bad_request("the body is not an object")
        meta = {**(obj.get("metadata") or {})}
        if target.namespace is not None:
            if meta.get("namespace", target.namespace) != target.namespace:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            meta["namespace"] = target.namespace
        elif target.resource.namespaced:
            raise method_not_allowed()
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + self.store.identities.suffix()
        line = target.resource
        kind = {"apiVersion": line.api_version, "kind": line.kind}
        obj = admitted(line, {**obj, **kind, "metadata": meta}, self.store, request.now)
        if request.dry_run:
            return obj
        return self.store.create(target.resource.plural, obj, now=request.now)

    def _change(self, request: Request) -> Json:
        line = request.target.resource
        before = request.found(self.store)
        if request.method == "PUT":
            obj = request.named_body(before)
        else:
            obj = patched(before, request.body, request.content_type)
            if obj["metadata"].get("uid") != before["metadata"]["uid"]:
                raise invalid(line, request.name, "metadata.uid", "field is immutable")
        if key_of(obj) != key_of(before):
            raise bad_request("the name of the object does not match the name on the URL")
        if line.status:
            obj = {**obj, "status": before.get("status", {})}
        readmitted(line, obj, before, self.store)
        if request.dry_run:
            return obj
        return self.store.replace(line.plural, obj, now=request.now)

    def _delete(self, request: Request, name: str) -> Json:
        line = request.target.resource
        obj = request.found(self.store)
        options = DeleteOptions.parse(request.body, request.query)
        ask("DELETE", line.plural, obj, self.store)
        gone = delete(self.store, line.plural, obj, options, now=request.now)
        if line.plural == "pods":
            return gone
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": name, "kind": line.plural, "uid": obj["metadata"]["uid"]},
        }

    def _delete_all(self, request: Request) -> Json:
        target = request.target
        options = DeleteOptions.parse(request.body, request.query)
        found = self._list(target, request.query)
        for obj in found["items"]:
            delete(self.store, target.resource.plural, obj, options, now=request.now)
        return found
