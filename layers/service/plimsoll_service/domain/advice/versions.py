"""Versions of a recommendation: each change that a decision should know of makes a new one."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from plimsoll_service.domain.errors import Changed
from plimsoll_service.wire.advice import MOST_WORDS, Recommendation
from plimsoll_service.wire.documents import shortened


def numbered(before: Recommendation | None, after: Recommendation) -> Recommendation:
    """Return what a run made of a recommendation, with the next version if it differs from the one before."""
    if before is None:
        return after
    what = "; ".join(_differences(before, after))
    if not what:
        return replace(after, version=before.version, change=before.change)
    return replace(after, version=before.version + 1, change=shortened(what, MOST_WORDS))


def refuse_changed(each: Recommendation, seen: int) -> None:
    """Let only a decision about the present version pass.

    Raises:
        Changed: another version was seen.
    """
    if each.version != seen:
        raise Changed(
            f"{each.id} is version {each.version}, and you saw version {seen}: "
            f"{each.change or 'look at it again'}"
        )


def _differences(before: Recommendation, after: Recommendation) -> Iterator[str]:
    if after.state != before.state:
        yield f"it is {after.state}, and was {before.state}"
    # Prices move by cents from run to run: that is no new version.
    if round(after.monthly) != round(before.monthly):
        yield f"it saves ${after.monthly:,.2f} a month, and saved ${before.monthly:,.2f}"
    if after.reason != before.reason:
        yield f"the reason is now: {after.reason}"
    if after.executable != before.executable:
        yield "the agent carries it out" if after.executable else "you carry it out"
    if (after.patch, after.containers) != (before.patch, before.containers):
        yield "the patch is another one"
