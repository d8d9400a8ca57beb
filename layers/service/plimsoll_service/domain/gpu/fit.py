"""Which slice each class of workload needs, and how often a smaller one would have overflowed.

Headroom belongs to the card: it is the smallest with which held-out time overflows no more than is
allowed. Where there is none, the card is not split.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from plimsoll_service.domain.gpu.cards import CARDS
from plimsoll_service.domain.gpu.geometry import WHOLE_GPU
from plimsoll_service.domain.gpu.holdout import HEADROOMS, Judgement, holdouts_of
from plimsoll_service.domain.gpu.series import ClassSeries, series_of
from plimsoll_service.domain.gpu.sizing import DoNotSplit, Size, Sizer, Slice, TimeSlices, learn
from plimsoll_service.wire.gpu import WINDOWS_PER_DAY, ClassDay, GpuClass

WITHIN: Final = 0.01
"""Share of pods that may overflow in held-out time."""
LEAST_SPLIT: Final = 0.05
"""Share of the pods: where headroom leaves fewer in a slice, a card is not split."""
ENOUGH_DAYS: Final = 7
"""With fewer, a weekly peak may be missing."""

type Mechanism = Literal["device-plugin", "dra", "kai"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFit:
    """What held-out time says of splitting a card."""

    model: str
    headroom: float | None
    """Above the peak, as a share of it; None: the card is not split."""
    judgements: Sequence[Judgement]
    """With this headroom, or with the last that was tried."""
    gpus: float
    """Of pods that run at once, today."""
    gpus_after: float
    """Without what is left over on GPUs that do not come out even."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFit:
    """The advice about a class."""

    of: GpuClass
    card: str
    """The model that it is sized for."""
    size: Size
    pods: int
    """That run at once."""
    gpus: int
    """That a pod holds today; 1 of a slice."""
    peak_mib: int | None
    need_mib: int | None
    """With headroom."""
    resource: str
    """Of the pods today."""
    mechanism: Mechanism
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The advice about all classes, and the evidence."""

    cards: Sequence[CardFit]
    classes: Sequence[ClassFit]
    within: float
    windows: int
    """Of 15 minutes, from the first that was measured to the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about the documents."""

    card: str | None = None
    """Size for this model, and not for the one that a class is on."""
    within: float = WITHIN
    """The share of pods that may overflow in held-out time."""
    cpu_bound: Collection[tuple[str, str]] = ()
    """Namespace and name of owners whose CPUs hold their GPUs back."""
    mechanism: Mechanism = "device-plugin"
    """How pods get a part of a GPU."""


def fit_classes(days: Iterable[ClassDay], question: Question) -> Fit:
    """Size every class of a template that is still in use; the others are learnt from."""
    found = series_of(days)
    seen = [at for each in found for pod in each.pods for at in pod.memory_mib]
    span = min(seen, default=0), max(seen, default=-1) + 1
    by_card: dict[str, list[ClassSeries]] = defaultdict(list)
    for each in found:
        by_card[question.card or each.of.model].append(each)
    cards: list[CardFit] = []
    classes: list[ClassFit] = []
    for model, of_card in sorted(by_card.items()):
        told, sizes = _card(model, of_card, span, question)
        cards.append(told)
        in_use = _in_use(of_card)
        classes += [
            _class(each, size, told, question, span)
            for each, size in zip(of_card, sizes, strict=True)
            if each.of in in_use
        ]
    return Fit(cards=cards, classes=classes, within=question.within, windows=span[1] - span[0])


def profiles_needed(fits: Iterable[ClassFit]) -> Mapping[str, Mapping[str, int]]:
    """Return how many pods at once need each profile, by the model of the card.

    Pods of a class that is not split need `WHOLE_GPU` ones. Cards without MIG are left out.
    """
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for each in fits:
        if isinstance(each.size, Slice):
            found[each.card][each.size.profile.name] += each.pods
        elif each.card in CARDS and CARDS[each.card].profiles:
            found[each.card][WHOLE_GPU] += each.pods * each.gpus
    return {model: dict(pods) for model, pods in found.items()}


def _card(
    model: str, classes: Sequence[ClassSeries], span: tuple[int, int], question: Question
) -> tuple[CardFit, Sequence[Size]]:
    """Return what is said of a card, and the size of each class on it."""
    if model not in CARDS:
        reason = f"no slices of {model} are known"
        return _told(model, classes, None, [], None, reason), [
            DoNotSplit(cause="unknown", reason=reason) for _ in classes
        ]
    sizer = Sizer(card=CARDS[model], cpu_bound=question.cpu_bound)
    whole = [learn(each, *span) for each in classes]
    holdouts = holdouts_of(classes, *span)
    judgements: Sequence[Judgement] = ()
    why = ""
    for headroom in HEADROOMS:
        judgements = [each.judged(sizer, headroom) for each in holdouts]
        worst = max((each for each in judgements if each.decides), key=lambda each: each.share)
        why = _overflows(worst, headroom)
        if worst.share > question.within:
            continue
        bursting = {place for each in judgements if each.decides for place in each.bursting}
        sizes = [
            _BURSTS if place in bursting else sizer.size(learnt, headroom)
            for place, learnt in enumerate(whole)
        ]
        costs = [sizer.cost(e, size) for e, size in zip(classes, sizes, strict=True)]
        few = min((each for each in judgements if each.decides), key=lambda each: each.judged)
        if few.judged >= LEAST_SPLIT * (few.judged + few.whole):
            return _told(model, classes, headroom, judgements, costs, why), sizes
        why = f"with {headroom:.0%} headroom {few.judged} of {few.judged + few.whole} pods fit a slice"
        break
    own = [sizer.size(each, HEADROOMS[0]) for each in whole]
    if all(isinstance(each, DoNotSplit) for each in own):
        why = "no class on it can be split"
    kept = [
        each if isinstance(each, DoNotSplit) else DoNotSplit(cause="bursts", reason=why)
        for each in own
    ]
    return _told(model, classes, None, judgements, None, why), kept


_BURSTS: Final = DoNotSplit(
    cause="bursts", reason="its memory grew past the slice in held-out time"
)


def _overflows(worst: Judgement, headroom: float) -> str:
    if not worst.judged:
        return "there is no held-out time to judge by: wait for more days"
    return f"with {headroom:.0%} headroom {worst.over} of {worst.judged} pods overflow in held-out time"


def _told(  # noqa: PLR0913, PLR0917 - the fields of the answer
    model: str,
    classes: Sequence[ClassSeries],
    headroom: float | None,
    judgements: Sequence[Judgement],
    costs: Sequence[float] | None,
    reason: str,
) -> CardFit:
    """Return what is said of a card; without costs, that nothing changes."""
    in_use = _in_use(classes)
    pods = [each.at_once() if each.of in in_use else 0 for each in classes]
    today = [_today(each) for each in classes]
    return CardFit(
        model=model,
        headroom=headroom,
        judgements=judgements,
        gpus=sum(map(float.__mul__, map(float, pods), today)),
        gpus_after=sum(map(float.__mul__, map(float, pods), costs or today)),
        reason=reason,
    )


def _today(of: ClassSeries) -> float:
    """Return how many GPUs a pod of a class takes today."""
    card = CARDS.get(of.of.model)
    profile = card.profiles.get(of.profile) if card is not None else None
    return Sizer(card=card).share(profile) if card and profile else float(of.gpus)


def _in_use(classes: Iterable[ClassSeries]) -> set[GpuClass]:
    """Return the classes of the template of each owner that was seen last."""
    by_owner: dict[tuple[str, ...], list[ClassSeries]] = defaultdict(list)
    for each in classes:
        by_owner[each.of.namespace, each.of.kind, each.of.owner, each.of.model].append(each)
    found: set[GpuClass] = set()
    for same in by_owner.values():
        last = max(each.last.day for each in same)
        found |= {each.of for each in same if each.last.day == last}
    return found


def _class(
    of: ClassSeries, size: Size, card: CardFit, question: Question, span: tuple[int, int]
) -> ClassFit:
    peak = max(of.peaks(*span).values(), default=None)
    no_claim = question.mechanism == "dra" and isinstance(size, TimeSlices)
    days = (span[1] - span[0]) / WINDOWS_PER_DAY
    notes = []
    if days < ENOUGH_DAYS:
        notes.append(f"low confidence: {days:.1f} days of history, fewer than {ENOUGH_DAYS}")
    if of.left_out:
        notes.append(f"{of.left_out} pods are in no peak")
    if "DCGM_FI_PROF_DRAM_ACTIVE" in of.last.missing:
        notes.append("memory bandwidth is not measured")
    if isinstance(size, Slice):
        times = CARDS[card.model].compute / size.profile.compute
        notes.append(f"a kernel takes up to {times:.1f} times as long")
    return ClassFit(
        of=of.of,
        card=card.model,
        size=size,
        pods=of.at_once(),
        gpus=of.gpus,
        peak_mib=peak,
        need_mib=None if peak is None else ceil(peak * (1 + (card.headroom or 0.0))),
        resource=of.last.resource,
        mechanism="device-plugin" if no_claim else question.mechanism,
        notes=notes,
    )
