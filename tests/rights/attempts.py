"""Reads `attempts.yaml`, and sends what it holds to an API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.adapters.kubernetes import Response, Transport
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.domain.kubernetes import DO_NOT_DISRUPT, GUARD, POD_TEMPLATE_HASH, PROTECTED, RELEASED
from tests.cluster.installed import message_of, until
from tests.support.fake_clusters import STRATEGIC

type Json = dict[str, Any]

FILE: Final = Path(__file__).with_name("attempts.yaml")
VERBS: Final = ("patch", "strategic", "create", "evict", "delete")


def patch(api: Transport, path: str, body: Json, **query: str) -> Response:
    return api.call("PATCH", path, query=query, body=body, content_type=MERGE_PATCH)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A row of `attempts.yaml`, which explains its parts."""

    name: str
    verb: str
    body: object
    of: str
    at: str = ""
    by: str = ""
    says: str | None = None
    given: object = None
    lifts: bool = False
    real: bool = False
    invalid: bool = False

    def __str__(self) -> str:
        return self.name


def attempts(identity: str) -> list[Attempt]:
    """Return the rows of whoever is so called."""
    claims = yaml.safe_load(FILE.read_text(encoding="utf-8"))[identity]
    return [
        row
        for claim, rows in claims.items()
        for name, own in rows.items()
        if name != "all"
        for row in _rows(f"{claim}: {name}", rows.get("all", {}) | own)
    ]


def _rows(name: str, found: Json) -> Iterator[Attempt]:
    for key in found.pop("each", [""]):
        row = json.loads(json.dumps(found).replace("KEY", key))
        (verb,) = (verb for verb in VERBS if verb in row)
        body = row.pop(verb)
        yield Attempt(name=f"{name} {key}".replace("KEY ", "").strip(), verb=verb, body=body, **row)


@dataclass
class Playground:
    """Objects to send requests about. What is refused or a dry run changes nothing, so attempts share them."""

    admin: Transport
    paths: Mapping[str, Callable[[], str]]
    settled: Callable[[], bool] = lambda: True
    """Whether controllers are done with what was given and taken back."""

    def judge(self, api: Transport, row: Attempt) -> None:
        """Send the request of a row, and assert that it is answered as the row says."""
        path = self.paths[row.of]()
        body = Computed(self, path).of(row.body)
        if row.given is None:
            check(row, send(api, row, path, body))
            return
        with self.given(row.at or row.of, row.given):
            if row.lifts:
                until(lambda: send(api, row, path, body).status >= 400)
            check(row, send(api, row, path, body))
        if row.lifts:
            until(lambda: send(api, row, path, body).status < 300)

    @contextmanager
    def given(self, on: str, body: object) -> Iterator[None]:
        """Let an administrator write something, and take it back."""
        path = self.paths[on]()
        before = self.get(path)
        written = Computed(self, path).of(body)
        assert patch(self.admin, path, written).status == 200
        try:
            yield
        finally:
            assert patch(self.admin, path, undone(before, written)).status == 200
        until(self.settled)

    def get(self, path: str) -> Json:
        answer = self.admin.call("GET", path)
        assert answer.status == 200, answer.body
        return dict(answer.body)


def send(api: Transport, row: Attempt, path: str, body: Json) -> Response:
    dry = {} if row.real else {"dryRun": "All"}
    match row.verb:
        case "evict":
            metadata = {"name": path.rpartition("/")[2]}
            eviction = {"metadata": metadata, "deleteOptions": {**body, "dryRun": ["All"]}}
            return api.call("POST", f"{path}/eviction", body=eviction)
        case "delete" if body:
            return api.call("DELETE", path, body={**body, "dryRun": ["All"]})
        case "delete":
            return api.call("DELETE", path, query=dry)
        case "create":
            return api.call("POST", path, query=dry, body=body)
        case "strategic":
            return api.call("PATCH", path, query=dry, body=body, content_type=STRATEGIC)
        case _:
            return patch(api, path, body, **dry)


def check(row: Attempt, answer: Response) -> None:
    said = f"{row}: {message_of(answer)}"
    if row.says is None:
        assert answer.status in {200, 201}, said
    else:
        assert answer.status in ({403, 422} if row.invalid else {403}), said
        assert answer.status == 422 or row.says in said, said
    if row.says is not None and row.by:
        assert f"'plimsoll-{row.by}'" in said
        assert "another identity" in said, said


def undone(before: Json, written: Json) -> Json:
    """Return the merge patch that takes another one back."""
    return {
        key: undone(before.get(key) or {}, value) if isinstance(value, dict) else before.get(key)
        for key, value in written.items()
    }


