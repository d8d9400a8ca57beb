"""How long a pod takes, by its annotations and the settings of its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from plimsoll.domain.errors import BadInput
from plimsoll_testbed.model.durations import parse_duration
from plimsoll_testbed.model.hollow.controllers.kubelet import RUN, STARTUP, STOP
from plimsoll_testbed.model.hollow.edits import Json, look
from plimsoll_testbed.model.hollow.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long a pod takes."""

    startup: timedelta = timedelta()
    stop: timedelta = timedelta()
    run: timedelta | None = None

    @classmethod
    def of(cls, pod: Json, settings: Settings) -> Self:
        """Read a pod's annotations.

        Raises:
            BadInput: one is no duration; the message names it.
        """

        def read(annotation: str) -> timedelta | None:
            text = look(pod, "metadata", "annotations", default={}).get(annotation)
            try:
                return None if text is None else parse_duration(text)
            except BadInput as error:
                raise BadInput(f"{annotation}: {error}") from error

        startup, stop = read(STARTUP), read(STOP)
        return cls(
            startup=settings.pod_startup if startup is None else startup,
            stop=settings.pod_stop if stop is None else stop,
            run=read(RUN),
        )
