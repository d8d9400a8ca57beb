"""The layouts chosen for promised workloads, as items of the table `times`.

A module of its own: placement is imported with it, and the first cordon waits for no import of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.adapters.dynamodb.codec import (
    TTL,
    Item,
    expiry,
    strings,
    text_to_time,
    time_to_text,
)
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.placement import LAYOUTS_KEPT, ChosenLayout, Layout, Promise

LAYOUTS: Final = "layout/"
"""Before a workload whose layout was chosen, so that all of a cluster are read at once."""


def item_of_layout(cluster: str, workload: Ref, chosen: ChosenLayout) -> Item:
    """Return the layout of a workload as an item."""
    layout = chosen.layout
    item = strings(
        cluster=cluster,
        workload=LAYOUTS + "/".join(workload),
        promise=str(chosen.promise),
        layout=f"{layout.on_demand_groups}-{layout.spot_groups}",
        at=time_to_text(chosen.at),
        **{
            name: None if at is None else time_to_text(at)
            for name, at in (
                ("changed", chosen.changed),
                ("above", chosen.above),
                ("below", chosen.below),
            )
        },
    )
    return {**item, TTL: expiry(chosen.at + LAYOUTS_KEPT)}


def item_to_layout(item: Mapping[str, Any]) -> tuple[Ref, ChosenLayout]:
    """Return what `item_of_layout` wrote."""
    kind, namespace, name = item["workload"]["S"].removeprefix(LAYOUTS).split("/")
    on_demand, spot = map(int, item["layout"]["S"].split("-"))
    changed, above, below = (
        text_to_time(item[attribute]["S"]) if attribute in item else None
        for attribute in ("changed", "above", "below")
    )
    return Ref(kind, namespace, name), ChosenLayout(
        promise=Promise.parse(item["promise"]["S"]),
        layout=Layout(on_demand, spot),
        changed=changed,
        above=above,
        below=below,
        at=text_to_time(item["at"]["S"]),
    )
