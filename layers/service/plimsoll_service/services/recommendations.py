"""Advice about a cluster: analysed, kept, accepted, and made into instructions.

The document `savings` holds the newest advice, and `recommendations` the recommendations. A decision about
one is a word in that document. Only `advise` signs, with a key that no other function may use: the API,
which anybody can reach, cannot make an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from plimsoll_service.domain.advice import (
    advised_columns,
    awaits_instruction,
    configuration_of,
    instruction_for,
    lapsed,
    merged,
    numbered,
    refused,
    resolved,
    undismissed,
)
from plimsoll_service.domain.analysis import (
    HISTORY,
    YOUNGEST,
    OutOfTime,
    PriceTable,
    View,
    analyse,
    never,
)
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.cluster_rows import tell_advised
from plimsoll_service.services.day_prices import keep_prices
from plimsoll_service.services.history import keep_last, newest, usage
from plimsoll_service.services.instructions import post, result_of
from plimsoll_service.services.kept_advice import RECOMMENDATIONS, SAVINGS, read_recommendations
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.savings import tell_what_was_saved
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.advice import Advice, Kind, Recommendation, Recommendations
from plimsoll_service.wire.documents import Unwritable, encode
from plimsoll_service.wire.instructions import Instruction, SignedInstruction, Signer, sign

type Prices = Callable[[str | None], PriceTable]
"""Returns the prices of a region."""

IDLE: Final = "idle-load-balancers"
"""The document that holds since when load balancers were seen idle."""
NUMBER: Final = "last-number"
"""The document that holds the number of the last instruction to a cluster."""
FRESH: Final = timedelta(minutes=10)
"""From an older snapshot no instruction is made."""
RECOMMENDATIONS_KEPT: Final = timedelta(days=90)
"""How long a recommendation that is not advised any more is kept."""
OVER: Final = frozenset({"withdrawn", "refused"})
_RANK: Final = {"accepted": 0, "dismissed": 1}
"""What is kept first of those that are not open: what waits for something."""
MOST_RECOMMENDATIONS: Final = 300
"""Recommendations of a cluster that are open, and as many others. They are one document: a run writes once, and
an answer of Lambda has 6 MB at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """What a run did."""

    found: int
    """Recommendations that the analysis made."""
    changed: int
    """Those that are new, or changed."""
    configuration: str
    """Of the snapshot that it is made of; empty where an accepted one waits for a later snapshot."""
    instructions: tuple[int, ...] = ()
    """Numbers of the instructions that were issued."""
    unreached: tuple[Kind, ...] = ()
    """What the time did not suffice for."""
    killed: int = 0
    """Runs before this one that did not end."""


