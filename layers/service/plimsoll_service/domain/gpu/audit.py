"""What GPUs are held for, what that costs, and when they idle."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.kubernetes import MIG_SLICES
from plimsoll_service.domain.gpu.cards import CARDS, Card, Profile
from plimsoll_service.domain.gpu.idle import HOURS_PER_WEEK, by_hour_of_week, idle_minutes
from plimsoll_service.domain.gpu.schedules import Schedule, schedule_of
from plimsoll_service.domain.gpu.series import ClassSeries, first_day, series_of
from plimsoll_service.domain.gpu.sizing import Sizer, Slice, learn
from plimsoll_service.wire.gpu import MINUTES_PER_DAY, ClassDay, PodDay

NEVER_TOUCHED_MINUTES: Final = MINUTES_PER_DAY
"""A pod that held a GPU for so long, and never used it, does not need it."""

type Hourly = Mapping[tuple[str, str], float]
"""Dollars for an hour of an instance, by its type and capacity (`spot`, `on-demand`)."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Owner:
    """Of pods."""

    namespace: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerUse:
    """How an owner uses GPUs."""

    owner: Owner
    gpu_hours: float
    """Of whole GPUs: a slice counts as its share, and replicas share what their node has."""
    cost: float
    """In dollars, of the hours that have a price."""
    idle_gpu_hours: float
    """In runs of 30 minutes and more."""
    idle_cost: float
    by_hour: Sequence[float]
    """Idle GPU-hours by the hour of the week, the first that of Monday midnight in UTC."""
    never_touched: int
    """Pods that held GPUs for a day and more, and never used them."""
    slice_enough: str
    """The smallest slice that would do for a pod with a whole GPU, without headroom; empty: none would."""
    unpriced_hours: float
    """GPU-hours without a price."""
    unknown_hours: float
    """GPU-hours of which nothing tells whether the GPU worked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What is known of the GPUs of a cluster."""

    days: int
    owners: Sequence[OwnerUse]
    """The most expensive first."""
    schedules: Mapping[Owner, Schedule]
    unpriced: Sequence[str]
    """Instance types without a price, or without a number of GPUs."""
    missing: Mapping[str, int]
    """Metrics that are not measured today, by their DCGM names, and for how many classes."""


