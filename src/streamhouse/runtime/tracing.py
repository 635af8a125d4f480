"""Traces by OpenTelemetry, which is an extra: unless a node is told to trace, nothing of it is imported."""

from __future__ import annotations

import asyncio
import os
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.extras import install_hint

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

_EXPORTER_VARIABLE = "OTEL_TRACES_EXPORTER"
_EXPORTERS = "opentelemetry_traces_exporter"
_FLUSH_MS = 5_000


class Tracing:
    """`tracer` makes spans. They go where the process's provider sends them; if it has none, where OpenTelemetry's own
    variables say."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self.tracer: Tracer = provider.get_tracer("streamhouse")

    async def close(self) -> None:
        """Send what was not sent yet: the process may end without asking anybody."""
        await asyncio.to_thread(self._provider.force_flush, _FLUSH_MS)


def open_tracing() -> Tracing:
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise InvalidConfig("traces need OpenTelemetry", hint=install_hint("otel")) from None
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        name = os.environ.get("OTEL_SERVICE_NAME") or "streamhouse"
        provider = TracerProvider(resource=Resource.create({"service.name": name}))
        provider.add_span_processor(BatchSpanProcessor(_exporter()))
        trace.set_tracer_provider(provider)
    return Tracing(provider)


def _exporter() -> SpanExporter:
    """By the name that OpenTelemetry's packages register."""
    name = os.environ.get(_EXPORTER_VARIABLE) or "otlp_proto_http"
    found = next(iter(entry_points(group=_EXPORTERS, name=name)), None)
    if found is None:
        known = ", ".join(sorted(entry_points(group=_EXPORTERS).names))
        raise InvalidConfig(f"there is no exporter of traces {name!r}", hint=f"set {_EXPORTER_VARIABLE} to: {known}")
    exporter: SpanExporter = found.load()()
    return exporter
