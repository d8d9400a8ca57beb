"""The stand-ins' own process. Started by `process.Standins`; talks JSON, a line each."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from plimsoll.adapters.kubernetes.kubeconfig import load
from plimsoll.drill.controlplane.standins.kubelets import Kubelets
from plimsoll.drill.controlplane.standins.loop import Loop
from plimsoll.drill.controlplane.standins.volumes import Volumes
from plimsoll.drill.controlplane.standins.watching import Follower, Hears
from plimsoll.hollow.edits import Json
from plimsoll.hollow.settings import Settings
from plimsoll.hollow.world import PodStopped


def main() -> None:
    """Play until standard input ends."""
    begin = json.loads(sys.stdin.readline())
    kubeconfig = Path(begin["kubeconfig"])
    spans = {name: timedelta(seconds=value) for name, value in begin["settings"].items()}
    transport, _ = load(kubeconfig)
    loop = Loop(transport)
    settings = Settings(**spans)
    volumes = Volumes(loop, settings)
    kubelets = Kubelets(loop, settings, volumes, stopped=_tell)

    def nodes(change: str, node: Json) -> None:
        volumes.node(change, node)
        kubelets.node(change, node)

    for path, hears in (
        ("/api/v1/nodes", nodes),
        ("/apis/storage.k8s.io/v1/storageclasses", volumes.storage_class),
        ("/api/v1/persistentvolumeclaims", volumes.claim),
        ("/api/v1/persistentvolumes", volumes.volume),
        ("/apis/storage.k8s.io/v1/volumeattachments", volumes.attachment),
        ("/api/v1/pods", kubelets.pod),
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


def _tell(stopped: PodStopped) -> None:
    _say({"pod": stopped.pod, "how": stopped.how, "at": stopped.at.isoformat()})


def _say(words: Mapping[str, Any]) -> None:
    print(json.dumps(words), flush=True)  # noqa: T201 - standard output is the way to the starter


if __name__ == "__main__":
    main()