def advise(  # noqa: PLR0913 - what a run is made of, each part named
    data: TenantData,
    cluster: str,
    *,
    prices: Prices,
    signer: Signer | None,
    now: datetime,
    out_of_time: OutOfTime = never,
) -> Advised | None:
    """Analyse a cluster, keep what was found, and issue instructions for what was accepted.

    Args:
        data: of its tenant.
        cluster: its id.
        prices: of the region that the nodes are in.
        signer: signs instructions; None: none are issued.
        now: the time.
        out_of_time: says when the analysis has to end: what it does not reach stands as it was advised before.

    Returns:
        What was done, or None: no snapshot of the cluster is there.

    Raises:
        Conflict: others wrote about the cluster meanwhile: run again.
    """
    seen = newest(data, cluster)
    if seen is None:
        return None
    # Before the analysis, which may fail: the bucket keeps the snapshot of a silent cluster for days only.
    keep_last(data, cluster, seen, now)
    expires = now + Span.DAY.kept
    view = View(seen=seen.snapshot)
    table = prices(view.region)
    keep_prices(data, cluster, table, view.instance_types, now)
    before, version = stored(data, cluster, SAVINGS, Advice)
    analysis = analyse(
        view,
        table,
        week=usage(data, seen, now - HISTORY, now)[0],
        earlier=usage(data, seen, now - HISTORY, now - YOUNGEST)[0],
        idle=_idle_since(data, cluster, view, expires),
        before=before,
        out_of_time=out_of_time,
    )
    unreached = analysis.advice.unreached
    if analysis.advice != before:
        # Each document is written under the version that was read: a parallel run gets a Conflict and begins again.
        data.put(cluster, SAVINGS, encode(analysis.advice), version=version, expires=expires)
    kept, version = read_recommendations(data, cluster)
    known = {each.id: each for each in kept.recommendations}
    after = {
        id_: undismissed(lapsed(_resolved(data, cluster, each, now), now), now)
        for id_, each in known.items()
    }
    after |= {each.id: each for each in merged(after, analysis.recommendations, view, unreached)}
    waiting = [each for each in after.values() if awaits_instruction(each)]
    is_fresh = now - view.at <= FRESH
    issued: list[tuple[Instruction, SignedInstruction]] = []
    if signer is not None and is_fresh:
        nodes = {found.node.uid: found for found in analysis.consolidations.found}
        for each in waiting:
            found = nodes.get(each.about.uid)
            if each.about.name in analysis.consolidations.unreached:
                continue  # accepted, and judged by a run that has the time
            if found is None:
                why = analysis.consolidations.kept.get(each.about.name, "the node is gone")
                after[each.id] = refused(each, why, now)
                continue
            # Taken before the instruction is made: a crash leaves a gap in the numbers, never a number twice.
            number = next_number(data, cluster, now)
            instruction = instruction_for(each, found, view, number, now)
            try:
                issued.append((instruction, sign(instruction, signer)))
            except Unwritable as error:
                after[each.id] = refused(each, f"no instruction can be made of it: {error}", now)
                continue
            after[each.id] = replace(each, instruction=number, changed_at=now)
    versions = (numbered(known.get(id_), each) for id_, each in after.items())
    made = _bounded(_writable(data, cluster, versions), now)
    if made != kept:
        data.put(cluster, RECOMMENDATIONS, encode(made), version=version, expires=expires)
    # Only now: a run that dies here leaves no instruction that no recommendation knows of.
    for instruction, signed in issued:
        post(data, cluster, instruction.number, signed, instruction.expires_at)
    tell_advised(data, cluster, advised_columns(view, analysis.advice, made.recommendations), now)
    tell_what_was_saved(data, cluster, now)
    return Advised(
        found=len(analysis.recommendations),
        changed=sum(known.get(each.id) != each for each in made.recommendations),
        configuration="" if waiting and not is_fresh else configuration_of(seen.snapshot),
        instructions=tuple(instruction.number for instruction, _ in issued),
        unreached=unreached,
    )


def _idle_since(
    data: TenantData, cluster: str, view: View, expires: datetime
) -> Mapping[str, datetime]:
    """Return since when each run saw load balancers without a Ready endpoint, and keep it for the next one."""
    before, version = stored(data, cluster, IDLE, dict[str, datetime])
    after = view.idle_since(before or {})
    if after != before:
        data.put(cluster, IDLE, msgspec.json.encode(after), version=version, expires=expires)
    return after


def _writable(
    data: TenantData, cluster: str, found: Iterable[Recommendation]
) -> Iterator[Recommendation]:
    """Yield the recommendations that can be read back: one that cannot be costs itself, and not all advice."""
    for each in found:
        try:
            encode(each)
        except Unwritable as error:
            data.fault(cluster, each.id, str(error))
        else:
            yield each


def _bounded(found: Iterable[Recommendation], now: datetime) -> Recommendations:
    """Return what is kept: of those that are open what saves most, of the others what was decided or is newest."""
    still = [f for f in found if f.state not in OVER or now - f.changed_at < RECOMMENDATIONS_KEPT]
    # The id breaks ties, so that the same recommendations are left out each time.
    is_open = sorted((f for f in still if f.state == "open"), key=lambda f: (-f.monthly, f.id))
    others = sorted(
        (f for f in still if f.state != "open"),
        key=lambda f: (_RANK.get(f.state, 2), -f.changed_at.timestamp(), f.id),
    )
    return Recommendations(
        recommendations=(*is_open[:MOST_RECOMMENDATIONS], *others[:MOST_RECOMMENDATIONS]),
        left_out=len(is_open[MOST_RECOMMENDATIONS:]),
    )


def _resolved(
    data: TenantData, cluster: str, each: Recommendation, now: datetime
) -> Recommendation:
    if each.state != "accepted" or not each.instruction:
        return each
    result = result_of(data, cluster, each.instruction)
    return each if result is None else resolved(each, result, now)


def next_number(data: TenantData, cluster: str, now: datetime) -> int:
    """Take the next number of an instruction: the time in seconds, or more where that was taken.

    An executor takes no number below one that it has seen. So it still takes those that follow the restore of
    a table, which forgets numbers.

    Raises:
        Conflict: another run takes one.
    """
    last, version = stored(data, cluster, NUMBER, int)
    number = max(int(now.timestamp()), 0 if last is None else last + 1)
    expires = now + Span.DAY.kept
    data.put(cluster, NUMBER, str(number).encode(), version=version, expires=expires)
    return number
