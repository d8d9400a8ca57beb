"""The stand-ins' own process. `process.Standins` starts it and talks with it: JSON, a line each."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plimsoll.adapters.kubernetes.kubeconfig import load
from plimsoll_testbed.model.hollow.edits import Json
from plimsoll_testbed.model.hollow.state import PodStopped
from plimsoll_testbed.rigs.controlplane.fake_kubelets.kubelets import Kubelets
from plimsoll_testbed.rigs.controlplane.fake_kubelets.loop import Loop
from plimsoll_testbed.rigs.controlplane.fake_kubelets.metrics import Metrics
from plimsoll_testbed.rigs.controlplane.fake_kubelets.process import settings_of
from plimsoll_testbed.rigs.controlplane.fake_kubelets.volumes import Volumes
from plimsoll_testbed.rigs.controlplane.fake_kubelets.watching import Follower, Hears


def main() -> None:
    """Play until standard input ends."""
    threading.excepthook = _give_up
    kubeconfig = Path(sys.argv[1])
    told = json.loads(sys.stdin.readline())
    transport, _ = load(kubeconfig)
    loop = Loop(transport)
    settings = settings_of(told)
    volumes = Volumes(loop, settings)
    kubelets = Kubelets(loop, settings, volumes, stopped=_tell)
    metrics = Metrics(loop, kubeconfig.parent.parent / "certificates")
    metrics.start()

    def nodes(change: str, node: Json) -> None:
        volumes.node(change, node)
        kubelets.node(change, node)

    def pods(change: str, pod: Json) -> None:
        metrics.pod(change, pod)
        kubelets.pod(change, pod)

    for path, hears in (
        ("/api/v1/nodes", nodes),
        ("/apis/storage.k8s.io/v1/storageclasses", volumes.storage_class),
        ("/api/v1/persistentvolumeclaims", volumes.claim),
        ("/api/v1/persistentvolumes", volumes.volume),
        ("/apis/storage.k8s.io/v1/volumeattachments", volumes.attachment),
        ("/api/v1/pods", pods),
    ):
        Follower(kubeconfig, path, _posted(loop, hears)).start()
    threading.Thread(target=_obey, args=(loop, kubelets), daemon=True).start()
    loop.run()


def _posted(loop: Loop, hears: Hears) -> Hears:
    def hear(change: str, item: Json) -> None:
        loop.post(lambda: hears(change, item))

    return hear


def _obey(loop: Loop, kubelets: Kubelets) -> None:
    for line in sys.stdin:
        node = json.loads(line)["vanish"]

        def vanish(node: str = node) -> None:
            kubelets.vanish(node)
            _say({"vanished": node})

        loop.post(vanish)
    os._exit(0)  # the starter is gone, and whatever is under way concerns nobody any more


def _give_up(failed: threading.ExceptHookArgs) -> None:
    """End with the first thread that fails: half of the stand-ins would play a cluster wrong."""
    traceback.print_exception(failed.exc_value)
    os._exit(1)


def _tell(stopped: PodStopped) -> None:
    _say({"pod": stopped.pod, "how": stopped.how, "at": stopped.at.isoformat()})


def _say(words: Mapping[str, Any]) -> None:
    print(json.dumps(words), flush=True)  # noqa: T201 - standard output is the way to the starter


if __name__ == "__main__":
    main()
