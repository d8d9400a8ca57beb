"""The fake kubelets' own process. `process.FakeKubelets` starts it and talks with it: JSON, a line each."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from plimsoll_testbed.model.hollow.edits import Json
from plimsoll_testbed.model.hollow.state import PodStopped
from plimsoll_testbed.rigs.controlplane.fake_kubelets.kubelets import WatchedKubelets
from plimsoll_testbed.rigs.controlplane.fake_kubelets.loop import Loop
from plimsoll_testbed.rigs.controlplane.fake_kubelets.metrics import Metrics
from plimsoll_testbed.rigs.controlplane.fake_kubelets.process import SETTINGS, STOPPED
from plimsoll_testbed.rigs.follower import Follower, Hears
from plimsoll_testbed.rigs.kubeconfig import load


def main() -> None:
    """Play until standard input ends."""
    threading.excepthook = _give_up
    kubeconfig = Path(sys.argv[1])
    settings = SETTINGS.validate_json(sys.stdin.readline())
    transport, _ = load(kubeconfig)
    loop = Loop(transport)
    kubelets = WatchedKubelets(loop, settings, stopped=_tell)
    metrics = Metrics(loop, kubeconfig.parent.parent / "certificates")
    metrics.start()

    def show(resource: str, change: str, obj: Json) -> None:
        if resource == "pods":
            metrics.pod(change, obj)
        kubelets.show(resource, change, obj)

    for resource, path in (
        ("nodes", "/api/v1/nodes"),
        ("storageclasses", "/apis/storage.k8s.io/v1/storageclasses"),
        ("persistentvolumeclaims", "/api/v1/persistentvolumeclaims"),
        ("persistentvolumes", "/api/v1/persistentvolumes"),
        ("volumeattachments", "/apis/storage.k8s.io/v1/volumeattachments"),
        ("pods", "/api/v1/pods"),
    ):
        Follower(kubeconfig, path, _posted(loop, partial(show, resource))).start()
    threading.Thread(target=_obey, args=(loop, kubelets), daemon=True).start()
    loop.run()


def _posted(loop: Loop, hears: Hears) -> Hears:
    def hear(change: str, item: Json) -> None:
        loop.post(lambda: hears(change, item))

    return hear


def _obey(loop: Loop, kubelets: WatchedKubelets) -> None:
    for line in sys.stdin:
        node = json.loads(line)["vanish"]

        def vanish(node: str = node) -> None:
            kubelets.instance_gone(node)
            _say({"vanished": node})

        loop.post(vanish)
    os._exit(0)  # the starter is gone, and whatever is under way concerns nobody any more


def _give_up(failed: threading.ExceptHookArgs) -> None:
    """End with the first thread that fails: half of the kubelets would play a cluster wrong."""
    traceback.print_exception(failed.exc_value)
    os._exit(1)


def _tell(stopped: PodStopped) -> None:
    _say(STOPPED.dump_python(stopped, mode="json"))


def _say(words: Mapping[str, Any]) -> None:
    print(json.dumps(words), flush=True)  # noqa: T201 - standard output is the way to the starter


if __name__ == "__main__":
    main()
