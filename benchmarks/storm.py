"""How soon nodes are cordoned and emptied when all get their notice in the same second.

Two rigs. On `emulated` the cluster is a hollow one and only cordoning is measured. On `cluster` it
is a real control plane, measured by a watch in a process of its own, until every node is empty or
its two minutes are over. The time to the cordon is split at the start of the function that handled
the event, which its log tells. Beside it stand bounds: a process with sixteen threads that does
nothing but cordon as many nodes, and on `cluster` another that then evicts all their pods. Run it
from the repository, after `make build`:

    .venv/bin/python benchmarks/storm.py [--nodes 50] [--runs 3]
    .venv/bin/python benchmarks/storm.py --rig cluster [--nodes 50] [--runs 3] [--size usual]

Everything but this line of command lies in `storms/`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    runpy.run_module("benchmarks.storms", run_name="__main__", alter_sys=True)
