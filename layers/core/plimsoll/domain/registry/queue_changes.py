"""What the agent of a cluster says of the batch queues: that a Job of one changed.

The optimisation service puts it on the bus, and the stack of the queues reads it. It names nothing but the
agent: whoever hears it looks at the cluster itself.
"""

from __future__ import annotations

from typing import Final

from plimsoll.domain.notices import AGENT_ID, SERVICE_SOURCE, open_envelope

QUEUE_CHANGE_DETAIL_TYPE: Final = "Plimsoll Queue Change"
JOB_QUEUE: Final = "plimsoll.dev/queue"
"""On a Job, label: the queue that it waits in. A Job without it is none of the queues'."""
JOB_ADMISSION: Final = "plimsoll.dev/admission"
"""On a Job, annotation of ours: the plan by which it starts. It counts once a role of its gang has started."""
JOB_STOP: Final = "plimsoll.dev/stop"
"""On a Job, annotation of ours: why it was suspended last, and what it has to remember of that."""
JOB_NODES: Final = "plimsoll.dev/nodes"
"""On a Job, annotation of ours: what node groups were asked for its gang."""
JOB_ANNOTATIONS: Final = frozenset({JOB_ADMISSION, JOB_STOP, JOB_NODES})
"""What the planner writes on a Job: of that it need not be told."""


def agent_of(body: object) -> str | None:
    """Return the agent that says so, as the service proved; None where an event says something else.

    Raises:
        BadInput: it is no event, or names no agent.
    """
    event = open_envelope(body)
    if (event.source, event.detail_type) != (SERVICE_SOURCE, QUEUE_CHANGE_DETAIL_TYPE):
        return None
    said = event.fields["detail"].present()["agent"]
    return said.matching(AGENT_ID, "letters, digits and -, 64 at most")
