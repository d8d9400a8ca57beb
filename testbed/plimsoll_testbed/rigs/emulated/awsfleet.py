"""EC2, Auto Scaling and EKS for the functions of a drill: AWS's answers about its fleets.

One truth: what is answered is read from the fleets, what is asked for is done to them. Names,
fields and error codes are AWS's, from the API references:
https://docs.aws.amazon.com/autoscaling/ec2/APIReference, https://docs.aws.amazon.com/AWSEC2/latest/APIReference,
https://docs.aws.amazon.com/eks/latest/APIReference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Protocol

from plimsoll.domain.errors import NotFound, Refused
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.rigs.access import Access
from plimsoll_testbed.rigs.emulated.access_entries import AccessEntries
from plimsoll_testbed.rigs.emulated.autoscaling import AutoScaling
from plimsoll_testbed.rigs.emulated.awswire import AwsError, AwsServer, Operation, Parameters
from plimsoll_testbed.rigs.emulated.ec2 import Ec2
from plimsoll_testbed.rigs.emulated.eks import Eks

SERVICES: Final = ("EC2", "AUTO_SCALING", "EKS")
"""In boto3's spelling of `AWS_ENDPOINT_URL_<SERVICE>`."""


class FleetServer(Protocol):
    """Answers for EC2, Auto Scaling and EKS, of one account or of several."""

    @property
    def calls(self) -> Counter[str]:
        """How often each action was asked."""

    @property
    def endpoints(self) -> Mapping[str, str]:
        """Service -> URL, as emulators take them."""


class AwsFleet(AwsServer):
    """Serves the fleets of a drill; use it as a context manager.

    Args:
        fleets: one for each cluster.
        clock: the time; AWS wants it with its zone.
        lock: held during every answer: whoever steps the fleets holds it too.
        changed: told of a fleet that may have been changed, so that it is stepped before time goes on;
            nobody where the fleets are stepped anyhow.
        api_servers: cluster -> the way to its API server, for EKS to tell.
    """

    def __init__(
        self,
        fleets: Sequence[Fleet],
        *,
        clock: Callable[[], datetime],
        lock: AbstractContextManager[Any],
        changed: Callable[[Fleet], None] = lambda _: None,
        api_servers: Mapping[str, Access] = MappingProxyType({}),
    ) -> None:
        self._lock = lock
        self._fleets = fleets
        self._changed = changed
        groups = AutoScaling(fleets, clock)
        parts = (Ec2(fleets), groups, Eks(fleets, groups, clock), AccessEntries(api_servers))
        answers = {action: answer for part in parts for action, answer in part.answers().items()}
        super().__init__({action: self._locked(answers[action]) for action in answers})

    @property
    def endpoints(self) -> Mapping[str, str]:
        """Service -> URL, as emulators take them."""
        return dict.fromkeys(SERVICES, self.url)

    def _locked(self, answer: Operation) -> Operation:
        def locked(parameters: Parameters) -> Mapping[str, Any]:
            with self._lock:
                try:
                    answered = answer(parameters)
                except NotFound as error:
                    raise AwsError("ValidationError", str(error)) from error
                except Refused as error:
                    code, _, words = str(error).partition(": ")
                    raise AwsError(
                        *((code, words) if words else ("ValidationError", code))
                    ) from error
                for fleet in self._fleets:
                    self._changed(fleet)
                return answered

        return locked
