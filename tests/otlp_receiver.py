"""A receiver of OTLP over HTTP on loopback, which decodes what comes as a collector does."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


class Receiver:
    """Keeps the messages that came; `refuses` is the status of all answers, if not 200."""

    def __init__(self):
        self.messages = {path: [] for path in KINDS}
        self.headers = []
        self.refuses = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                content = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    content = gzip.decompress(content)
                if not receiver.refuses:
                    receiver.messages[self.path].append(KINDS[self.path].FromString(content))
                    receiver.headers.append(self.headers)
                self.send_response(receiver.refuses or 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spans(self):
        """Return all spans that came, in order; one that came twice is there twice."""
        return [
            span
            for message in self.messages["/v1/traces"]
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def resource(self):
        return attributes(self.messages["/v1/traces"][-1].resource_spans[0].resource)

    def metrics(self):
        """Return the metrics of the last message, by name."""
        [resource] = self.messages["/v1/metrics"][-1].resource_metrics
        return {metric.name: metric for metric in resource.scope_metrics[0].metrics}


def attributes(of):
    """Return attributes as plain values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in of.attributes}
