"""Instructions on their way to executors, and what became of them.

One that was signed is the document `instruction#NUMBER`: its bytes, and its result once the executor has
reported it. While it waits for the executor it is also the document `waiting#NUMBER`, which expires with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.domain.errors import Conflict, NotFound
from plimsoll_service.services.paging import Filter, PageRequest, cut, documents_of
from plimsoll_service.services.ports import Document, TenantData
from plimsoll_service.services.stored import read, stored
from plimsoll_service.wire.documents import Malformed, decode, encode
from plimsoll_service.wire.instruction_log import (
    InstructionRow,
    InstructionRows,
    SignedRow,
    told,
)
from plimsoll_service.wire.instructions import Instruction, Instructions, Result, SignedInstruction

INSTRUCTION_KEPT: Final = timedelta(days=400)
"""How long a signed instruction is kept after it has expired."""
REPORTED_WITHIN: Final = timedelta(days=90)
"""How late after the expiry of its instruction a result may come."""
MOST_INSTRUCTIONS: Final = 100
"""How many an executor is given at once."""
LOG: Final = "instruction#"
"""How the keys of signed instructions begin."""
LOG_FILTERS: Final[Mapping[str, Filter]] = {
    "outcome": Filter(
        description="what became of it",
        values=("waiting", "unanswered", "done", "refused", "failed", "would-do"),
    )
}
_LAST: Final = 2**53


class _Issued(Struct, frozen=True, kw_only=True):
    signed: SignedInstruction
    expires: datetime
    """When the instruction expires."""
    result: Result | None = None


def post(
    data: TenantData, cluster: str, number: int, signed: SignedInstruction, expires: datetime
) -> None:
    """Let an instruction wait for the executor of a cluster.

    Raises:
        Conflict: one of that number was issued already.
    """
    issued = _Issued(signed=signed, expires=expires)
    # The log first: an executor may report as soon as the instruction waits.
    data.put(cluster, _logged(number), encode(issued), expires=expires + INSTRUCTION_KEPT)
    data.put(cluster, _waiting(number), encode(signed), expires=expires)


def pending(data: TenantData, cluster: str, *, most: int = MOST_INSTRUCTIONS) -> Instructions:
    """Return what waits for an executor, in the order of the numbers."""
    found = data.list(cluster, _waiting(0), _waiting(_LAST), limit=most)
    signed = (read(data, cluster, each, SignedInstruction) for each in found)
    return Instructions(instructions=tuple(each for each in signed if each is not None))


def report(data: TenantData, cluster: str, results: Sequence[Result], now: datetime) -> None:
    """Write down what became of instructions, and drop what is of none that was issued, or comes too late.

    Of two results of one number the first counts.
    """
    for result in results:
        key = _logged(result.number)
        issued, version = stored(data, cluster, key, _Issued)
        if issued is None or now > issued.expires + REPORTED_WITHIN:
            continue
        if issued.result is None:
            body = encode(replace(issued, result=result))
            kept = issued.expires + INSTRUCTION_KEPT
            with suppress(Conflict):  # somebody reports it at the same time
                data.put(cluster, key, body, version=version, expires=kept)
        # Deleted after the result is stored: otherwise a crash in between would
        # lose the result. The executor answers a second delivery as before.
        data.delete(cluster, _waiting(result.number))


def result_of(data: TenantData, cluster: str, number: int) -> Result | None:
    """Return what became of an instruction, once its executor has said so."""
    issued, _ = stored(data, cluster, _logged(number), _Issued)
    return issued.result if issued else None


def instruction_rows(
    data: TenantData, cluster: str, asked: PageRequest, now: datetime
) -> InstructionRows:
    """Return a page of the instructions that were signed for a cluster, newest first."""
    found = documents_of(data, cluster, LOG, asked, descending=True)
    outcome = asked.filters.get("outcome")
    rows = ((each.key, _row(data, cluster, each, now)) for each in found)
    page = cut(
        ((key, row) for key, row in rows if row is not None),
        asked,
        key=lambda each: each[0],
        keep=lambda each: outcome in {None, each[1].outcome},
        descending=True,
    )
    items = tuple(
        InstructionRow(**{name: getattr(row, name) for name in InstructionRow.__struct_fields__})
        for _, row in page.items
    )
    return InstructionRows(items=items, next=page.next, as_of=now)


def signed_instruction(data: TenantData, cluster: str, number: str, now: datetime) -> SignedRow:
    """Return an instruction with the bytes that were signed.

    Args:
        data: of its tenant.
        cluster: which it was signed for.
        number: as it stands in the request.
        now: the time.

    Raises:
        NotFound: none of that number was signed, or that is longer ago than INSTRUCTION_KEPT.
    """
    missing = NotFound(f"no instruction {number[:64]} was signed for {cluster}")
    if not number.isascii() or not number.isdecimal() or len(number) > len(str(_LAST)):
        raise missing
    found = data.get(cluster, _logged(int(number)))
    row = None if found is None else _row(data, cluster, found, now)
    if row is None:
        raise missing
    return row


def _row(data: TenantData, cluster: str, found: Document, now: datetime) -> SignedRow | None:
    """Return a row of the log, or None: the document cannot be read, and the operator is told."""
    issued = read(data, cluster, found, _Issued)
    if issued is None:
        return None
    try:
        instruction = decode(issued.signed.payload, Instruction)
    except Malformed as error:
        data.fault(cluster, found.key, str(error))
        return None
    facts = told(instruction, issued.signed)
    result = issued.result
    if result is None:
        is_open = now < issued.expires
        return SignedRow(
            **facts, outcome="waiting" if is_open else "unanswered", signed=issued.signed
        )
    return SignedRow(
        **facts,
        outcome=result.outcome,
        reason=result.reason,
        reported_at=result.at,
        signed=issued.signed,
    )


def _waiting(number: int) -> str:
    return f"waiting#{number:016d}"


def _logged(number: int) -> str:
    return f"{LOG}{number:016d}"
