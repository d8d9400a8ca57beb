"""Objects of frameworks read into the terms of the queues, each by the row of its kind.

Tenants write them. What an object says of itself and cannot be queued is said in words in its `wrong`, so that its own
gang waits for it; an object that cannot be read at all is left out by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import prod
from typing import Any, Final

import msgspec
from msgspec import Raw

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import Json, decoded, naming, raw
from plimsoll.adapters.kubernetes.scheduling import read_scheduling
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import LIST_LIMIT_ITEMS, clip
from plimsoll.domain.kubernetes import Ref
from plimsoll_batch.adapters.kubernetes.job_reader import MOST_PODS, MOST_SECONDS, TELL, Asked
from plimsoll_batch.adapters.kubernetes.pod_admission import PodAdmission
from plimsoll_batch.adapters.kubernetes.spark_amounts import pod_spec
from plimsoll_batch.domain import names
from plimsoll_batch.domain.frameworks import (
    Form,
    Framework,
    Path,
    RoleSource,
    all_at,
    at,
    is_child,
)
from plimsoll_batch.domain.jobs import MOST_ROLES, Job, PodOwner, PodSet

_SUSPENDED: Final = "Suspended"
"""A condition, of all kinds whose status counts what has succeeded."""
_LONGEST_VALUE: Final = 63
"""Characters of the value of a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkObject:
    """An object, and what it belongs to."""

    job: Job
    document: Json
    parent: Ref | None
    """The object that its controller is, where that is queued as a whole; None: it is the outermost."""


def framework_reader(
    row: Framework, admission: PodAdmission
) -> Callable[[Json | Raw], FrameworkObject]:
    """Return what reads an object of a kind; its pods count as admission will make them."""

    @naming(row.kind)
    def read(obj: Raw) -> FrameworkObject:
        meta = decoded(obj, schema.Named).metadata
        document = msgspec.json.decode(obj)
        owner = meta.controller
        child = owner is not None and is_child(row.kind, owner.kind)
        return FrameworkObject(
            job=_job(row, document, meta, admission),
            document=document,
            parent=Ref(owner.kind, meta.namespace, owner.name)
            if owner is not None and child
            else None,
        )

    return read


def outermost(found: Iterable[FrameworkObject], admission: PodAdmission) -> Sequence[Job]:
    """Return the objects that name a queue and belong to no other, with what their children say of them.

    Args:
        found: objects of all kinds that are read.
        admission: what it does to pods.
    """
    children: dict[Ref, list[FrameworkObject]] = {}
    roots = []
    for each in found:
        if each.parent is not None:
            children.setdefault(each.parent, []).append(each)
        elif each.job.queue:
            roots.append(each)
    return [_with_children(each, children.get(each.job.ref, ()), admission) for each in roots]


def _with_children(
    one: FrameworkObject, children: Sequence[FrameworkObject], admission: PodAdmission
) -> Job:
    job = one.job
    labels = dict.fromkeys(job.pod_labels)
    labels |= dict.fromkeys(label for child in children for label in child.job.pod_labels)
    job = replace(job, pod_labels=tuple(labels))
    kind = job.framework.shape_of
    if kind is None:
        return job
    shaped = next(
        (c for c in children if c.job.ref.kind == kind and c.job.ref.name == job.ref.name), None
    )
    if shaped is None:
        return replace(job, gates=(f"its {kind} is not there yet",))
    asked = Asked(decoded(raw(one.document), schema.Named).metadata)
    wrong = list(job.wrong)
    try:
        sets = _sets(shaped.job.framework, shaped.document, asked, admission)
    except BadInput as error:
        return replace(job, wrong=(*wrong, f"its {kind}: {error}"))
    wrong += [f"its {kind}: {words}" for words in _refused(shaped.job.framework, shaped.document)]
    if job.suspended:
        wrong += asked.wrong
    # The child carries no node selector that the overrides of its parent do not say.
    sets = [replace(each, at=()) for each in sets]
    total = _total(sets)
    if not job.suspended:
        sets = _left(sets, shaped.job.framework, shaped.document)
    return replace(job, sets=tuple(sets), parallelism=total, wrong=tuple(dict.fromkeys(wrong)))


