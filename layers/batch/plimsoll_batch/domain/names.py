"""The names that the queues read and write on objects: each stands here once."""

from __future__ import annotations

from typing import Final

from plimsoll.domain.kubernetes import names
from plimsoll.domain.registry import JOB_ADMISSION, JOB_NODES, JOB_QUEUE, JOB_STOP

QUEUE: Final = JOB_QUEUE
ADMISSION: Final = JOB_ADMISSION
STOP: Final = JOB_STOP
NODES: Final = JOB_NODES
GATE: Final = "plimsoll.dev/queue"
"""On a bare pod, scheduling gate: it waits for the queues. Taken off, it cannot be put on again."""
GANG: Final = "plimsoll.dev/gang"
"""On a Job, label: the gang that it is a role of, by name in its namespace. Without it: a gang of one. On a PodGroup,
label of ours: the gang that it was made for."""
ROLE: Final = "plimsoll.dev/role"
"""On a Job, label: the role. By default the Job's name, without that of its gang before a dash."""
GANG_SIZE: Final = "plimsoll.dev/gang-size"
"""On a Job of a gang, annotation: pods of all roles together. The gang waits until its Jobs have as many. With
`MIN:MAX` it needs MAX to start, and goes on while MIN run."""
PRIORITY: Final = "plimsoll.dev/priority"
"""On a Job, annotation: a name from `priorities` of the queues' file, or a whole number where the file has none; the
highest of a gang's roles counts. 0 by default."""
GRANT: Final = "queues.plimsoll.dev/"
"""On a Namespace, label `queues.plimsoll.dev/QUEUE`: its gangs may use the queue of that name when "true"."""
QUEUES: Final = "plimsoll.dev/queues"
"""On a Namespace, label: its Jobs that name a queue are created suspended, and the planner alone starts them, when
"true"."""
QUEUE_REQUIRED: Final = "plimsoll.dev/queue-required"
"""On a Namespace, label: its Jobs and bare pods must name a queue when "true"."""
DEFAULT_QUEUE: Final = "plimsoll.dev/default-queue"
"""On a Namespace, label: the queue of its Jobs that name none."""
TOPOLOGY: Final = "plimsoll.dev/topology"
"""On a Job, annotation: `required=LABEL` or `preferred=LABEL`: all pods in one domain of a node label."""
DATA: Final = "plimsoll.dev/data"
"""On a Job, annotation: `ZONE=WEIGHT,…`: how much of its gang's data is in which zone."""
START_SECONDS: Final = "plimsoll.dev/start-seconds"
"""On a Job, annotation: how long its pods may take until they run. Then the gang is suspended and waits."""
CHECKPOINT_SECONDS: Final = "plimsoll.dev/checkpoint-seconds"
"""On a Job, annotation: how often it saves its work. Flavors with prices are ordered by what that loses."""
CHECKPOINT_TAKES_SECONDS: Final = names.CHECKPOINT_TAKES_SECONDS
HOLD: Final = "plimsoll.dev/hold"
"""On a Job, annotation: its gang is not started, and is suspended where it runs, when "true"."""

ON_INTERRUPTION: Final = "plimsoll.dev/on-interruption"
"""On a Job, annotation: when a node of its gang is reclaimed soon, `suspend` suspends it whole, and `tell`
writes the deadline on all its pods, and suspends it whole when the first of them has to stop."""
DEADLINE: Final = names.DEADLINE
LEASE_NODES: Final = "plimsoll.dev/lease-nodes"
"""On a Job, annotation: its gang takes whole nodes and has them for itself when "true"."""
NOT_LEASED: Final = "QueueNotLeased"
"""The reason of Events that warn that a gang is not given its nodes, for example for want of a right."""
LEASED_TO: Final = "plimsoll.dev/leased-to"
"""On a Node, label and taint of ours: the gang whose pods alone may come."""
LIFECYCLE: Final = "plimsoll.dev/lifecycle"
"""On a Job, annotation: what its role waits for, and what is done about what happens to it. JSON."""
RESUME: Final = "plimsoll.dev/resume"
"""On a Job, annotation: the plan after which it was suspended by hand, and may start again."""

CONFIGURATION: Final = "plimsoll-queues"
"""The ConfigMap in the namespace `plimsoll` that holds the configuration of the queues."""
CONFIGURATION_KEY: Final = "queues.json"
LEASE: Final = "queues"
"""One planner at a time carries out plans in a cluster."""
