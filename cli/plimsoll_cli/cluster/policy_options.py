"""The policy of a cluster as options of a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, override

import click

from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import (
    FOREIGN_CORDON,
    URGENCY,
    MaintenanceWindow,
    Policy,
    Response,
    usual_response,
)
from plimsoll.domain.kubernetes import AUTO_FLOOR, NEVER_OVERRULED
from plimsoll.domain.notices import ZonalShift
from plimsoll.domain.placement import Promise


class _Window(click.ParamType[MaintenanceWindow | Literal["none"]]):
    """A maintenance window, or the word none."""

    name = "window"

    @override
    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> MaintenanceWindow | Literal["none"]:
        if value == "none":
            return "none"
        try:
            return MaintenanceWindow.parse(value)
        except BadInput as error:
            self.fail(str(error), param, ctx)


class _Hourly(click.ParamType[int | Literal["default"]]):
    """A number of nodes or pods in an hour, or the word default."""

    name = "number"

    @override
    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Literal["default"]:
        if value == "default":
            return "default"
        if not (value.isascii() and value.isdecimal() and len(value) <= 6):  # noqa: PLR2004 - enough
            self.fail(f"{value!r} is neither a whole number nor default", param, ctx)
        return int(value)


class _Floor(click.ParamType[str]):
    """A number of replicas, a share of them, or what Plimsoll finds."""

    name = "floor"

    @override
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _FLOOR.fullmatch(value):
            self.fail(
                f"{value!r} is neither a number such as 2, a share such as 30%, nor {AUTO_FLOOR}",
                param,
                ctx,
            )
        return value


class _Promise(click.ParamType[str]):
    """A promise of Ready replicas."""

    name = "promise"

    @override
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            Promise.parse(value)
        except BadInput as error:
            self.fail(str(error), param, ctx)
        return value.strip()


class _Namespace(click.ParamType[str]):
    """The name of a namespace, or * for all."""

    name = "namespace"

    @override
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != ALL and not _LABEL.fullmatch(value):
            self.fail(f"{value!r} is neither the name of a namespace nor '*'", param, ctx)
        return value


ALL: Final = "*"
"""All namespaces: none can have this name."""
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names"""
MOST_NAMESPACES: Final = 100
"""So many names are a few thousand bytes of an item of 400 KB."""
_FLOOR: Final = re.compile(rf"[0-9]{{1,6}}|([0-9]{{1,2}}|100)%|{AUTO_FLOOR}")
KINDS: Final = (*URGENCY, FOREIGN_CORDON, ZonalShift.kind)
FLOOR: Final = _Floor()
HOURLY: Final = _Hourly()
NAMESPACE: Final = _Namespace()
PROMISE: Final = _Promise()
WINDOW: Final = _Window()


def listed(words: Iterable[str], before_last: str = "and") -> str:
    """Return words as a list in a sentence."""
    *first, last = words
    return f"{', '.join(first)} {before_last} {last}"


def changed(  # noqa: PLR0913, PLR0917 - the parts of a policy
    policy: Policy,
    responses: Sequence[str],
    nodes_per_hour: int | Literal["default"] | None,
    moves_per_hour: int | Literal["default"] | None,
    window: MaintenanceWindow | Literal["none"] | None,
    min_on_demand: str | None,
    keep_ready: str | None = None,
    overrule_budgets: str | None = None,
    act_in: Sequence[str] = (),
    *,
    return_to_spot: bool | None = None,
) -> Policy:
    """Return a policy with the changes that the options give.

    Raises:
        UsageError: a kind or a response is unknown, or there are too many namespaces.
    """
    on = dict(policy.on)
    for given in responses:
        kind, _, response = given.partition("=")
        if kind not in KINDS or response not in list(Response):
            raise click.UsageError(
                f"--on {given}: give KIND=RESPONSE, where KIND is {listed(KINDS, 'or')}, "
                f"and RESPONSE is {listed(Response, 'or')}"
            )
        on[kind] = Response(response)
    nodes = policy.nodes_per_hour if nodes_per_hour is None else nodes_per_hour
    moves = policy.moves_per_hour if moves_per_hour is None else moves_per_hour
    opens = policy.window if window is None else window
    return replace(
        policy,
        on=tuple(sorted((k, r) for k, r in on.items() if r is not usual_response(k))),
        nodes_per_hour=None if nodes == "default" else nodes,
        moves_per_hour=None if moves == "default" else moves,
        window=None if opens == "none" else opens,
        min_on_demand=policy.min_on_demand if min_on_demand is None else min_on_demand,
        keep_ready=policy.keep_ready if keep_ready is None else keep_ready,
        obeys_budgets=policy.obeys_budgets
        if overrule_budgets is None
        else overrule_budgets == NEVER_OVERRULED,
        act_in=_act_in(act_in) if act_in else policy.act_in,
        return_to_spot=policy.return_to_spot if return_to_spot is None else return_to_spot,
    )


def _act_in(given: Sequence[str]) -> tuple[str, ...]:
    named = {*given}
    if ALL in named and len(named) > 1:
        raise click.UsageError(f"--act-in: give names of namespaces, or '{ALL}' alone")
    if len(named) > MOST_NAMESPACES:
        raise click.UsageError(f"--act-in: give at most {MOST_NAMESPACES} namespaces")
    return tuple(sorted(named - {ALL}))
