"""The configuration of the queues as a cluster keeps it: a ConfigMap."""

from __future__ import annotations

import msgspec

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput, NotFound
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_batch.adapters.kubernetes.calls import GET_CONFIGURATION
from plimsoll_batch.adapters.queues_file import configuration_of
from plimsoll_batch.domain.names import CONFIGURATION, CONFIGURATION_KEY
from plimsoll_batch.domain.quota import QueueConfiguration


def stored_text(requests: Requests) -> str | None:
    """Return what a cluster keeps; None where it keeps nothing.

    Raises:
        BadInput: the ConfigMap holds something else.
    """
    try:
        found = requests.send(GET_CONFIGURATION, namespace=NAMESPACE, name=CONFIGURATION)
    except NotFound:
        return None
    text = (found.get("data") or {}).get(CONFIGURATION_KEY)
    if not isinstance(text, str):
        raise BadInput(f"ConfigMap {CONFIGURATION} has no {CONFIGURATION_KEY}")
    return text


def configuration_in(text: str) -> QueueConfiguration:
    """Return the configuration in what a cluster keeps.

    Raises:
        BadInput: it is wrong; every problem is named with its place.
    """
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"ConfigMap {CONFIGURATION}: is no JSON: {error}") from None
    return configuration_of(document)
