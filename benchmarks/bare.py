"""The least that any client can do: cordons nodes with urllib3, and nothing else.

A bound for the other benchmarks, which start it as a process of its own:

    python bare.py URL TOKEN THREADS [--wait] NODE...

With --wait it says `ready` and sends nothing until it is told to go on standard input.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import urllib3

TAINT = {"key": "plimsoll.dev/interruption", "value": "spot-interruption", "effect": "NoSchedule"}
BODY = json.dumps({"spec": {"unschedulable": True, "taints": [TAINT]}})


def main(url: str, token: str, threads: int, nodes: list[str]) -> None:
    pool = urllib3.PoolManager(maxsize=threads)
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/merge-patch+json",
    }

    def cordon(node: str) -> int:
        path = f"{url}/api/v1/nodes/{node}"
        return pool.request("PATCH", path, body=BODY, headers=headers).status

    if nodes[0] == "--wait":
        nodes = nodes[1:]
        print("ready", flush=True)
        sys.stdin.readline()
    if threads == 1:
        statuses = [cordon(node) for node in nodes]
    else:
        with ThreadPoolExecutor(threads) as workers:
            statuses = list(workers.map(cordon, nodes))
    if set(statuses) != {200}:
        raise SystemExit(f"the cluster answered {statuses}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
