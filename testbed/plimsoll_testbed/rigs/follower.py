"""Follows a collection of an API server: what is there, then each change, for ever.

A connection that breaks is made again from a fresh list; what went away meanwhile is told as deleted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import kube_config
from urllib3.exceptions import HTTPError

WATCH_SECONDS: Final = 300
AGAIN_SECONDS: Final = 0.2
_CONNECT_SECONDS: Final = 2.0
_LIST_SECONDS: Final = 30.0

type Json = dict[str, Any]
type Hears = Callable[[str, Json], None]
"""Called with ADDED, MODIFIED or DELETED, and the object. A list tells everything as ADDED."""


class Follower:
    """Follows one collection in a thread of its own, until it is told to end.

    Args:
        kubeconfig: the user to follow as.
        path: of the collection, for example `/api/v1/pods`.
        hears: called from the thread.
    """

    def __init__(self, kubeconfig: Path, path: str, hears: Hears) -> None:
        self._path = path
        self._hears = hears
        self._known: dict[str, Json] = {}
        """UID -> the object as last seen."""
        configuration = Configuration()  # type: ignore[no-untyped-call] # has no types
        kube_config.load_kube_config(  # type: ignore[no-untyped-call] # has no types
            str(kubeconfig), client_configuration=configuration, persist_config=False
        )
        configuration.retries = False
        self._host = configuration.host
        self._token = configuration.get_api_key_with_prefix("authorization")  # type: ignore[no-untyped-call] # has no types
        self._rest: Any = RESTClientObject(configuration)  # type: ignore[no-untyped-call] # has no types
        self._thread = threading.Thread(target=self._run, name=f"follow {path}", daemon=True)
        self._ended = threading.Event()
        self.behind = True
        """Whether something may have changed unseen."""
        self.error: Exception | None = None
        """What ended it, if something did."""

    def start(self) -> None:
        """Begin; the thread ends with the process at the latest."""
        self._thread.start()

    def end(self) -> None:
        """Follow no longer, from the next line on, or the end of the connection."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._follow()
            except (ApiException, HTTPError, OSError):
                time.sleep(AGAIN_SECONDS)
            except Exception as error:
                self.error = error
                raise
            finally:
                self.behind = True

    def _follow(self) -> None:
        version: str | None = self._list()
        self.behind = False
        while version is not None and not self._ended.is_set():
            version = self._watch(version)

    def _list(self) -> str:
        """Tell what is there, and what is no longer; return the version to watch from."""
        with self._get({}, _LIST_SECONDS) as response:
            found = json.loads(response.data)
        now = {item["metadata"]["uid"]: item for item in found.get("items", ())}
        for uid in self._known.keys() - now.keys():
            self._tell("DELETED", self._known[uid])
        for item in now.values():
            self._tell("ADDED", item)
        version: str = found["metadata"]["resourceVersion"]
        return version

    def _watch(self, version: str) -> str | None:
        """Tell changes; return the version to go on from, or None to list again."""
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        with self._get(query, WATCH_SECONDS + _LIST_SECONDS) as response:
            for line in response:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return None
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._tell(event["type"], event["object"])
        return version

    def _tell(self, change: str, item: Json) -> None:
        uid = item["metadata"]["uid"]
        if change == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = item
        self._hears(change, item)

    def _get(self, query: Mapping[str, str], seconds: float) -> Any:
        return self._rest.request(
            "GET",
            self._host + self._path,
            query_params=dict(query),
            headers={"Accept": "application/json", "Authorization": self._token},
            _preload_content=False,
            _request_timeout=(_CONNECT_SECONDS, seconds),
        )
