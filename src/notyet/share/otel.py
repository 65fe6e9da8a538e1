"""Stops as OpenTelemetry: spans of runs, stops and gates, and metrics, over OTLP/HTTP.

The ids of spans are derived from the rows of the ledger, and metrics are totals since the first
export. So what is exported twice, because a process was killed, is the same as once.
"""

from __future__ import annotations

import json
import logging
import re
import time
from bisect import bisect_left
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from notyet import __version__
from notyet.ledger.task_rows import turn_of
from notyet.share import ShareError, Unreachable
from notyet.share.rows import Projects, explanation, gate_name, whole

try:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Histogram,
        HistogramDataPoint,
        Metric,
        MetricExportResult,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, TraceFlags
    from opentelemetry.trace.status import Status, StatusCode
except ImportError as missing:
    raise ShareError(
        "OpenTelemetry",
        "it needs opentelemetry-sdk and its OTLP exporter, which are not installed; "
        "in a checkout, run: pip install '.[otel]'",
    ) from missing

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from notyet.core.verdict import Report
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import PastStop
    from notyet.share.settings import Share
    from notyet.share.ship import Mark, Origin

_TIMEOUT = 5.0  # seconds for one message, with the exporter's own retries
_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)  # seconds
_MOST_SERIES = 2_000  # of a metric: names of gates are chosen by people
_MOST_RUNS = 500  # in one round
_RECENT = 60.0  # seconds in which runs may be entered later than others that ended after them
_RUNS = (
    "SELECT r.id, r.task, r.source, r.started_at, r.ended_at, r.ending, r.turn, t.session_id, t.ref"
    " FROM runs r JOIN tasks t ON t.id = r.task WHERE r.ended_at > ? ORDER BY r.ended_at LIMIT ?"
)
_SCORES = {"allowed": 1.0, "remembered": 1.0, "unchanged": 1.0, "blocked": 0.0, "halted": 0.0}
_UNASKED = ("not_asked", "remembered", "unchanged")
_SCOPE = InstrumentationScope("notyet", __version__)
_SYSTEM_ERROR = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")
_USER = re.compile(r"//[^/?]*@")


