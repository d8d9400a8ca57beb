"""Floors and spread groups: where workloads should stand, and the node labels that say so."""

from __future__ import annotations

from plimsoll.domain.placement.injection import (
    INJECTION_CANARIES,
    INJECTION_ENTRIES,
    LAYOUT_CANARY,
    NO_INJECTION,
    Injected,
    Injection,
    canaries_told,
    injection_key,
    is_as_injected,
    with_new_canary,
)
from plimsoll.domain.placement.layout_choice import LAYOUTS_KEPT, ChosenLayout
from plimsoll.domain.placement.load_line import (
    LoadLine,
    LossWindow,
    at_most,
)
from plimsoll.domain.placement.marks import Mark, marks_of
from plimsoll.domain.placement.move_history import bequeaths, heir_of
from plimsoll.domain.placement.node_labels import SpreadGroup
from plimsoll.domain.placement.on_demand import (
    FloorConstraint,
    OnDemandFloor,
    floor_of,
    floors_by_stop_time,
)
from plimsoll.domain.placement.pending import keeps_spread_groups, waits_for_spread_group
from plimsoll.domain.placement.plan import PlacementPlan, between_runs, plan_placement
from plimsoll.domain.placement.promised_floors import (
    Asked,
    Choice,
    ChosenLayouts,
    asked_promises,
    choices_of,
    chosen_layouts,
    layouts_there,
)
from plimsoll.domain.placement.promises import (
    Promise,
    PromisedWorkload,
    judged,
    promised_workloads,
    understood_promise,
)
from plimsoll.domain.placement.rebalancing import MOST_MOVES
from plimsoll.domain.placement.report import report_of, reports_of, words_of
from plimsoll.domain.placement.reserve import ALL_SPOT
from plimsoll.domain.placement.spot_growth import ADDED_WITHIN, growth_for_return
from plimsoll.domain.placement.spot_return import SpotReturn
from plimsoll.domain.placement.spread_groups import (
    ON_DEMAND,
    SINGLE_REPLICA,
    SPOT,
    Layout,
    label_key,
)
from plimsoll.domain.placement.standing_group import StandingGroup, standing_groups
from plimsoll.domain.placement.status import FloorStatus

__all__ = [
    "ADDED_WITHIN",
    "ALL_SPOT",
    "INJECTION_CANARIES",
    "INJECTION_ENTRIES",
    "LAYOUTS_KEPT",
    "LAYOUT_CANARY",
    "MOST_MOVES",
    "NO_INJECTION",
    "ON_DEMAND",
    "SINGLE_REPLICA",
    "SPOT",
    "Asked",
    "Choice",
    "ChosenLayout",
    "ChosenLayouts",
    "FloorConstraint",
    "FloorStatus",
    "Injected",
    "Injection",
    "Layout",
    "LoadLine",
    "LossWindow",
    "Mark",
    "OnDemandFloor",
    "PlacementPlan",
    "Promise",
    "PromisedWorkload",
    "SpotReturn",
    "SpreadGroup",
    "StandingGroup",
    "asked_promises",
    "at_most",
    "bequeaths",
    "between_runs",
    "canaries_told",
    "choices_of",
    "chosen_layouts",
    "floor_of",
    "floors_by_stop_time",
    "growth_for_return",
    "heir_of",
    "injection_key",
    "is_as_injected",
    "judged",
    "keeps_spread_groups",
    "label_key",
    "layouts_there",
    "marks_of",
    "plan_placement",
    "promised_workloads",
    "report_of",
    "reports_of",
    "standing_groups",
    "understood_promise",
    "waits_for_spread_group",
    "with_new_canary",
    "words_of",
]