def merged(obj: Json, patch: Json) -> Json:
    """Return an object after a merge patch."""
    found = {key: value for key, value in obj.items() if patch.get(key, "") is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            found[key] = merged(found.get(key, {}), value)
        elif value is not None:
            found[key] = value
    return found


@dataclass
class Computed:
    """The bodies that depend on what is in the cluster, in the file with a $."""

    ground: Playground
    path: str
    _seen: Json = field(default_factory=dict)

    def of(self, body: Any) -> Any:
        match body:
            case str() if body.startswith("$"):
                return getattr(self, body[1:])()
            case dict() if len(body) == 1 and next(iter(body)).startswith("$"):
                ((name, value),) = body.items()
                make = getattr(self, name[1:])
                return make(**self.of(value)) if isinstance(value, dict) else make(value)
            case dict():
                return {key: self.of(value) for key, value in body.items()}
            case list():
                return [self.of(value) for value in body]
            case _:
                return body

    @property
    def seen(self) -> Json:
        """The object as it was before."""
        self._seen = self._seen or self.ground.get(self.path)
        return self._seen

    @staticmethod
    def theirs() -> Json:
        return {"key": "theirs", "value": "1", "effect": "PreferNoSchedule"}

    @staticmethod
    def long(characters: int) -> str:
        return "x" * characters

    def uid(self) -> Json:
        return {"preconditions": {"uid": self.seen["metadata"]["uid"]}}

    def age(self, seconds: float) -> str:
        """Return the age of a pod so many seconds from now, as Karpenter counts it."""
        started = datetime.fromisoformat(self.seen["status"]["startTime"])
        return f"{int((datetime.now(UTC) - started).total_seconds() + seconds)}s"

    def protect(self, age: int | str | None) -> Json:
        """Return the patch that has Karpenter leave a pod alone up to an age, or for some seconds from now."""
        duration = self.age(age) if isinstance(age, int) else age
        return {"metadata": {"annotations": {DO_NOT_DISRUPT: duration, PROTECTED: duration}}}

    def release(
        self,
        above: Json | None = None,
        below: Json | None = None,
        owners: tuple[int, ...] = (0, 1),
        **more: Any,
    ) -> Json:
        """Return the patch that releases a pod of web, with changes of its owners where some are given."""
        deployment = self.ground.get(self.ground.paths["deployment"]())["metadata"]
        [replica_set] = self.seen["metadata"]["ownerReferences"]
        named = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["name"]}
        owner = {**named, "uid": deployment["uid"], "controller": True, "blockOwnerDeletion": False}
        kept = {**replica_set, "controller": False, "blockOwnerDeletion": False}
        both = [owner | (above or {}), kept | (below or {})]
        return self._handed(None, "i-1@noon", [both[i] for i in owners], **more)

    def back(self, owner: Json | None = None, **more: Any) -> Json:
        """Return the patch that hands a released pod back to its ReplicaSet, or to another one."""
        meta = self.seen["metadata"]
        made = meta["ownerReferences"][0] | {"blockOwnerDeletion": False} | (owner or {})
        return self._handed(meta["labels"][POD_TEMPLATE_HASH], None, [made], **more)

    def _handed(
        self,
        label: str | None,
        mark: str | None,
        owners: list[Json],
        parts: tuple[str, ...] = ("labels", "annotations", "ownerReferences"),
        protect: Any = "",
    ) -> Json:
        whole: Json = {
            "labels": {POD_TEMPLATE_HASH: label},
            "annotations": {RELEASED: mark},
            "ownerReferences": owners,
        }
        if protect != "":
            whole["annotations"] |= self.protect(protect)["metadata"]["annotations"]
        return {"metadata": {part: whole[part] for part in parts}}

    def entries(self, admin: Json | None = None, more: tuple[Json, ...] = ()) -> Json:
        """Return the managedFields of an object, that of an administrator changed, or with others after them."""
        found = [
            merged(entry, admin or {}) if "f:theirs" in str(entry) else entry
            for entry in self.seen["metadata"]["managedFields"]
        ]
        return {"metadata": {"managedFields": [*found, *map(self.entry, more)]}}

    @staticmethod
    def entry(says: Json) -> Json:
        """Return an entry that claims a label of others."""
        fields: Json = {"f:metadata": {"f:labels": {"f:theirs": {}}}}
        form = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        return {**form, "fieldsV1": fields, **says}

    def event(self, **changes: Any) -> Json:
        """Return an Event about a pod of web, or about something else."""
        meta = self.ground.get(self.ground.paths["pod"]())["metadata"]
        involved = {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"]}
        return {
            "metadata": {"name": f"plimsoll.{'0' * 32}"},
            "involvedObject": involved,
            "source": {"component": "plimsoll"},
            "type": "Normal",
            "reason": "Evicted",
            "message": "a test",
        } | changes

    def budget(self, name: str = "plimsoll-new", labels: Json | None = None, **spec: Any) -> Json:
        meta = {"name": name, "labels": {GUARD: "true"} if labels is None else labels}
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {"selector": {"matchLabels": {"app": "none"}}, **spec},
        }