class Receiver:
    """A receiver of OTLP/HTTP, as a target of stops."""

    def __init__(self, share: Share, ledger: Ledger) -> None:
        self.shown = _USER.sub("//", share.otel)
        place = share.otel.rstrip("/")
        self._ledger = ledger
        self._words = share.words
        self._projects = Projects()
        self._said = _Said()
        self._spans = OTLPSpanExporter(endpoint=f"{place}/v1/traces", timeout=_TIMEOUT)
        self._metrics = OTLPMetricExporter(endpoint=f"{place}/v1/metrics", timeout=_TIMEOUT)

    def send(
        self, origin: Origin, stops: Sequence[PastStop], mark: Mark, copied: Collection[str]
    ) -> Mark:
        """Export the spans of stops, and count them. Raises ShareError."""
        resource = _resource(origin)
        spans = [span for past in stops for span in self._of_stop(origin, resource, past)]
        self._export(spans)
        totals = Totals(mark.more)
        for past in stops:
            totals.add(past, is_again=str(past.id) in copied)
        return replace(mark, more={**mark.more, **totals.known})

    def finish(self, origin: Origin, mark: Mark) -> Mark:
        """Export the runs that ended since the last time, and all totals. Raises ShareError."""
        resource = _resource(origin)
        since, recent = mark.more.get("runs", (0.0, []))
        while True:
            most = _MOST_RUNS + len(recent)
            rows = self._ledger.connection.rows(_RUNS, (since - _RECENT, most))
            new = [row for row in rows if row[0] not in recent]
            if not new:
                break
            self._export([_of_run(origin, resource, row) for row in new])
            since = max(since, new[-1][4])
            recent = [row[0] for row in rows if row[4] > since - _RECENT]
        data = Totals(mark.more).data(resource)
        if data is not None:
            is_done = self._metrics.export(data) is MetricExportResult.SUCCESS
            self._expect(is_done=is_done)
        return replace(mark, more={**mark.more, "runs": [since, recent]})

    def close(self) -> None:
        """Close the connections."""
        self._spans.shutdown()  # type: ignore[no-untyped-call]  # theirs
        self._metrics.shutdown()
        self._said.close()

    def _export(self, spans: Sequence[ReadableSpan]) -> None:
        if spans:
            self._expect(is_done=self._spans.export(spans) is SpanExportResult.SUCCESS)

    def _expect(self, *, is_done: bool) -> None:
        if not is_done:
            detail, may_pass = self._said.reason()
            kind = Unreachable if may_pass else ShareError
            raise kind(self.shown, f"{detail}; start the receiver, or correct `share.otel`")

    def _of_stop(self, origin: Origin, resource: Resource, past: PastStop) -> list[ReadableSpan]:
        event = past.event
        trace = ("task", past.task) if past.task else (past.host, past.session_id, past.turn)
        own = _context(origin, trace, "stop", past.id)
        usage = event.usage
        ended_at = max(past.begun_at, past.ended_at or 0.0)
        spans = [
            ReadableSpan(
                f"gate_stop {past.host}",
                context=own,
                parent=_context(origin, trace, "run", event.run_id) if event.run_id else None,
                resource=resource,
                instrumentation_scope=_SCOPE,
                start_time=_nanoseconds(past.begun_at),
                end_time=_nanoseconds(ended_at),
                attributes=_said_only(
                    {
                        "gen_ai.conversation.id": past.session_id,
                        "gen_ai.agent.id": past.agent_id or "main",
                        "gen_ai.agent.name": event.agent_type,
                        "gen_ai.request.model": event.model,
                        "gen_ai.usage.input_tokens": whole(usage.input) if usage else None,
                        "gen_ai.usage.output_tokens": whole(usage.output) if usage else None,
                        "notyet.host": past.host,
                        "notyet.outcome": past.outcome,
                        "notyet.project": self._projects.of(past),
                        "notyet.turn": past.turn,
                        "notyet.send_backs": past.count,
                        "notyet.max_blocks": past.limit,
                    }
                ),
            )
        ]
        for position, report in enumerate(past.reports):
            if report.status != "not_asked":
                context = _context(origin, trace, "report", past.id, position)
                spans.append(self._of_report(resource, context, own, past.begun_at, report))
        return spans

    def _of_report(
        self,
        resource: Resource,
        context: SpanContext,
        stop: SpanContext,
        begun_at: float,
        report: Report,
    ) -> ReadableSpan:
        """Return the span of a gate: it is an evaluation of what the agent did."""
        name = gate_name(report.gate, words=self._words)
        is_broken = report.status == "problem"
        return ReadableSpan(
            f"gate {name}",
            context=context,
            parent=stop,
            resource=resource,
            instrumentation_scope=_SCOPE,
            start_time=_nanoseconds(begun_at),
            end_time=_nanoseconds(begun_at + max(0.0, report.seconds)),
            status=Status(StatusCode.ERROR if is_broken else StatusCode.UNSET),
            attributes=_said_only(
                {
                    "gen_ai.evaluation.name": name,
                    "gen_ai.evaluation.score.label": report.status,
                    "gen_ai.evaluation.score.value": _SCORES.get(report.status),
                    "gen_ai.evaluation.explanation": explanation(report) if self._words else None,
                    "notyet.gate.observed": report.observed,
                    "notyet.gate.definition": report.definition,
                }
            ),
        )


def _of_run(origin: Origin, resource: Resource, row: tuple[Any, ...]) -> ReadableSpan:
    """Return the span of a supervised run, under which its stops are."""
    run, task, source, started_at, ended_at, ending, turn, session, ref = row
    known, told = json.loads(ref), turn_of(turn)
    agent = known.get("agent") if isinstance(known, dict) else None
    is_failed = ending in {"error", "timeout"}
    return ReadableSpan(
        f"invoke_agent {agent or ''}".strip(),
        context=_context(origin, ("task", task), "run", run),
        resource=resource,
        instrumentation_scope=_SCOPE,
        start_time=_nanoseconds(started_at),
        end_time=_nanoseconds(max(started_at, ended_at)),
        status=Status(StatusCode.ERROR if is_failed else StatusCode.UNSET),
        attributes=_said_only(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.id": task,
                "gen_ai.agent.name": agent if isinstance(agent, str) else None,
                "gen_ai.conversation.id": session,
                "gen_ai.request.model": told.model if told else None,
                "gen_ai.usage.input_tokens": whole(told.usage.input) if told else None,
                "gen_ai.usage.output_tokens": whole(told.usage.output) if told else None,
                "notyet.run.source": source,
                "notyet.run.ending": ending,
            }
        ),
    )


