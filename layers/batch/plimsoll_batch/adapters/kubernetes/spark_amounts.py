"""What a pod of a SparkApplication requests, reckoned from the amounts that the object states.

Spark makes the pods itself: https://spark.apache.org/docs/latest/running-on-kubernetes.html#spark-properties. The
defaults of the object are those of its operator:
https://github.com/kubeflow/spark-operator/blob/master/api/v1beta2/defaults.go
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import clip
from plimsoll_batch.domain.frameworks import at

LEAST_OVERHEAD_BYTES: Final = 384 * 2**20
_FACTORS: Final = {"Python": Decimal("0.4"), "R": Decimal("0.4")}
"""Of memory, for what is beside the heap. Of other languages 0.1."""
_MEMORY: Final = re.compile(r"([0-9]{1,12})(?:([kmgtp])b?|b)?", re.IGNORECASE)
_UNITS: Final = {"": 2**20, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
"""Without a unit Spark means MiB."""
_PLACING: Final = ("nodeSelector", "tolerations", "affinity", "hostNetwork", "initContainers")
_MOST_GPUS: Final = 10**4
_MOST_FACTOR: Final = 10


def pod_spec(application: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a pod as far as it counts for the queues.

    Args:
        application: the object.
        pod: its `spec.driver` or `spec.executor`.

    Raises:
        BadInput: an amount cannot be read.
    """
    requests: dict[str, Any] = {
        "cpu": str(pod.get("coreRequest") or pod.get("cores") or 1),
        "memory": _memory(application, pod),
    }
    gpu = pod.get("gpu")
    if gpu is not None:
        name, quantity = at(gpu, ("name",)), at(gpu, ("quantity",))
        if not isinstance(name, str) or not isinstance(quantity, int) or quantity > _MOST_GPUS:
            raise BadInput("gpu: must have a name and a quantity")
        requests[name] = quantity
    sidecars = pod.get("sidecars") or []
    if not isinstance(sidecars, list):
        raise BadInput("sidecars: must be a list")
    return {
        **{field: pod[field] for field in _PLACING if pod.get(field) is not None},
        "containers": [{"name": "spark", "resources": {"requests": requests}}, *sidecars],
    }


def _memory(application: Mapping[str, Any], pod: Mapping[str, Any]) -> int:
    heap = _bytes("memory", pod.get("memory") or "1g")
    if pod.get("memoryOverhead") is not None:
        return heap + _bytes("memoryOverhead", pod["memoryOverhead"])
    language = at(application, ("spec", "type"))
    factor = _FACTORS.get(language, Decimal("0.1")) if isinstance(language, str) else Decimal("0.1")
    said = at(application, ("spec", "memoryOverheadFactor"))
    if said is not None:
        try:
            factor = Decimal(str(said))
        except InvalidOperation:
            factor = Decimal("NaN")
        if not factor.is_finite() or not 0 <= factor <= _MOST_FACTOR:
            raise BadInput(
                f"spec.memoryOverheadFactor: must be from 0 to {_MOST_FACTOR}, not {clip(said)}"
            )
    return heap + max(LEAST_OVERHEAD_BYTES, int(heap * factor))


def _bytes(field: str, text: object) -> int:
    found = _MEMORY.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise BadInput(f"{field}: must be an amount such as 512m or 4g, not {clip(text)}")
    unit = found[2]
    if unit is None and str(text)[-1] in "bB":
        return int(found[1])
    return int(found[1]) * _UNITS[(unit or "").lower()]
