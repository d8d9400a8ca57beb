"""A watch that can be ended, and says whether it is behind."""

from __future__ import annotations

import time
from typing import override

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from plimsoll_testbed.rigs.controlplane.fake_kubelets.watching import AGAIN_SECONDS, Follower


class Following(Follower):
    """Follows one collection until it is told to end."""

    behind = True
    """Whether something may have changed unseen."""
    error: Exception | None = None
    """What ended it, if something did."""
    _ended = False

    def end(self) -> None:
        """Follow no longer, from the next line on, or the end of the connection."""
        self._ended = True

    @override
    def _run(self) -> None:
        while not self._ended:
            try:
                self._follow()
            except (ApiException, HTTPError, OSError):
                time.sleep(AGAIN_SECONDS)
            except Exception as error:  # noqa: BLE001 - raised where the drill is run
                self.error = error
                return
            finally:
                self.behind = True

    def _follow(self) -> None:
        version: str | None = self._list()
        self.behind = False
        while version is not None and not self._ended:
            version = self._watch(version)