class Totals:
    """What was counted since the first export, as plain JSON types in a mark."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known: dict[str, Any] = {
            "since": known.get("since") or time.time(),
            "stops": dict(known.get("stops", {})),
            "gates": {key: list(series) for key, series in known.get("gates", {}).items()},
        }

    def add(self, past: PastStop, *, is_again: bool) -> None:
        """Count a stop, and how long its gates took; of one that changed, only its new outcome."""
        stops, gates = self.known["stops"], self.known["gates"]
        key = json.dumps([past.outcome, past.host])
        stops[key] = stops.get(key, 0) + 1
        for report in () if is_again else past.reports:
            if report.status not in _UNASKED:
                # Without words: a command in a name would be a series of its own.
                key = json.dumps([gate_name(report.gate, words=False), report.status])
                if key in gates or len(gates) < _MOST_SERIES:
                    _observe(gates, key, report.seconds)

    def data(self, resource: Resource) -> MetricsData | None:
        """Return the totals as metrics; None if nothing was counted."""
        start, now = _nanoseconds(self.known["since"]), time.time_ns()
        stops = [
            NumberDataPoint(
                dict(zip(("outcome", "host"), json.loads(key), strict=True)), start, now, count
            )
            for key, count in self.known["stops"].items()
        ]
        gates = [
            HistogramDataPoint(
                dict(zip(("gate", "status"), json.loads(key), strict=True)),
                *(start, now, sum(counts), total, counts, _BOUNDS, least, most),
            )
            for key, (total, least, most, *counts) in self.known["gates"].items()
        ]
        if not stops:
            return None
        whole = AggregationTemporality.CUMULATIVE
        metrics = [
            Metric("notyet.stops", "Stops of agents.", "{stop}", Sum(stops, whole, True)),
            Metric("notyet.gate.duration", "How long gates ran.", "s", Histogram(gates, whole)),
        ]
        scope = ScopeMetrics(_SCOPE, metrics if gates else metrics[:1], "")
        return MetricsData([ResourceMetrics(resource, [scope], "")])


def _observe(gates: dict[str, list[float]], key: str, seconds: float) -> None:
    """Enter a duration: its series has the sum, the least, the most, and a count per bucket."""
    new = [0.0, seconds, seconds, *[0] * (len(_BOUNDS) + 1)]
    total, least, most, *counts = gates.get(key, new)
    counts[bisect_left(_BOUNDS, seconds)] += 1
    gates[key] = [total + seconds, min(least, seconds), max(most, seconds), *counts]


class _Said(logging.Handler):
    """What the exporters log, instead of a reason that they return."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._records: list[logging.LogRecord] = []
        self._logger = logging.getLogger("opentelemetry")
        self._propagates, self._logger.propagate = self._logger.propagate, False
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)

    def reason(self) -> tuple[str, bool]:
        """Return why an export failed, and whether a later try may help."""
        last = self._records[-1].getMessage() if self._records else "it failed"
        transient = [
            str(record.args[0])
            for record in self._records
            if isinstance(record.args, tuple) and record.msg.startswith("Transient")
        ]
        self._records.clear()
        if not transient:
            _, is_refused, answer = last.partition("code: ")
            return (f"the receiver answered {answer}" if is_refused else last), False
        found = _SYSTEM_ERROR.search(transient[-1])
        return f"it cannot be reached ({found[1] if found else transient[-1]})", True

    def close(self) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagates
        super().close()


def _resource(origin: Origin) -> Resource:
    return Resource.create(
        {
            "service.name": "notyet",
            "service.version": __version__,
            "service.instance.id": origin.id,
            "host.name": origin.machine,
            "user.name": origin.who,
        }
    )


def _context(origin: Origin, trace: tuple[object, ...], *span: object) -> SpanContext:
    return SpanContext(
        _number(16, origin.id, *trace),
        _number(8, origin.id, *span),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _number(size: int, *parts: object) -> int:
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=size).digest(), "big")


def _said_only(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value not in (None, "")}


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
