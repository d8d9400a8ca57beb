"""The rigs that a drill can be played on. One line in the table makes another.

A rig is a function that plays a drill and returns its report. It is imported when it is chosen,
since each brings libraries that the others can do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Protocol

from plimsoll.domain.errors import BadInput
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.measure.history import History
from plimsoll_simulation.measure.listening import Listener
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.scenario.drill import Drill


class Rig(Protocol):
    """Plays a drill."""

    def __call__(
        self,
        drill: Drill,
        *,
        responder: str,
        seed: int,
        listener: Listener | None = None,
        history: History | None = None,
    ) -> Report:
        """Return the report; nothing is left running, also after an error.

        Args:
            drill: what is played.
            responder: who reacts.
            seed: of all that is drawn.
            listener: who hears how it goes.
            history: keeps what the report only adds up.

        Raises:
            BadInput: the rig cannot play it, with reason and cure.
        """


PLUGIN: Final = "plimsoll_testbed.rigs.table"
"""The module that adds the rigs of real processes, where the testbed is installed: its `RIGS`."""


def _added() -> Mapping[str, str]:
    if find_spec(PLUGIN.partition(".")[0]) is None:
        return {}
    found: Mapping[str, str] = import_module(PLUGIN).RIGS
    return found


RIGS: Final[Mapping[str, str]] = {
    "simulated": "plimsoll_simulation.rigs.simulated.rig:run",
    **_added(),
}
"""Name -> module and function."""

SIMULATED: Final = "simulated"
"""The rig that starts no program, and so needs no checkout."""

RESPONDERS: Final = ("plimsoll", "drain", "none")


def rig_of(name: str) -> Rig:
    """Return a rig.

    Raises:
        BadInput: there is no such rig, or it needs a checkout or libraries that are missing.
    """
    if name not in RIGS:
        raise BadInput(f"there is no rig {name}; choose one of these: {', '.join(RIGS)}")
    if name != SIMULATED:
        Checkout.find()
    module, _, function = RIGS[name].partition(":")
    try:
        rig: Rig = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the rig {name} needs the library {error.name}; install plimsoll[rigs]"
        ) from error
    return rig
