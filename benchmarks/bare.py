"""The least that a client can do: cordon one node with urllib3.

The bound of `cold_start.py`, which starts it as a process of its own; nothing else is imported:

    python bare.py URL TOKEN NODE
"""

from __future__ import annotations

import json
import sys

import urllib3

TAINT = {"key": "plimsoll.dev/interruption", "value": "spot-interruption", "effect": "NoSchedule"}
CORDON = json.dumps({"spec": {"unschedulable": True, "taints": [TAINT]}})
OK = 200


def main(url: str, token: str, node: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"}
    answer = urllib3.PoolManager().request(
        "PATCH", f"{url}/api/v1/nodes/{node}", body=CORDON, headers=headers
    )
    if answer.status != OK:
        raise SystemExit(f"the cluster answered {answer.status}")


if __name__ == "__main__":
    main(*sys.argv[1:])
