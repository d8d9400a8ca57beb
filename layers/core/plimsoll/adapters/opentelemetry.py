"""Spans by the API of OpenTelemetry, which a layer brings with its SDK and exporter (`TelemetryLayer` of the template).

Nothing else imports this module: without the layer there is no OpenTelemetry. The layer's exporter takes spans
from a queue of bounded length, so that no span here waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Token
from datetime import datetime
from types import TracebackType
from typing import Final, Self

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from plimsoll.domain.fields import traceparent_of
from plimsoll.services.ports import Span
from plimsoll.services.untraced import UNTRACED

LINKS: Final = 128
"""To so many notices a span links at most, as the SDK does by default."""
FACT_CHARACTERS: Final = 256
_HEADER: Final = TraceContextTextMapPropagator()


class OpenTelemetryTraces:
    """Begins spans.

    Args:
        warn: told what OpenTelemetry raises, once; it costs spans, and nothing else.
        provider: where spans go; None: where the layer sends those of this process.
    """

    def __init__(
        self, warn: Callable[[str], None], provider: trace.TracerProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer("plimsoll", tracer_provider=provider)
        self._warn = warn
        self._warned = False

    def begin(
        self, name: str, *, parent: str | None = None, at: datetime | None = None, **facts: str
    ) -> Span:
        """Begin a span; one without a parent links to the layer's own span of the invocation."""
        with self.harmless():
            woken = _context_of(parent)
            # An empty context, for None means the current one: https://opentelemetry-python.readthedocs.io/en/stable/api/trace.html
            span = self.begin_within(Context() if woken is None else woken, name, at, facts)
            if woken is None:
                span.link([_traceparent(context.get_current())])
            return span
        return UNTRACED

    def begin_within(
        self, parent: Context, name: str, at: datetime | None, facts: dict[str, str]
    ) -> Span:
        """Begin a span in a context of OpenTelemetry."""
        with self.harmless():
            began = None if at is None else int(at.timestamp() * 1e9)  # nanoseconds
            begun = self._tracer.start_span(
                name, parent, attributes=_attributes(facts), start_time=began
            )
            return _Span(self, begun)
        return UNTRACED

    @contextmanager
    def harmless(self) -> Iterator[None]:
        """Keep what a tracer raises from whoever is traced."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever a layer does, pods are moved
            if not self._warned:
                self._warned = True
                self._warn(f"spans are missing: {type(error).__name__}: {error}")


class _Span:
    def __init__(self, traces: OpenTelemetryTraces, span: trace.Span) -> None:
        self._traces = traces
        self._span = span
        self._within = trace.set_span_in_context(span, Context())
        self._token: Token[Context] | None = None
        self._linked: set[str] = set()

    @property
    def traceparent(self) -> str | None:
        with self._traces.harmless():
            return _traceparent(self._within)
        return None

    def child(self, name: str, **facts: str) -> Span:
        return self._traces.begin_within(self._within, name, None, facts)

    def note(self, **facts: str) -> None:
        with self._traces.harmless():
            self._span.set_attributes(_attributes(facts))

    def link(self, traceparents: Iterable[str | None]) -> None:
        with self._traces.harmless():
            for each in traceparents:
                if each is None or each in self._linked or len(self._linked) >= LINKS:
                    continue
                if (found := _context_of(each)) is not None:
                    self._linked.add(each)
                    self._span.add_link(trace.get_current_span(found).get_span_context())

    def fail(self, error: BaseException) -> None:
        with self._traces.harmless():
            self._span.set_status(trace.StatusCode.ERROR, type(error).__name__)

    def __enter__(self) -> Self:
        with self._traces.harmless():
            self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.fail(error)
        with self._traces.harmless():
            self._span.end()
            if self._token is not None:
                context.detach(self._token)


def _context_of(traceparent: str | None) -> Context | None:
    """Return the context that a traceparent stands for; None where it is none of W3C Trace Context."""
    if traceparent_of(traceparent) is None:
        return None
    return _HEADER.extract({"traceparent": traceparent}, Context())


def _traceparent(of: Context) -> str | None:
    header: dict[str, str] = {}
    _HEADER.inject(header, of)
    return header.get("traceparent")


def _attributes(facts: dict[str, str]) -> dict[str, str]:
    return {f"plimsoll.{name}": value[:FACT_CHARACTERS] for name, value in facts.items()}