def audit_gpus(days: Iterable[ClassDay], hourly: Hourly, now: datetime) -> Audit:
    """Return what GPUs are held for.

    Args:
        days: The documents.
        hourly: Prices of instances.
        now: Minutes of today and later are no evidence of a schedule.
    """
    days = [*days]
    first = first_day(days)
    if first is None:
        return Audit(days=0, owners=(), schedules={}, unpriced=(), missing={})
    parts = _parts(days)
    held: dict[Owner, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    unpriced = set()
    for day in days:
        owner = _owner(day)
        for pod in day.pods:
            hours = int(pod.seen or "0", 16).bit_count() / 60 * parts[_key(day, pod)]
            price = _price(day, pod, hourly)
            held[owner]["hours"] += hours
            held[owner]["cost"] += hours * (price or 0.0)
            held[owner]["unpriced"] += 0.0 if price is not None else hours
            unpriced |= {pod.instance_type or "unknown"} if price is None and hours else set()
    by_owner: dict[Owner, list[ClassSeries]] = defaultdict(list)
    for each in series_of(days):
        by_owner[_owner(each.last)].append(each)
    part_of: dict[tuple[object, ...], float] = {
        (day.of, pod.pod): parts[_key(day, pod)] for day in days for pod in day.pods
    }
    uses = [
        _use(owner, classes, held[owner], part_of, first.weekday())
        for owner, classes in by_owner.items()
    ]
    latest = max(each.day for each in days)
    until = min(now.date(), latest + timedelta(days=1))
    found = {
        owner: schedule_of(classes, first, until)
        for owner, classes in sorted(by_owner.items())
        if owner.kind in {"Deployment", "StatefulSet"}
    }
    return Audit(
        days=(latest - first).days + 1,
        owners=sorted(uses, key=lambda use: (-use.cost, -use.gpu_hours, use.owner)),
        schedules={owner: each for owner, each in found.items() if each is not None},
        unpriced=sorted(unpriced),
        missing=Counter(name for e in days if e.day == latest for name in e.missing),
    )


def _use(
    owner: Owner,
    classes: Sequence[ClassSeries],
    held: Mapping[str, float],
    parts: Mapping[tuple[object, ...], float],
    first_weekday: int,
) -> OwnerUse:
    by_hour = [0.0] * HOURS_PER_WEEK
    never = 0
    unknown = 0.0
    for of in classes:
        for pod in of.pods:
            part = parts[of.of, pod.pod]
            unknown += (pod.seen & ~pod.known).bit_count() / 60 * part
            untouched = not pod.busy & pod.known
            never += untouched and pod.known.bit_count() >= NEVER_TOUCHED_MINUTES
            for hour, minutes in enumerate(by_hour_of_week(idle_minutes(pod), first_weekday)):
                by_hour[hour] += minutes / 60 * part
    idle = sum(by_hour)
    return OwnerUse(
        owner=owner,
        gpu_hours=held["hours"],
        cost=held["cost"],
        idle_gpu_hours=idle,
        idle_cost=held["cost"] * idle / held["hours"] if held["hours"] else 0.0,
        by_hour=by_hour,
        never_touched=never,
        slice_enough=_slice_enough(classes),
        unpriced_hours=held["unpriced"],
        unknown_hours=unknown,
    )


def _slice_enough(classes: Sequence[ClassSeries]) -> str:
    """Return the slice that holds the peak of every pod of an owner, where these have whole GPUs."""
    latest = max(classes, key=lambda each: each.last.day)
    card = CARDS.get(latest.of.model)
    if card is None or not card.profiles or latest.profile:
        return ""
    end = max((at for pod in latest.pods for at in pod.memory_mib), default=-1) + 1
    size = Sizer(card=card).size(learn(latest, 0, end), 0.0)
    return size.profile.name if isinstance(size, Slice) else ""


def _parts(days: Sequence[ClassDay]) -> Mapping[tuple[object, ...], float]:
    """Return how many whole GPUs each pod of a day counts as.

    Replicas of a shared GPU do not tell which one they are of: on a node and day they split what it has.
    """
    replicas: dict[tuple[object, ...], int] = defaultdict(int)
    held: dict[tuple[object, ...], int] = defaultdict(int)
    for day in days:
        for pod in day.pods if day.sharing != "none" else ():
            seen = int(pod.seen or "0", 16)
            replicas[day.day, pod.node] += seen.bit_count() * pod.gpus
            held[day.day, pod.node] |= seen
    found: dict[tuple[object, ...], float] = {}
    for day in days:
        profile, card = _profile(day)
        for pod in day.pods:
            part = float(pod.gpus)
            if profile is not None and card is not None:
                part *= Sizer(card=card).share(profile)
            elif day.sharing != "none":
                most = held[day.day, pod.node].bit_count() * (pod.node_gpus or 1)
                part *= min(1.0, most / (replicas[day.day, pod.node] or 1))
            found[_key(day, pod)] = part
    return found


def _profile(day: ClassDay) -> tuple[Profile | None, Card | None]:
    card = CARDS.get(day.of.model)
    name = day.resource.removeprefix(MIG_SLICES)
    return (card.profiles.get(name) if card is not None else None), card


def _price(day: ClassDay, pod: PodDay, hourly: Hourly) -> float | None:
    """Return what a whole GPU of a pod's node costs for an hour; None: nobody knows."""
    card = CARDS.get(day.of.model)
    gpus = pod.node_gpus or (card.instance_types.get(pod.instance_type, 0) if card else 0)
    price = hourly.get((pod.instance_type, pod.capacity or "on-demand"))
    return price / gpus if price is not None and gpus else None


def _owner(day: ClassDay) -> Owner:
    return Owner(namespace=day.of.namespace, kind=day.of.kind, name=day.of.owner)


def _key(day: ClassDay, pod: PodDay) -> tuple[object, ...]:
    return day.day, day.of, pod.pod
