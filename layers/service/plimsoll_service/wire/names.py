"""Names on the wire, each held to the pattern of its own field.

Agents send them and people read them: in tables, in pages, in commands to run. So none holds a space, a quote,
a control character or a leading dash, whoever wrote it. The patterns are those of the API server, or wider.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

_OBJECT: Final = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_NAMESPACE: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_UID: Final = r"[A-Za-z0-9][-A-Za-z0-9._:]*"
_LABEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_METRIC_LABEL: Final = r"[A-Za-z0-9][-A-Za-z0-9_.:+/()]*"

type ObjectName = Annotated[str, Meta(pattern=rf"^{_OBJECT}\Z", max_length=253)]
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"""
type MaybeObject = Annotated[str, Meta(pattern=rf"^({_OBJECT})?\Z", max_length=253)]
"""An `ObjectName`, or empty."""
type Namespace = Annotated[str, Meta(pattern=rf"^{_NAMESPACE}\Z", max_length=63)]
type MaybeNamespace = Annotated[str, Meta(pattern=rf"^({_NAMESPACE})?\Z", max_length=63)]
"""A `Namespace`, or empty: of what has none."""
type ContainerName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")]
type KindName = Annotated[
    str, Meta(pattern=r"^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?\Z", max_length=63)
]
"""Of a kind of object, such as Deployment."""
type Uid = Annotated[str, Meta(pattern=rf"^{_UID}\Z", max_length=256)]
"""A UUID, of all that an API server names itself."""
type MaybeUid = Annotated[str, Meta(pattern=rf"^({_UID})?\Z", max_length=256)]
"""A `Uid`, or empty."""
type ProviderId = Annotated[
    str,
    Meta(
        pattern=r"^([a-z][-a-z0-9+.]*://[-A-Za-z0-9/._:]*|i-([0-9a-f]{8}|[0-9a-f]{17}))?\Z",
        max_length=256,
    ),
]
"""Of a Node, such as aws:///eu-central-1a/i-0123456789abcdef0 or the bare instance id; empty: it has none."""
type LabelKey = Annotated[str, Meta(pattern=rf"^({_OBJECT}/)?{_LABEL}\Z", max_length=317)]
type LabelValue = Annotated[str, Meta(pattern=rf"^({_LABEL})?\Z", max_length=63)]
type Address = Annotated[str, Meta(pattern=r"^([A-Za-z0-9:][-A-Za-z0-9.:]*)?\Z", max_length=256)]
"""The host name or address of a load balancer; empty: it has none, or does not tell."""
type Word = Annotated[str, Meta(pattern=r"^[-A-Za-z0-9_.+]*\Z", max_length=64)]
"""A reason such as OOMKilled, a type such as gp3, a version; empty: it is not known."""
type MetricLabel = Annotated[str, Meta(pattern=rf"^{_METRIC_LABEL}\Z", max_length=256)]
"""The value of a label of a metric: the UUID of a GPU, or its model."""
type MaybeMetricLabel = Annotated[str, Meta(pattern=rf"^({_METRIC_LABEL})?\Z", max_length=256)]
"""A `MetricLabel`, or empty."""