def _job(row: Framework, document: Json, meta: schema.Metadata, admission: PodAdmission) -> Job:
    asked = Asked(meta)
    suspended = at(document, row.suspend) is True
    fields = asked.fields()
    on_interruption = meta.annotations.get(names.ON_INTERRUPTION)
    wrong = [*asked.wrong, *_refused(row, document), *_of_jobs_alone(row, meta)]
    asked.wrong.clear()
    sets = [] if row.shape_of else _sets(row, document, asked, admission)
    if suspended:
        wrong += asked.wrong
    if not sets and row.shape_of is None:
        wrong.append("it asks for no pods")
    twice = Counter(each.name for each in sets)
    wrong += [f"two of its roles are called {name}" for name, count in twice.items() if count > 1]
    complete, failed = _ended(row, document)
    total = _total(sets)
    if not suspended:
        sets = _left(sets, row, document)
    return Job(
        **fields,
        ref=Ref(row.kind, meta.namespace, meta.name),
        framework=row,
        limit=_limit(row, document),
        leaves_whole=on_interruption == "suspend",
        suspended=suspended,
        parallelism=total,
        made_pods=any(found for path in row.made_pods for found in all_at(document, path)),
        finished=complete or failed,
        failure=failed,
        sets=tuple(sets),
        pod_labels=tuple(_pod_labels(row, document)),
        overrides=() if row.overrides is None else tuple(_overrides(row.overrides, document)),
        wrong=tuple(wrong),
    )


def _limit(row: Framework, document: Json) -> timedelta | None:
    said = None if row.limit is None else at(document, row.limit)
    if not isinstance(said, int) or not 0 < said <= MOST_SECONDS:
        return None
    return timedelta(seconds=said)


def _of_jobs_alone(row: Framework, meta: schema.Metadata) -> Iterator[str]:
    """Say which annotations of a Job an object of a framework cannot have."""
    if names.LIFECYCLE in meta.annotations:
        yield f"annotation {names.LIFECYCLE}: is of Jobs: a {row.kind} has policies of its own"
    said = meta.annotations.get(names.ON_INTERRUPTION, "suspend")
    if said != "suspend":
        yield (
            f"annotation {names.ON_INTERRUPTION}: must be suspend, not {clip(said)}"
            + (": its pods are told as those of other gangs, without it" if said == TELL else "")
        )


def _refused(row: Framework, document: Json) -> list[str]:
    return [each.why for each in row.refuses if not each.must.holds(document)]


def _ended(row: Framework, document: Json) -> tuple[bool, bool]:
    """Return whether an object is complete, and whether it has failed."""
    if row.ended is None:
        return False, False
    path = row.ended.path
    there = _conditions(document) if path is None else {str(at(document, path))}
    return bool(there & row.ended.complete), bool(there & row.ended.failed)


def _conditions(document: Json) -> set[str]:
    """Return the types of the conditions that are true."""
    return {
        str(each.get("type"))
        for each in _listed(document, ("status", "conditions"))
        if isinstance(each, Mapping) and each.get("status") == "True"
    }


def _pod_labels(row: Framework, document: Json) -> Iterator[PodOwner]:
    for each in row.pods:
        value = at(document, each.value)
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_VALUE:
            yield PodOwner(label=each.label, value=value, owners=each.owners)


def _overrides(path: Path, document: Json) -> Iterator[Mapping[str, Any]]:
    for each in _listed(document, path):
        if not isinstance(each, Mapping):
            raise BadInput(f"{'.'.join(path)}: must hold objects")
        yield each


def _listed(document: Json, path: Path) -> Sequence[Any]:
    found = at(document, path)
    if found is None:
        return ()
    if not isinstance(found, list) or len(found) > LIST_LIMIT_ITEMS:
        raise BadInput(f"{'.'.join(path)}: must be a list of at most {LIST_LIMIT_ITEMS}")
    return found


def _total(sets: Sequence[PodSet]) -> int:
    total = sum(each.pods for each in sets)
    if total > MOST_PODS:
        raise BadInput(f"has {total} pods, more than {MOST_PODS}")
    return total


def _sets(row: Framework, document: Json, asked: Asked, admission: PodAdmission) -> list[PodSet]:
    """Return the pods of an object by role, those of no pods left out."""
    found = []
    for source in row.roles:
        if source.only is not None and not source.only.holds(document):
            continue
        for name, entry, path in _entries(source, document):
            pods = prod(_count(entry, each.path, each.default, each.most) for each in source.counts)
            if pods:
                found.append(_set(source, document, (name, entry, path), pods, asked, admission))
            if len(found) > MOST_ROLES:
                raise BadInput(f"has more than {MOST_ROLES} roles")
    return found


