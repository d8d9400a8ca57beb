"""Instructions on their way to executors, and what became of them.

One that waits is the document `waiting#NUMBER`, which expires with the instruction. Its result is the
document `result#NUMBER`, written with it and filled in by its executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.domain.errors import Conflict
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.stored import read, stored
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.instructions import Instructions, Result, SignedInstruction

RESULT_KEPT: Final = timedelta(days=90)
"""How long a result is kept after its instruction has expired, and how late it may come."""
MOST_INSTRUCTIONS: Final = 100
"""How many an executor is given at once."""
_LAST: Final = 2**53


class _Issued(Struct, frozen=True, kw_only=True):
    expires: datetime
    result: Result | None = None


def post(
    data: TenantData, cluster: str, number: int, signed: SignedInstruction, expires: datetime
) -> None:
    """Let an instruction wait for the executor of a cluster.

    Raises:
        Conflict: one of that number was issued already.
    """
    issued = _Issued(expires=expires + RESULT_KEPT)
    # The result's document first: an executor may report as soon as the instruction waits.
    data.put(cluster, _result(number), encode(issued), expires=issued.expires)
    data.put(cluster, _waiting(number), encode(signed), expires=expires)


def pending(data: TenantData, cluster: str, *, most: int = MOST_INSTRUCTIONS) -> Instructions:
    """Return what waits for an executor, in the order of the numbers."""
    found = data.list(cluster, _waiting(0), _waiting(_LAST), limit=most)
    signed = (read(data, cluster, each, SignedInstruction) for each in found)
    return Instructions(instructions=tuple(each for each in signed if each is not None))


def report(data: TenantData, cluster: str, results: Sequence[Result]) -> None:
    """Write down what became of instructions, and drop what is of none that was issued.

    Of two results of one number the first counts.
    """
    for result in results:
        key = _result(result.number)
        issued, version = stored(data, cluster, key, _Issued)
        if issued is None:
            continue
        if issued.result is None:
            body = encode(replace(issued, result=result))
            with suppress(Conflict):  # somebody reports it at the same time
                data.put(cluster, key, body, version=version, expires=issued.expires)
        # Deleted after the result is stored: otherwise a crash in between would
        # lose the result. The executor answers a second delivery as before.
        data.delete(cluster, _waiting(result.number))


def result_of(data: TenantData, cluster: str, number: int) -> Result | None:
    """Return what became of an instruction, once its executor has said so."""
    issued, _ = stored(data, cluster, _result(number), _Issued)
    return issued.result if issued else None


def _waiting(number: int) -> str:
    return f"waiting#{number:016d}"


def _result(number: int) -> str:
    return f"result#{number:016d}"
