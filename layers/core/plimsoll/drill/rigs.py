"""The rigs that a drill can be played on. One line in the table makes another.

A rig is a function that plays a drill and returns its report. It is imported when it is chosen,
since each brings libraries that the others can do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol

from plimsoll.domain.errors import BadInput
from plimsoll.drill.history import Recorder
from plimsoll.drill.picture import Picture
from plimsoll.drill.report import Report
from plimsoll.drill.script import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a drill is."""

    seconds: float
    """From time 0."""
    of_seconds: float
    """The horizon: it ends there at the latest."""


class Listener(Protocol):
    """Who hears how a drill goes. Calls come often: return soon."""

    def progress(self, progress: Progress) -> None:
        """Time has passed."""

    def say(self, seconds: float, what: str) -> None:
        """Something happened, so many seconds after time 0 (before it: since the start)."""

    def show(self, picture: Callable[[], Picture]) -> None:
        """Take a picture now, or let it be: asking is free, and the answer costs a little.

        It can be taken during this call only, while the rig holds its world still.
        """


class Quiet:
    """Hears nothing."""

    def progress(self, progress: Progress) -> None:
        """Pass it over."""

    def say(self, seconds: float, what: str) -> None:
        """Pass it over."""

    def show(self, picture: Callable[[], Picture]) -> None:
        """Pass it over."""


class Rig(Protocol):
    """Plays a drill."""

    def __call__(
        self,
        drill: Script,
        *,
        responder: str,
        seed: int,
        listener: Listener | None = None,
        recorder: Recorder | None = None,
    ) -> Report:
        """Return the report; nothing is left running, also after an error.

        Args:
            drill: what is played.
            responder: who reacts.
            seed: of all that is drawn.
            listener: who hears how it goes.
            recorder: who keeps what the report only adds up.

        Raises:
            BadInput: the rig cannot play it, with reason and cure.
        """


RIGS: Final[Mapping[str, str]] = {
    "simulated": "plimsoll.drill.simulated.rig:run",
    "emulated": "plimsoll.drill.emulated.rig:run",
    "cluster": "plimsoll.drill.cluster.rig:run",
    "localstack": "plimsoll.drill.localstack.rig:run",
}
"""Name -> module and function."""

RESPONDERS: Final = ("plimsoll", "drain", "none")


def rig_of(name: str) -> Rig:
    """Return a rig.

    Raises:
        BadInput: there is no such rig, or its libraries are missing.
    """
    if name not in RIGS:
        raise BadInput(f"there is no rig {name}; choose one of these: {', '.join(RIGS)}")
    module, _, function = RIGS[name].partition(":")
    try:
        rig: Rig = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("plimsoll."):
            raise BadInput(f"the rig {name} is not part of this installation") from error
        raise BadInput(
            f"the rig {name} needs the library {error.name}; install plimsoll[rigs]"
        ) from error
    return rig