def _left(sets: Sequence[PodSet], row: Framework, document: Json) -> list[PodSet]:
    """Return the pods of a running object without those that have succeeded for good: these hold no quota any more.

    Until its operator has seen that it was started again, its status counts what succeeded in the run before.
    """
    repeats = row.repeats_nothing is not None and not row.repeats_nothing.holds(document)
    if repeats or _SUSPENDED in _conditions(document):
        return [*sets]
    succeeded: Counter[str] = Counter()
    for source in row.roles:
        if source.succeeded:
            *where, field = source.succeeded
            roles = at(document, tuple(where))
            for name, entry, path in _entries(source, document):
                of_one = prod(
                    _count(entry, each.path, each.default, each.most) for each in source.counts[1:]
                )
                said = at(_of_role(roles, source, path[-1], name), (field,))
                if isinstance(said, int):
                    succeeded[name] += max(said, 0) * of_one
    return [replace(each, pods=max(each.pods - succeeded[each.name], 0)) for each in sets]


def _of_role(roles: Any, source: RoleSource, key: str | int, name: str) -> Any:
    """Return what the status says of a role: the entry of a map by its key, of a list by its name."""
    if source.form is Form.MAP:
        return at(roles, (str(key),))
    listed = roles if isinstance(roles, list) else ()
    return next((each for each in listed if at(each, (source.name,)) == name), None)


type _Entry = tuple[str, Json, tuple[str | int, ...]]
"""Name of a role, what stands there, and where."""


def _entries(source: RoleSource, document: Json) -> Iterator[_Entry]:
    where = ".".join(source.entries)
    if source.form is Form.LIST:
        for number, each in enumerate(_listed(document, source.entries)):
            name = at(each, (source.name,))
            if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_VALUE:
                raise BadInput(f"{where}[{number}].{source.name}: must be a name, not {clip(name)}")
            yield name, each, (*source.entries, number)
        return
    found = at(document, source.entries)
    if not isinstance(found, Mapping):
        raise BadInput(f"{where}: must be an object, not {clip(found)}")
    if source.form is Form.ONE:
        yield source.name, found, source.entries
        return
    for key, each in found.items():
        if not isinstance(each, Mapping):
            raise BadInput(f"{where}.{clip(key)}: must be an object")
        yield key.lower()[:_LONGEST_VALUE], each, (*source.entries, key)


def _count(entry: Json, path: Path, default: int, most: Path | None) -> int:
    found, limit = at(entry, path), None if most is None else at(entry, most)
    count = default if found is None else found
    for number in (count, 0 if limit is None else limit):
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MOST_PODS:
            raise BadInput(f"{'.'.join(path)}: must be from 0 to {MOST_PODS}, not {clip(number)}")
    return int(count if limit is None else min(count, limit))


def _set(  # noqa: PLR0913, PLR0917 - what a role is read from
    source: RoleSource,
    document: Json,
    entry: _Entry,
    pods: int,
    asked: Asked,
    admission: PodAdmission,
) -> PodSet:
    name, there, path = entry
    template: Any = at(there, source.template)
    where: tuple[str | int, ...] | None = (*path, *source.template)
    labels: Any = at(there, (*source.template[:-1], "metadata", "labels"))
    if source.amounts:
        template, labels = pod_spec(document, there), at(there, ("labels",))
    elif template is None and source.default:
        container = {"name": name, "resources": {"requests": dict(source.default)}}
        template, where = {"containers": [container]}, None
    if not isinstance(template, Mapping):
        raise BadInput(f"role {name}: has no template of its pods")
    spec = decoded(raw(template), schema.PodSpec)
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        asked.wrong.append(
            f"role {name}: schedulingGroup: the planner makes PodGroups of Jobs only"
        )
    meant, refused = admission.admitted(asked.namespace, asked.unsteered(spec, name))
    asked.wrong += [f"role {name}: its pods: {words}" for words in refused]
    pod_labels = labels if isinstance(labels, Mapping) else {}
    return PodSet(
        name=name,
        pods=pods,
        scheduling=read_scheduling(meant, pod_labels),
        labels=pod_labels,
        selector=spec.node_selector,
        tolerations=tuple(_listed(template, ("tolerations",))),
        at=where,
    )
