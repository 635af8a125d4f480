"""A node that traces, and a collector that speaks OTLP; and nodes that cannot trace and say why."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from node.process import Node, NodeDied
from rest_parts.caller import RestCaller


class Collector:
    def __init__(self) -> None:
        self.received: list[ExportTraceServiceRequest] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.received.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def resources(self) -> list[ResourceSpans]:
        return [resource for request in self.received for resource in request.resource_spans]

    def spans(self) -> list[Span]:
        return [span for resource in self.resources() for scope in resource.scope_spans for span in scope.spans]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever)
    thread.start()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()
    thread.join()


def test_a_node_sends_the_trace_of_a_produce_before_it_ends(tmp_path: Path, collector: Collector) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "NO_PROXY": "127.0.0.1"}
    with Node(tmp_path / "data", "--traces", env=variables) as node:
        RestCaller(node.http).post("topics/orders/records", {"records": [{"value": "makes the topic as well"}]})
        assert node.terminate() == 0
    assert [span.name for span in collector.spans()] == ["wal", "upload", "commit", "produce"]
    *steps, whole = collector.spans()
    assert all(step.parent_span_id == whole.span_id for step in steps)
    named = {(each.key, each.value.string_value) for each in collector.resources()[0].resource.attributes}
    assert ("service.name", "streamhouse") in named


def test_a_node_says_which_exporters_there_are(tmp_path: Path) -> None:
    with pytest.raises(NodeDied) as died:
        Node(tmp_path / "data", "--traces", env={"OTEL_TRACES_EXPORTER": "nowhere"}).start()
    assert "there is no exporter of traces 'nowhere'" in died.value.stderr
    assert "otlp_proto_http" in died.value.stderr
