"""A diagram of each GPU of a plan, before and after, as SVG without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Final

from plimsoll_service.domain.gpu import (
    CARDS,
    WHOLE_GPU,
    FleetPlan,
    Layout,
    NodePlan,
    geometries_of,
    geometry_name,
)

SLICE: Final = 12
"""Pixels of a memory slice."""
ROW: Final = 34
NAMES: Final = 190
"""Pixels of the column of nodes."""
GAP: Final = 10
COLOURS: Final = {
    0: "#9aa0a6",
    1: "#8ecae6",
    2: "#52b788",
    3: "#f4a261",
    4: "#e76f51",
    7: "#9d7bd8",
}
"""By compute slices; 0 is a GPU without MIG."""


def diagram(plans: Mapping[str, FleetPlan]) -> str:
    """Return the diagram: a row for each node, its GPUs before on the left and after on the right.

    Instances are drawn by size, from the largest on. Where they stand on the GPU is left to NVIDIA's driver.
    """
    rows: list[str] = []
    top, width = ROW, 0
    for model, plan in plans.items():
        most = max((len(n.after or n.before or ()) for n in plan.nodes), default=1)
        side = most * (max(CARDS[model].memory, 1) * SLICE + GAP)
        width = max(width, NAMES + 2 * (side + 2 * GAP))
        head = f"{model}: {plan.before} GPUs before, {plan.after} after; no fewer than {plan.bound}"
        rows.append(f'<text x="{GAP}" y="{top}" font-weight="bold">{escape(head)}</text>')
        for node in plan.nodes:
            top += ROW
            rows += _row(model, node, top, side)
        top += 2 * ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(rows)
        + "\n</svg>\n"
    )


def _row(model: str, node: NodePlan, top: int, side: int) -> Iterator[str]:
    state = "changes" if node.changed else "stays" if node.stays else "as it is"
    if node.before is None:
        state = "added"
    elif node.after is None:
        state = "not needed"
    yield f'<text x="{GAP}" y="{top + 14}">{escape(node.name[:22])} <tspan fill="#666">{state}</tspan></text>'
    for layout, left in ((node.before, NAMES), (node.after, NAMES + side + 2 * GAP)):
        yield from _gpus(model, layout or (), left, top)


def _gpus(model: str, layout: Layout, left: int, top: int) -> Iterator[str]:
    card, geometries = CARDS[model], geometries_of(CARDS[model])
    slices = max(card.memory, 1)
    for geometry in layout:
        name = geometry_name(geometries, geometry)
        yield f'<g><title>{escape(name)}</title><rect x="{left}" y="{top}" width="{slices * SLICE}" height="20" fill="#f1f3f4" stroke="#bbb"/>'
        start = left
        for profile, number in reversed(list(zip(geometries.names, geometry, strict=True))):
            whole = profile == WHOLE_GPU
            compute = 0 if whole else card.profiles[profile].compute
            wide = (slices if whole else card.profiles[profile].memory) * SLICE
            for _ in range(number):
                yield f'<rect x="{start + 1}" y="{top + 1}" width="{wide - 2}" height="18" fill="{COLOURS[compute]}"/>'
                start += wide
        yield "</g>"
        left += slices * SLICE + GAP
