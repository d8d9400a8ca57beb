"""Release: a replacement for every Ready pod of a Deployment, without a change of any count.

One patch takes the label `pod-template-hash` off a pod and makes its Deployment the controlling
owner; of an Argo Rollout the label alone goes. Its ReplicaSet makes another pod at once; the released pod keeps its Service endpoints until
it is evicted. One rule says when that is: of the released pods of a workload as many stay as it
has too few available pods of its own. So no released pod ever stands beside an available
replacement, where an autoscaler would count it and grow.

Measured on kube-apiserver 1.36; docs/guides/spot-drain.md has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from plimsoll.domain.actions import Evict, MarkMoved, Release, UndoRelease, Wave
from plimsoll.domain.disruptions import (
    PATIENCE,
    Allowance,
    Cause,
    EvictablePod,
    WorkloadDisruption,
    is_available,
)
from plimsoll.domain.drain.do_not_disrupt import do_not_disrupt
from plimsoll.domain.drain.strategies.evict_within_floor import EVICT_WITHIN_FLOOR
from plimsoll.domain.drain.strategies.steps import (
    CONTENDED,
    TIME_TO_STOP,
    Steps,
    Strategy,
    is_rolling,
)
from plimsoll.domain.interruptions import NEAR
from plimsoll.domain.kubernetes import MOVED, Pod, Workload, replacement_of
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import bequeaths, heir_of
from plimsoll.domain.scheduling import Headroom


def _why(disruption: WorkloadDisruption) -> str | None:
    if disruption.released or releasable(disruption):
        return "its controller makes the replacements first"
    return None


def releasable(disruption: WorkloadDisruption) -> list[EvictablePod]:
    """Return the pods that may be released now."""
    return [
        one
        for one in disruption.evictable
        if one.pod.serving and not one.pod.released and one.pod.uid not in disruption.not_releasable
    ]


def releases(
    pods: Iterable[EvictablePod], reason: str, now: datetime | None = None
) -> list[Release]:
    """Return the releases of pods that `releasable` named; with the time, Karpenter leaves them to us."""
    return [
        Release(
            pod=one.pod,
            replica_set=one.replica_set,
            interruption=one.departure.interruption,
            reason=reason,
            do_not_disrupt=None if now is None else do_not_disrupt(one, now),
        )
        for one in pods
        if one.replica_set is not None
    ]


def _steps(disruption: WorkloadDisruption, headroom: Headroom, allowance: Allowance) -> Steps:
    # What is handed back is decided first: it neither leaves nor counts as released in what follows. It only asks
    # budgets, so it gets a copy; the evictions after it spend the allowance of all workloads.
    undone = _undone(disruption, headroom, allowance.copy())
    # Pods that others have replaced before those that only their time to stop drives away: the latter leave with what
    # the former leave of the budget.
    evictions, blocked = _evictions(disruption, headroom, allowance, undone)
    in_time = _in_time(disruption, allowance, {a.pod.uid for a in evictions} | undone.keys())
    # Before anything is released: the replacements of these pods may ask for the same places.
    for action in evictions:
        headroom.contention.join(replacement_of(action.pod))
    standing = len(disruption.released) - len(undone) - len(evictions)
    leaving = {action.pod.uid for action in in_time}
    able = [one for one in releasable(disruption) if one.pod.uid not in leaving]
    released, held = _releases(disruption, able, headroom, standing=standing)
    # Last, and only where nothing else leaves: a pod without a replacement spends the ready floor of them all.
    others = Steps() if evictions or in_time else _others(disruption, headroom, allowance)
    waiting = held or blocked or _elsewhere(disruption, begun=bool(standing or released))
    return Steps(
        actions=(
            *_marks(disruption),
            *evictions,
            *in_time,
            *undone.values(),
            *released,
            *others.actions,
        ),
        waiting=others.waiting or _with_rescaling(disruption, waiting),
    )


def _elsewhere(disruption: WorkloadDisruption, *, begun: bool) -> str | None:
    """Say how many are Ready elsewhere, once a release has begun to replace pods."""
    if not begun:
        return None
    ready = f"{disruption.staying_ready} of {disruption.replicas} are Ready elsewhere"
    if disruption.missing and disruption.workload and disruption.workload.why_unmade:
        return f"{ready}, and no replacement is made: {disruption.workload.why_unmade}"
    return ready


def _with_rescaling(disruption: WorkloadDisruption, waiting: str | None) -> str | None:
    """Add to what is waited for that the autoscaler of a workload changed its count."""
    if not _is_rescaled(disruption):
        return waiting
    rescaled = f"its autoscaler has changed the count to {disruption.replicas} meanwhile"
    return rescaled if waiting is None else f"{waiting}; {rescaled}"


def _is_pressed(disruption: WorkloadDisruption) -> bool:
    """Whether a deadline is near. Without one, nothing is worth a pod that stays Pending."""
    return any(d.deadline and d.deadline - disruption.now < NEAR for d in disruption.evictable)


def _is_provisioned(disruption: WorkloadDisruption) -> bool:
    """Whether Karpenter takes the nodes of its pods away, and makes others for what is Pending."""
    return any(
        one.departure.of_node_pool and one.departure.cause is not Cause.INTERRUPTION
        for one in disruption.evictable
    )


def _available(disruption: WorkloadDisruption) -> int:
    """Return how many pods that count for its ReplicaSets have been Ready for `minReadySeconds`.

    While a deadline is near, a replacement that came to an interrupted node replaces nothing. Without one it may
    serve there for hours, and no released pod is to stand beside it for so long.
    """
    gone_soon = disruption.returned if _is_pressed(disruption) else frozenset()
    return sum(
        is_available(disruption, p) and not p.released and p.uid not in gone_soon
        for p in disruption.pods
    )


def _leaving_order(disruption: WorkloadDisruption) -> Sequence[Pod]:
    """Return the released pods on interrupted nodes as they leave.

    Those that do not serve are first, then those on the most urgent nodes.
    """
    turn = {one.pod.uid: turn for turn, one in enumerate(disruption.evictable)}
    return sorted(
        (p for p in disruption.released if p.uid in disruption.on_interrupted_nodes),
        key=lambda p: (p.serving, turn.get(p.uid, len(disruption.pods)), p.name),
    )


def replaced(disruption: WorkloadDisruption, but: Collection[str] = ()) -> Sequence[Pod]:
    """Return the released pods in whose place others are available, in the order in which they leave.

    Args:
        disruption: the workload.
        but: uids of pods that do not leave, whatever serves in their place.
    """
    needed = max(0, disruption.replicas - _available(disruption))
    count = max(0, len(disruption.released) - needed)
    return [pod for pod in _leaving_order(disruption) if pod.uid not in but][:count]


def _is_rescaled(disruption: WorkloadDisruption) -> bool:
    """Whether its autoscaler changed the count since the first of its nodes was cordoned."""
    scaled = None if disruption.workload is None else disruption.workload.scaled
    return scaled is not None and any(
        d.departure.cordoned and d.departure.cordoned < scaled for d in disruption.evictable
    )


def _marks(disruption: WorkloadDisruption) -> Iterator[MarkMoved]:
    """Let replacements of pods that were moved inherit their marks while those still stand."""
    for pod in disruption.released:
        if not bequeaths(pod, disruption.now):
            continue
        if (heir := heir_of(pod, disruption.pods)) is not None:
            yield MarkMoved(
                pod=heir, moved=pod.annotations[MOVED], reason=f"it replaces {pod}, which is moved"
            )


def _others(disruption: WorkloadDisruption, headroom: Headroom, allowance: Allowance) -> Steps:
    """Move the pods that must not be released, or do not serve, within the ready floor."""
    able = releasable(disruption)
    others = tuple(d for d in disruption.evictable if not d.pod.released and d not in able)
    if not others:
        return Steps()
    return EVICT_WITHIN_FLOOR.steps(replace(disruption, evictable=others), headroom, allowance)


def _evictions(
    disruption: WorkloadDisruption,
    headroom: Headroom,
    allowance: Allowance,
    undone: Collection[str],
) -> tuple[Sequence[Evict], str | None]:
    """Evict the released pods whose replacements are available, and say what holds others back.

    Where no replacement can be made beside the released pods, one of these makes way for it. The
    next one does only once the replacement is Ready.
    """
    leaving, wave = replaced(disruption, undone), Wave.RETIRE
    available = _available(disruption)
    reason = f"others serve in its place: {available} of {disruption.replicas} are available"
    moving = disruption.leaving or any(p.node and not p.ready for p in disruption.staying)
    if not leaving and not moving and _is_pressed(disruption):
        for pod in _leaving_order(disruption):
            if pod.uid in undone:
                continue
            if (hindrance := _hindrance(disruption, headroom, pod)) is not None:
                leaving, wave = [pod], Wave.LEAVE
                reason = f"its replacement cannot run beside it: {hindrance}"
                break
    refused = {pod.uid: why for pod in leaving if (why := allowance.take(pod)) is not None}
    evictions = [
        Evict(pod=pod, reason=reason, wave=wave) for pod in leaving if pod.uid not in refused
    ]
    return evictions, next(iter(refused.values()), None)


def _hindrance(disruption: WorkloadDisruption, headroom: Headroom, pod: Pod) -> str | None:
    """Say why a replacement is not made, or has no node, until this released pod leaves; else None.

    It leaves for that only if there is a place for the replacement.
    A pod that no node and no node group can take is tried again without the released pod: spread
    constraints and anti-affinity by zone may count it.
    """
    if disruption.workload is not None and disruption.workload.replica_failure is not None:
        if disruption.workload.makes_none or headroom.move(pod) is None:
            return None
        return disruption.workload.why_unmade
    lost = (p for p in disruption.staying if p.uid in headroom.unplaceable)
    new = next(lost, None)
    if new is not None and headroom.fits_without(new, pod):
        return f"it counts in the spread or anti-affinity of {new.name}, which is Pending"
    return None


def _undone(
    disruption: WorkloadDisruption, headroom: Headroom, allowance: Allowance
) -> Mapping[str, Evict | UndoRelease]:
    """Hand pods back that must not stay released, by their uids.

    Their nodes stay; or their owner changed what made them eligible; or no deadline is near, and their replacements
    cannot be made in the place that is there, or not or on no node for `PATIENCE`, or a budget lets none leave for that
    long.
    """
    found: dict[str, Evict | UndoRelease] = {}
    for pod in disruption.released:
        why = disruption.undone.get(pod.uid)
        if why and (undo := undo_release(disruption, pod, why)):
            found[pod.uid] = undo
    if _is_pressed(disruption):
        return found
    workload = disruption.workload
    unmade = disruption.missing if workload and _gives_up(workload, disruption.now) else 0
    unplaced = sum(
        p.pending and disruption.now - p.created >= PATIENCE and headroom.snapshot.where(p) is None
        for p in disruption.staying
    )
    held = 0
    if _is_settled(disruption):
        held = sum(allowance.take(pod) is not None for pod in replaced(disruption))
    standing = [
        p
        for p in disruption.released
        if p.uid in disruption.on_interrupted_nodes and p.uid not in found
    ]
    words = "its replacement found no node"
    if held:
        words = f"its PodDisruptionBudget {disruption.budgets[0].ref.name} allows no disruption now"
    for pod in standing[: unplaced + unmade + held]:
        if undo := undo_release(disruption, pod, f"{words}, and no deadline is near"):
            found[pod.uid] = undo
    return found


def _is_settled(disruption: WorkloadDisruption) -> bool:
    """Whether all pods that its ReplicaSets count have been Ready for some minutes."""
    counted = [p for p in disruption.pods if not p.released and disruption.serves(p)]
    return all(p.ready_since and disruption.now - p.ready_since >= PATIENCE for p in counted)


def _gives_up(workload: Workload, now: datetime) -> bool:
    """Whether nothing is made beside released pods that is worth to wait for: what a webhook holds up may come any moment."""
    since = workload.failing_since
    passes = workload.makes_none and since is not None and now - since < PATIENCE
    return workload.replica_failure is not None and not passes


def undo_release(
    disruption: WorkloadDisruption, pod: Pod, reason: str
) -> Evict | UndoRelease | None:
    """Hand a pod back to its ReplicaSet, if that still is the current one; else it leaves, once others serve instead."""
    current = disruption.current
    if current is not None and pod.generate_name == f"{current.ref.name}-":
        return UndoRelease(pod=pod, replica_set=current, reason=reason)
    if pod.uid not in _surplus(disruption):
        return None
    return Evict(pod=pod, reason=f"{reason}, and its ReplicaSet is not the current one: surplus")


def _surplus(disruption: WorkloadDisruption) -> frozenset[str]:
    """Return the uids of released pods without which as many serve as it has replicas."""
    order = sorted(disruption.released, key=disruption.serves)  # those that do not serve first
    idle = sum(not disruption.serves(p) for p in order)
    more = max(0, disruption.serving - disruption.replicas)
    return frozenset(p.uid for p in order[: idle + more])


def undo_for_good(
    seen: Observation, disruption: WorkloadDisruption, pod: Pod, reason: str
) -> Evict | UndoRelease:
    """Undo a release where nobody may come again to evict a pod of an earlier template once others serve."""
    made = seen.replica_set(pod)
    kept = None if made is None else UndoRelease(pod=pod, replica_set=made, reason=reason)
    return undo_release(disruption, pod, reason) or kept or Evict(pod=pod, reason=reason)


def _leaving_anyway(disruption: WorkloadDisruption, allowance: Allowance) -> Iterator[Pod]:
    for pod in replaced(disruption):
        allowance.take(pod)
    return (action.pod for action in _in_time(disruption, allowance, ()) if not action.pod.released)


def _spare(disruption: WorkloadDisruption) -> int:
    """Return how many may leave before their replacements serve: its ready floor holds, and one serves."""
    if is_rolling(disruption) or disruption.uncounted:
        return 0
    serving = min(disruption.serving, disruption.replicas)
    return max(0, serving - max(1, disruption.floor))


def _in_time(
    disruption: WorkloadDisruption, allowance: Allowance, others: Collection[str]
) -> Sequence[Evict]:
    """Evict pods that may need all the time that is left, as many as their budget lets go, or else the ready floor.

    Those that were released are first: their replacements are under way.

    Args:
        disruption: the workload.
        allowance: what the budgets leave once those go that are no longer needed.
        others: uids of pods that leave for another reason.
    """
    spare = _spare(disruption)
    others = {*others, *(pod.uid for pod in replaced(disruption))}
    pods = sorted(
        (
            one.pod
            for one in disruption.evictable
            if one.pod.serving and one.pod.uid not in others and one.may_need_more(disruption.now)
        ),
        key=lambda pod: not pod.released,  # the replacements of the released are under way
    )
    serving = sum(disruption.serves(p) and p.uid not in others for p in disruption.pods)
    found = []
    for pod in pods:
        covered = pod.uid in disruption.covering
        # What a budget over several workloads lets go may be owed to another one's surplus.
        if serving > disruption.kept and allowance.take(pod) is None if covered else spare > 0:
            spare -= not covered
            serving -= 1
            found.append(Evict(pod=pod, reason=f"{TIME_TO_STOP} to stop"))
    return found


def _releases(
    disruption: WorkloadDisruption,
    able: list[EvictablePod],
    headroom: Headroom,
    *,
    standing: int,
) -> tuple[Sequence[Release], str | None]:
    """Release pods, those of superseded ReplicaSets last, and say what holds others back."""
    lacking = [b for b in disruption.budgets if b.missing and not _is_pressed(disruption)]
    if able and lacking:
        return (), f"{lacking[0].ref} would let none go beside a replacement: others are unhealthy"
    # Those of superseded ReplicaSets last: their rollout takes them away in any case.
    chosen = sorted(able, key=lambda one: one.replica_set != disruption.current)
    waiting = None
    # Each limit cuts what the one before it left, and the words of the last one that cut are told. Places are claimed only
    # for as many as may stand released. What others count on comes last: only replacements with a place take from it.
    limits: Sequence[_Limit] = (
        partial(_most_standing, standing=standing),
        _most_with_headroom,
        _most_beside_others,
    )
    for limit in limits:
        most, why = limit(disruption, chosen, headroom)
        if most < len(chosen):
            chosen, waiting = chosen[:most], why
    for one in chosen[:1]:
        headroom.contention.join(replacement_of(one.pod), len(chosen))
    return releases(chosen, _why_released(disruption), disruption.now), waiting


def _why_released(disruption: WorkloadDisruption) -> str:
    shifted = all(one.departure.cause is Cause.ZONAL_SHIFT for one in disruption.evictable)
    where = "in a zone that traffic is shifted away from" if shifted else "on interrupted nodes"
    return (
        f"{len(disruption.evictable)} of its {disruption.replicas} pods stand {where}; "
        "their replacements come first"
    )


type _Limit = Callable[[WorkloadDisruption, Sequence[EvictablePod], Headroom], tuple[int, str]]
"""How many of these pods may be released now, and what the others wait for."""


def _most_standing(
    disruption: WorkloadDisruption,
    _chosen: Sequence[EvictablePod],
    _headroom: Headroom,
    *,
    standing: int,
) -> tuple[int, str]:
    """Limit how many pods stand released at once.

    Each release has the controller create one more pod, which no admission policy can count: no more stand released than
    there are replicas. A HorizontalPodAutoscaler counts replacements as idle until they are Ready. With a tenth of the
    replicas it scales up as it does within its own tolerance; a near deadline leaves no time for that.
    """
    workload = disruption.workload
    if workload is None or workload.scaler is None or _is_pressed(disruption):
        room = max(0, disruption.replicas - standing)
        return room, f"waits: {standing} of its pods stand released already"
    share = max(0, max(1, disruption.replicas // 10) - standing)
    return share, "waits: its autoscaler counts replacements as idle"


def _most_with_headroom(
    disruption: WorkloadDisruption, chosen: Sequence[EvictablePod], headroom: Headroom
) -> tuple[int, str]:
    """Claim a place for each replacement; those without one may be Pending only where that harms nobody."""
    fits = sum(headroom.add(one.pod) is not None for one in chosen)
    # Nobody is Pending without a place before the first replacement of each workload has its own.
    if fits > 0 and not disruption.staying:
        headroom.keep_from_pending()
    patient = not (_is_pressed(disruption) or _is_provisioned(disruption))
    most = fits if headroom.reserved or patient else len(chosen)
    return most, "waits for headroom for its replacements"


def _most_beside_others(
    _disruption: WorkloadDisruption, chosen: Sequence[EvictablePod], headroom: Headroom
) -> tuple[int, str]:
    """Leave the places sure that pods which cannot run twice count on."""
    if not chosen:
        return 0, CONTENDED
    return headroom.contention.spares(replacement_of(chosen[0].pod), len(chosen)), CONTENDED


RELEASE = Strategy(
    name="release", surges=True, why=_why, steps=_steps, leaving_anyway=_leaving_anyway
)
