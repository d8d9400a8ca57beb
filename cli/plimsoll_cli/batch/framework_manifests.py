"""What a cluster needs so that kinds of objects are queued: rights and policies, rendered from their rows.

What `infra/cluster/batch/jobs.yaml` holds is what this renders for Jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
import yaml

from plimsoll.domain.errors import BadInput
from plimsoll_batch.adapters.kubernetes.calls import GRANT, OF_ROW
from plimsoll_batch.domain import names
from plimsoll_batch.domain.frameworks import (
    FRAMEWORKS,
    JOB,
    NAMES,
    Form,
    Framework,
    Path,
    Says,
    rows_of,
)
from plimsoll_cli.terminal import say

type Manifest = Mapping[str, Any]
type Tree = Mapping[str, Tree | None]
"""Fields that may change: None wholly, else only what is named below. `LIST:FIELD` are the entries of a list by that
field, `MAP` those of a map."""

_LIST: Final = "LIST:"
_MAP: Final = "MAP"
_STEERED: Final[Tree] = {"nodeSelector": None, "tolerations": None}
_WRITTEN: Final = (names.ADMISSION, names.STOP, names.NODES)
_QUEUE: Final = f"?labels[?'{names.QUEUE}'].orValue('') != ''"
_CONTROL: Final = (
    "authorizer.group('plimsoll.dev').resource('queues').namespace(request.namespace)"
    ".check('control').allowed()"
)
_OWNED: Final = (
    "object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))"
)
_PLANNER: Final = f"'{GRANT.group}' in request.userInfo.?groups.orValue([])"
_ROLE: Final = "plimsoll-batch-frameworks"
_LONG: Final = 90
"""Characters of a text that is written over several lines."""


def rendered(frameworks: tuple[str, ...]) -> Sequence[Manifest]:
    """Return the manifests of some frameworks; without any, those of Jobs."""
    rows = rows_of(frameworks)
    if not rows:
        return [*_policies(JOB)]
    return [*_rights(rows), *(each for row in rows for each in _policies(row))]


def _policies(row: Framework) -> Iterator[Manifest]:
    yield from _bound("Validating", _fields(row))
    yield from _bound("Mutating", _suspends(row))
    yield from _bound("Validating", _waits(row))


def _rights(rows: Sequence[Framework]) -> Iterator[Manifest]:
    verbs: dict[str, tuple[str, tuple[str, ...]]]
    verbs = {row.resource: (row.group, OF_ROW) for row in rows}
    shapes = {row.shape_of for row in rows}
    for row in FRAMEWORKS:
        if row.kind in shapes and row.resource not in verbs:
            verbs[row.resource] = (row.group, ("list", "watch"))
    api = "rbac.authorization.k8s.io"
    yield {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _ROLE},
        "rules": [
            {"apiGroups": [group], "resources": [resource], "verbs": [*allowed]}
            for resource, (group, allowed) in verbs.items()
        ],
    }
    yield {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _ROLE},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": _ROLE},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": GRANT.group}],
    }


def _bound(kind: str, policy: dict[str, Any]) -> Iterator[Manifest]:
    about = {"apiVersion": "admissionregistration.k8s.io/v1"}
    name = policy.pop("name")
    yield {**about, "kind": f"{kind}AdmissionPolicy", "metadata": {"name": name}, "spec": policy}
    bound: dict[str, Any] = {"policyName": name}
    if kind == "Validating":
        bound["validationActions"] = ["Deny"]
    binding = f"{kind}AdmissionPolicyBinding"
    yield {**about, "kind": binding, "metadata": {"name": name}, "spec": bound}


def _matching(row: Framework, *operations: str, queued: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if queued:
        found["namespaceSelector"] = {"matchLabels": {names.QUEUES: "true"}}
    # Of every version: whoever asks in another one is held by the same rule.
    version = row.version if row is JOB else "*"
    found["resourceRules"] = [
        {
            "apiGroups": [row.group],
            "apiVersions": [version],
            "operations": [*operations],
            "resources": [row.resource],
        }
    ]
    return found


def _suspends(row: Framework) -> dict[str, Any]:
    """Return the policy that suspends an object which names a queue when it is created."""
    *above, last = row.suspend
    operations = [
        f"[JSONPatch{{op: 'add', path: '/{'/'.join(row.suspend)}', value: true}}]",
    ]
    for depth in range(2, len(row.suspend)):
        parts = row.suspend[:depth]
        operations.insert(
            depth - 2,
            f"(has(object.{'.'.join(parts)}) ? [] : [JSONPatch{{op: 'add', path: '/{'/'.join(parts)}', value: {{}}}}])",
        )
    inside = "".join(f".?{name}" for name in (*above[1:], last))
    return {
        "name": _queues_name(row),
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": _matching(row, "CREATE", queued=True),
        "matchConditions": [
            {"name": "names-a-queue", "expression": f"object.metadata.{_QUEUE}"},
            {"name": "is-not-suspended", "expression": f"!object.spec{inside}.orValue(false)"},
            _outermost(),
        ],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": " + ".join(operations)}}
        ],
    }


def _outermost() -> dict[str, str]:
    """Return the condition that nobody with the right to control queues made an object for one of its own."""
    return {"name": "is-no-part-of-another", "expression": f"!({_OWNED} && {_CONTROL})"}


def _queues_name(row: Framework) -> str:
    return "plimsoll-queues" if row is JOB else f"plimsoll-queues-{row.resource}"


def _waits(row: Framework) -> dict[str, Any]:
    """Return the policy by which only the planner starts what waits, and by which nothing waits that it would harm."""
    inside = "".join(f".?{name}" for name in row.suspend[1:])
    written = ", ".join(f"'{name}'" for name in _WRITTEN)
    validations: list[dict[str, str]] = [
        {
            "expression": f"oldObject == null || !oldObject.spec{inside}.orValue(false) || object.spec{inside}.orValue(false)",
            "reason": "Forbidden",
            "message": f"this {row.kind} waits in a queue, and the planner of the queues starts it. See `plimsoll jobs"
            f" why` for what it waits for, or take the label {names.QUEUES} off the namespace",
        },
        {
            "expression": f"object.metadata.{_QUEUE}",
            "reason": "Forbidden",
            "message": f"a {row.kind} that waits in a queue keeps the label {names.QUEUE}; its value may change",
        },
        {
            "expression": f"[{written}].all(k, variables.now[?k].orValue('') == variables.before[?k].orValue(''))",
            "reason": "Forbidden",
            "message": f"only the planner of the queues writes {names.ADMISSION}, {names.STOP} and {names.NODES}",
        },
    ]
    validations += [
        {
            "expression": f"oldObject != null || {_says(each.must)}",
            "reason": "Forbidden",
            "message": f"a {row.kind} in a queue: {each.why}",
        }
        for each in row.refuses
    ]
    return {
        "name": _queues_name(row),
        "failurePolicy": "Fail",
        "matchConstraints": _matching(row, "CREATE", "UPDATE", queued=True),
        "matchConditions": [
            {
                "name": "is-neither-planner-nor-administrator",
                "expression": f"!request.userInfo.?groups.orValue([]).exists(g, g in ['{GRANT.group}', 'system:masters'])",
            },
            {
                "name": "names-a-queue",
                "expression": f"object.metadata.{_QUEUE} || oldObject != null && oldObject.metadata.{_QUEUE}",
            },
            _outermost(),
        ],
        "variables": [
            {
                "name": "before",
                "expression": "oldObject == null ? {} : dyn(oldObject).metadata.?annotations.orValue({})",
            },
            {"name": "now", "expression": "dyn(object).metadata.?annotations.orValue({})"},
        ],
        "validations": validations,
    }


def _says(must: Says) -> str:
    found = "dyn(object)" + "".join(f"[?'{name}']" for name in must.path)
    wanted = [value for value in must.values if value is not None]
    if not wanted:
        return f"!{found}.hasValue()"
    values = ", ".join(_literal(value) for value in wanted)
    return f"{found}.orValue({_literal(must.default)}) in [{values}]"


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"'{value}'"


def _fields(row: Framework) -> dict[str, Any]:
    """Return the policy that holds the planner to the fields that it writes."""
    variables = [
        {"name": "now", "expression": "dyn(object)"},
        {"name": "before", "expression": "dyn(oldObject)"},
        {"name": "annotationsNow", "expression": "variables.now.metadata.?annotations.orValue({})"},
        {
            "name": "annotationsBefore",
            "expression": "variables.before.metadata.?annotations.orValue({})",
        },
    ]
    changed = _changed(("spec",), _spec_tree(row), ends=row is JOB)
    kept = "'annotations', 'managedFields', 'generation', 'resourceVersion'"
    changed["metadata"] = _differing("metadata", kept, "metadata.")
    written = ", ".join(f"'{name}'" for name in _WRITTEN)
    changed["annotations"] = (
        "(variables.annotationsBefore.filter(k, variables.annotationsNow[?k] != variables.annotationsBefore[?k])"
        " + variables.annotationsNow.filter(k, !(k in variables.annotationsBefore)))"
        f".filter(k, !(k in [{written}])).map(k, 'the annotation ' + k)"
    )
    variables += [{"name": name, "expression": said} for name, said in changed.items()]
    foreign = " + ".join(f"variables.{name}" for name in changed)
    variables.append({"name": "foreign", "expression": foreign})
    ends = "; by its policies it may be ended" if row is JOB else ""
    return {
        "name": f"plimsoll-batch-{row.resource}",
        "failurePolicy": "Fail",
        "matchConstraints": _matching(row, "UPDATE", queued=False),
        "matchConditions": [{"name": "is-the-planner", "expression": _PLANNER}],
        "variables": variables,
        "validations": [
            {
                "expression": f"variables.before.metadata.{_QUEUE}",
                "reason": "Forbidden",
                "message": f"the group {GRANT.group} may change only objects of the kind {row.kind} that name a queue"
                f" by the label {names.QUEUE}. Change others under another identity",
            },
            {
                "expression": "variables.foreign.size() == 0",
                "reason": "Forbidden",
                "messageExpression": f"'this changes ' + variables.foreign.join(', ') + ', and of a {row.kind} the group"
                f" {GRANT.group} may change only whether it is suspended, its node selector and tolerations, and three"
                f" annotations{ends}. Change it under another identity'",
            },
        ],
    }


def _spec_tree(row: Framework) -> Tree:
    """Return what of the spec of a row the planner may change."""
    tree: dict[str, Any] = {}
    _grow(tree, row.suspend[1:], None)
    if row.overrides is not None:
        _grow(tree, row.overrides[1:], {_LIST: None})
    for source in row.roles:
        path = source.entries[1:]
        if source.form is Form.LIST:
            path = (*path, _LIST + source.name)
        elif source.form is Form.MAP:
            path = (*path, _MAP)
        _grow(tree, (*path, *source.template), dict(_STEERED))
    return tree


def _grow(tree: dict[str, Any], path: Path, leaf: Tree | None) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    if path:
        there = tree.get(path[-1])
        tree[path[-1]] = leaf if leaf is None or there is None else {**there, **leaf}


def _changed(path: Path, tree: Tree, *, ends: bool = False) -> dict[str, str]:
    """Return an expression for each level of an object: the fields that changed, and must not."""
    heads = ", ".join(f"'{name}'" for name in tree)
    said = _differing(".".join(path), heads, ".".join(path) + ".", ends=ends)
    found = {_variable(path): said}
    for name, below in tree.items():
        if below is None:
            continue
        inner = (*path, name)
        if any(each == _MAP or each.startswith(_LIST) for each in below):
            now, before = (f"{side}.?{name}" for side in _sides(path))
            same = _same_entries(now, before, below)
            found[_variable(inner)] = f"{same} ? [] : ['{'.'.join(inner)}']"
        else:
            found |= _changed(inner, below)
    return found


def _sides(path: Path) -> tuple[str, str]:
    way = "".join(f".?{name}" for name in path[1:])
    now, before = f"variables.now.{path[0]}{way}", f"variables.before.{path[0]}{way}"
    return (now, before) if len(path) == 1 else (f"{now}.orValue({{}})", f"{before}.orValue({{}})")


def _variable(path: Path) -> str:
    first, *rest = path
    return first + "".join(name[0].upper() + name[1:] for name in rest)


def _differing(path: str, kept: str, prefix: str, *, ends: bool = False) -> str:
    now, before = _sides(tuple(path.split(".")))
    said = (
        f"({before}.filter(k, {now}[?k] != {before}[?k]) + {now}.filter(k, !(k in {before})))"
        f".filter(k, !(k in [{kept}]))"
    )
    if ends:
        said += (
            f".filter(k, !('{names.LIFECYCLE}' in variables.annotationsBefore"
            f" && (k in ['parallelism', 'completions'] && {now}[?k].orValue(-1) == 0"
            f" || k == 'activeDeadlineSeconds' && {now}[?k].orValue(-1) == 1)))"
        )
    return f"{said}.map(k, '{prefix}' + k)"


def _same_entries(now: str, before: str, tree: Tree) -> str:
    """Return whether the entries of a list or map differ in nothing but what may change."""
    ((kind, below),) = tree.items()
    if kind == _MAP:
        now, before = f"{now}.orValue({{}})", f"{before}.orValue({{}})"
        inner = _same(f"{now}[m]", f"{before}[m]", below or {}, 0)
        return f"{before}.all(m, m in {now}) && {now}.all(m, m in {before} && {inner})"
    now, before = f"{now}.orValue([])", f"{before}.orValue([])"
    name = kind.removeprefix(_LIST)
    if not name:  # overrides by role: those that come and go say nothing but where pods go
        only = "e.all(k, k in ['targetJobs', 'nodeSelector', 'tolerations'])"
        return f"{now}.all(e, e in {before} || {only}) && {before}.all(e, e in {now} || {only})"
    inner = _same("n", "b", below or {}, 0)
    return (
        f"{now}.size() == {before}.size()"
        f" && {now}.all(n, {before}.exists(b, b.{name} == n.{name} && {inner}))"
    )


def _same(now: str, before: str, tree: Tree, depth: int) -> str:
    heads, key = ", ".join(f"'{name}'" for name in tree), f"k{depth}"
    parts = [
        f"{now}.all({key}, {key} in [{heads}] || {before}[?{key}] == optional.of({now}[{key}]))",
        f"{before}.all({key}, {key} in [{heads}] || {key} in {now})",
    ]
    for name, below in tree.items():
        if below is not None:
            inner, former = (f"{side}.?{name}.orValue({{}})" for side in (now, before))
            parts.append(_same(inner, former, below, depth + 1))
    return " && ".join(parts)


class _Folded(yaml.SafeDumper):
    """Writes long texts over several lines."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    folded = ">" if len(value) > _LONG else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=folded)


_Folded.add_representer(str, _text)


def text_of(manifests: Sequence[Manifest]) -> str:
    """Return manifests as a file."""
    return yaml.dump_all(manifests, Dumper=_Folded, sort_keys=False, width=118)


@click.command()
@click.option(
    "--frameworks",
    metavar="NAMES",
    default="",
    help=f"Print the manifests of these, separated by commas: {', '.join(NAMES)}. [default: of Jobs]",
)
def manifests(frameworks: str) -> None:
    """Print the rights and admission policies that frameworks need in a cluster.

    Apply them beside infra/cluster/batch, and name the same frameworks in the file of the queues.
    """
    found = tuple(name.strip() for name in frameworks.split(",") if name.strip())
    unknown = [name for name in found if name not in NAMES]
    if unknown:
        raise BadInput(f"--frameworks: must be of {', '.join(NAMES)}, not {', '.join(unknown)}")
    say(text_of(rendered(found)), nl=False)
