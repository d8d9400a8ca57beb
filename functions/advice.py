"""EventBridge schedule -> what each cluster could save, and instructions of what was accepted.

A cluster that fails is logged and left to the next run, in five minutes; the function fails at the end,
so that its alarm counts it.
"""

from __future__ import annotations

from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll.observability import logger
from plimsoll_service import bootstrap

RESERVE_MILLISECONDS: Final = 30_000
"""What one large cluster may take."""


class SomeFailed(RuntimeError):  # noqa: N818 - named for what happened
    """The advice for some clusters failed. Each was logged."""


@logger.inject_lambda_context
def handler(_event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Advise every cluster, as far as there is time."""
    found = bootstrap.rounds().run(
        lambda: context.get_remaining_time_in_millis() > RESERVE_MILLISECONDS
    )
    for cluster, advised in found.advised.items():
        if advised is not None:
            logger.info(
                "cluster advised",
                extra={
                    "cluster": cluster,
                    "found": advised.found,
                    "changed": advised.changed,
                    "instructions": advised.instructions,
                    "lost": advised.lost,
                },
            )
    for cluster, error in found.failed.items():
        logger.error("advice failed", extra={"cluster": cluster}, exc_info=error)
    if found.left:
        logger.warning("clusters left to the next run", extra={"clusters": len(found.left)})
    if found.failed:
        raise SomeFailed(f"the advice for {len(found.failed)} clusters failed")
    return {"advised": len(found.advised), "left": len(found.left)}
