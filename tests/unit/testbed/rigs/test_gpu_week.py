"""The scripted week of 24 whole GPUs: the advice finds what each of its workloads hides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest

from plimsoll_cli.gpu.fleet_file import fleet_of, wanted_of
from plimsoll_service.domain.gpu import (
    CARDS,
    Audit,
    DoNotSplit,
    Fit,
    Question,
    Slice,
    audit_gpus,
    fit_classes,
    geometries_of,
    plan_fleet,
    profiles_needed,
)
from plimsoll_service.wire.gpu import ClassDay
from plimsoll_testbed.rigs.gpus.week import DAYS, class_days
from plimsoll_testbed.rigs.gpus.workloads import BEGIN, NODES, PER_NODE, WORKLOADS, objects

MODEL = "H100-80GB-HBM3"


@pytest.fixture(scope="module")
def days() -> Sequence[ClassDay]:
    return class_days()


@pytest.fixture(scope="module")
def audit(days: Sequence[ClassDay]) -> Audit:
    return audit_gpus(days, {}, BEGIN + timedelta(days=DAYS))


@pytest.fixture(scope="module")
def fit(days: Sequence[ClassDay]) -> Fit:
    return fit_classes(days, Question())


def test_every_gpu_is_held_by_a_pod_all_week(audit: Audit):
    for name in NODES:
        assert sum(each.pods * each.gpus for each in WORKLOADS if each.node == name) == PER_NODE
    hours = sum(use.gpu_hours for use in audit.owners)
    assert hours == pytest.approx(len(NODES) * PER_NODE * DAYS * 24)


def test_the_audit_finds_the_gpu_that_nobody_used_and_the_nights_of_the_notebooks(audit: Audit):
    by_name = {use.owner.name: use for use in audit.owners}
    assert {name for name, use in by_name.items() if use.never_touched} == {"forgotten"}
    assert {name for name, use in by_name.items() if use.idle_gpu_hours} == {
        "forgotten",
        "notebooks",
    }
    assert {owner.name: each.night for owner, each in audit.schedules.items()} == {
        "notebooks": (20, 7)
    }


def test_the_fit_splits_what_is_small_and_neither_the_bursts_nor_the_training(fit: Fit):
    sizes = {
        each.of.owner: each.size.profile.name
        if isinstance(each.size, Slice)
        else each.size.cause
        if isinstance(each.size, DoNotSplit)
        else ""
        for each in fit.classes
    }
    assert sizes == {
        "caption": "1g.20gb",
        "chat": "1g.10gb",
        "forgotten": "1g.10gb",
        "notebooks": "3g.40gb",
        "search": "bursts",
        "training": "several GPUs",
        "transcribe": "1g.10gb",
    }


def test_no_pod_of_a_class_that_is_split_overflows_in_held_out_time(fit: Fit):
    (card,) = fit.cards
    classes = [each.of.owner for each in fit.classes]
    over = {classes[place] for told in card.judgements for place in told.bursting}
    assert over == {"search"}
    half = next(told for told in card.judgements if told.learnt == 0.5)
    assert half.over == 1
    assert half.judged > 299
    assert half.bound < 0.02


def test_the_geometry_needs_one_node_less_and_leaves_that_of_the_training(fit: Fit):
    (demand,) = wanted_of({"demand": profiles_needed(fit.classes)}).values()
    assert demand == {"1g.10gb": 6, "1g.20gb": 2, "3g.40gb": 7, "gpu": 9}
    nodes = fleet_of({"items": [*objects(BEGIN)]}).nodes[MODEL]
    geometries = geometries_of(CARDS[MODEL])
    plan = plan_fleet(geometries, geometries.counts(demand), nodes, per_node=PER_NODE)
    assert (plan.before, plan.needed, plan.after) == (24, 14, 16)
    found = {node.name: node for node in plan.nodes}
    assert found["gpu-a"].changed
    assert found["gpu-b"].after is None
    assert found["gpu-c"].stays
    given = Counter[str]()
    for geometry in found["gpu-a"].after or ():
        given.update(geometries.by_name(geometry))
    needs = demand | {"gpu": 1}
    assert all(given[name] >= number for name, number in needs.items())
