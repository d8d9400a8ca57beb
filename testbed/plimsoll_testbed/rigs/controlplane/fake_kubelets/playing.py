"""What the fake kubelets' own process does. `process.FakeKubelets` starts it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from plimsoll.adapters.kubernetes.kubeconfig import load
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.controlplane.fake_kubelets.kubelets import WatchedKubelets
from plimsoll_testbed.rigs.controlplane.fake_kubelets.loop import WRITERS, Loop
from plimsoll_testbed.rigs.controlplane.fake_kubelets.metrics import Metrics
from plimsoll_testbed.rigs.follower import Follower, Hears


def play(starter: Connection, kubeconfig: Path, settings: Settings, log: Path) -> None:
    """Play until the starter is gone, whom every pod that stopped is told."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the starter
    with log.open("ab") as out:
        os.dup2(out.fileno(), sys.stderr.fileno())
    threading.excepthook = lambda failed: _give_up(failed.exc_value)
    transport, _ = load(kubeconfig, connections=WRITERS)
    loop = Loop(transport)
    kubelets = WatchedKubelets(loop, settings, stopped=starter.send)
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
    threading.Thread(target=_obey, args=(starter, loop, kubelets), daemon=True).start()
    try:
        loop.run()
    except Exception as error:  # noqa: BLE001 - as in every other thread
        _give_up(error)


def _posted(loop: Loop, hears: Hears) -> Hears:
    def hear(change: str, item: Json) -> None:
        loop.post(lambda: hears(change, item))

    return hear


def _obey(starter: Connection, loop: Loop, kubelets: WatchedKubelets) -> None:
    def vanish(nodes: tuple[str, ...]) -> None:
        for node in nodes:
            kubelets.instance_gone(node)
        starter.send(nodes)

    with suppress(EOFError, OSError):
        while True:
            loop.post(partial(vanish, starter.recv()))
    os._exit(0)  # the starter is gone, and whatever is under way concerns nobody any more


def _give_up(error: BaseException | None) -> NoReturn:
    """End with the first thread that fails: half of the kubelets would play a cluster wrong."""
    traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(1)
