"""Stops as OpenTelemetry, at a real receiver: the same spans however often they come."""

import os
import subprocess
import sys

import pytest

import notyet.share.otel
from hook_runs import clean_environ
from notyet import Block, Engine
from notyet.cli.main import main
from notyet.core.session import Turn
from notyet.ledger.connection import SHIP_STATE
from otlp_receiver import Receiver, attributes
from supervised import Agent, World
from support import gate, stop


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def ship(receiver, monkeypatch, capsys):
    """Run `notyet ship` to the receiver; return its exit code and what it printed."""
    monkeypatch.setenv("NOTYET_SHARE_OTEL", receiver.url)

    def ship():
        capsys.readouterr()
        code = main(["ship"])
        said = capsys.readouterr()
        return code, said.out + said.err

    return ship


def stop_counts(receiver):
    points = receiver.metrics()["notyet.stops"].sum.data_points
    return {tuple(sorted(attributes(point).values())): point.as_int for point in points}


def test_stops_and_gates_are_spans_with_the_attributes_of_evaluations(ship, receiver, fill):
    fill(1, host="claude", model="opus", cwd="/private/folder")
    assert ship() == (0, "2 stops copied to OpenTelemetry\n")
    spans = receiver.spans()
    stops = [span for span in spans if span.name == "gate_stop claude"]
    gates = [span for span in spans if span.name.startswith("gate ")]
    assert [span.name for span in gates] == ["gate tests", "gate lint"] * 2
    assert len(stops) == 2
    assert {gate.parent_span_id for gate in gates} == {stop.span_id for stop in stops}
    assert len({span.trace_id for span in spans}) == 1, "one turn is one trace"
    said = attributes(stops[0])
    assert said["gen_ai.conversation.id"] == "s1"
    assert said["gen_ai.agent.id"] == "main"
    assert said["gen_ai.request.model"] == "opus"
    assert (said["notyet.outcome"], said["notyet.host"]) == ("blocked", "claude")
    assert (said["notyet.send_backs"], said["notyet.max_blocks"]) == (1, 3)
    said = attributes(gates[0])
    assert said["gen_ai.evaluation.name"] == "tests"
    assert said["gen_ai.evaluation.score.label"] == "blocked"
    assert said["gen_ai.evaluation.score.value"] == 0.0
    assert attributes(gates[2])["gen_ai.evaluation.score.value"] == 1.0
    for span in spans:
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    assert receiver.resource()["service.name"] == "notyet"
    told = str(receiver.messages)
    for words in ("secret words", "my words", "/private/folder"):
        assert words not in told


def test_with_words_a_gate_explains_itself(ship, receiver, fill, monkeypatch):
    monkeypatch.setenv("NOTYET_SHARE_WORDS", "true")
    fill(1)
    assert ship()[0] == 0
    explained = [attributes(span).get("gen_ai.evaluation.explanation") for span in receiver.spans()]
    assert "the secret words" in explained


def test_stops_and_durations_are_metrics(ship, receiver, fill):
    fill(2, host="claude")
    fill(1, host="codex", session_id="s2")
    assert ship()[0] == 0
    assert stop_counts(receiver) == {
        ("blocked", "claude"): 2,
        ("claude", "passed"): 2,
        ("blocked", "codex"): 1,
        ("codex", "passed"): 1,
    }
    points = receiver.metrics()["notyet.gate.duration"].histogram.data_points
    counts = {(attributes(one)["gate"], attributes(one)["status"]): one for one in points}
    assert {key: one.count for key, one in counts.items()} == {
        ("tests", "blocked"): 3,
        ("tests", "allowed"): 3,
        ("lint", "allowed"): 6,
    }
    for one in points:
        assert sum(one.bucket_counts) == one.count
        assert len(one.bucket_counts) == len(one.explicit_bounds) + 1
        assert 0 <= one.min <= one.max <= one.sum


def test_exporting_twice_gives_the_same_ids_and_totals(ship, receiver, fill, ledger):
    fill(3)
    assert ship() == (0, "6 stops copied to OpenTelemetry\n")
    first, totals = receiver.spans(), stop_counts(receiver)
    os.unlink(ledger.path + SHIP_STATE)  # as if it had been killed before it was written
    assert ship() == (0, "6 stops copied to OpenTelemetry\n")
    again = receiver.spans()[len(first) :]
    assert [span.SerializeToString() for span in again] == [
        span.SerializeToString() for span in first
    ]
    assert len({span.span_id for span in first}) == len(first) == 18
    assert stop_counts(receiver) == totals


def test_each_stop_is_exported_once_and_totals_grow(ship, receiver, fill):
    fill(1)
    ship()
    assert ship() == (0, "0 stops copied to OpenTelemetry\n")
    assert len(receiver.spans()) == 6
    fill(1, session_id="s2")
    assert ship() == (0, "2 stops copied to OpenTelemetry\n")
    assert len(receiver.spans()) == 12
    assert sorted(stop_counts(receiver).values()) == [2, 2]


def test_an_overridden_stop_keeps_its_ids_and_counts_once_more(ship, receiver, ledger):
    engine = Engine([gate("tests", Block("no"))], ledger=ledger, warn=lambda _: None)
    engine.check_sync(stop(turn_id="t1"))
    ship()
    ledger.give_up(ledger.begin(stop(turn_id="t2")))
    ship()
    spans = [span for span in receiver.spans() if attributes(span).get("notyet.turn") == 1]
    assert [attributes(span)["notyet.outcome"] for span in spans] == ["blocked", "overridden"]
    assert len({span.span_id for span in spans}) == 1
    assert {key for key, _ in stop_counts(receiver)} == {"blocked", "embedded"}
    points = receiver.metrics()["notyet.gate.duration"].histogram.data_points
    assert [point.count for point in points] == [1]


def test_supervised_runs_are_spans_around_their_stops(ship, receiver, tmp_path, monkeypatch):
    with World(tmp_path) as world:
        monkeypatch.setenv("NOTYET_LEDGER", world.ledger.path)
        world.block(1, "more")
        turns = [Turn(text=text, model="opus") for text in ("done", "really")]
        task = world.spawned(Agent(*turns)).task_id
    assert ship()[0] == 0
    spans = {span.span_id: span for span in receiver.spans()}
    runs = [span for span in spans.values() if span.name == "invoke_agent tests"]
    assert len(runs) == 2
    for run in runs:
        said = attributes(run)
        assert (said["gen_ai.operation.name"], said["gen_ai.agent.id"]) == ("invoke_agent", task)
        assert (said["gen_ai.request.model"], said["gen_ai.agent.name"]) == ("opus", "tests")
        assert run.parent_span_id == b""
    stops = [span for span in spans.values() if span.name.startswith("gate_stop")]
    assert {stop.parent_span_id for stop in stops} == {run.span_id for run in runs}
    assert len({span.trace_id for span in spans.values()}) == 1, "one task is one trace"
    assert ship()[0] == 0
    assert len(receiver.spans()) == len(spans), "each run once"


def test_both_places_have_a_watermark_of_their_own(ship, receiver, fill, database, monkeypatch):
    fill(1)
    monkeypatch.setenv("NOTYET_SHARE", "postgresql://me@127.0.0.1:1/x")
    code, said = ship()
    assert code == 1
    assert "2 stops copied to OpenTelemetry\n" in said
    assert "PostgreSQL cannot be reached" in said
    monkeypatch.setenv("NOTYET_SHARE", database.url)
    assert ship() == (0, "2 stops copied to PostgreSQL\n0 stops copied to OpenTelemetry\n")


def test_headers_come_from_the_environment(ship, receiver, fill, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
    fill(1)
    assert ship()[0] == 0
    assert {headers["x-key"] for headers in receiver.headers} == {"abc"}


# Faults.


def refused(ship, *parts):
    code, said = ship()
    assert code == 1
    assert said.startswith("notyet ship: ")
    assert said.count("\n") == 1, said
    assert "geheim" not in said
    for part in parts:
        assert part in said, said


def test_a_receiver_that_is_gone_is_named_and_nothing_is_lost(ship, receiver, fill, monkeypatch):
    monkeypatch.setattr(notyet.share.otel, "_TIMEOUT", 2.0)
    monkeypatch.setenv("NOTYET_SHARE_OTEL", "http://me:geheim@127.0.0.1:1")
    fill(1)
    refused(ship, "http://127.0.0.1:1: it cannot be reached (Connection refused)", "correct")
    monkeypatch.setenv("NOTYET_SHARE_OTEL", receiver.url)
    assert ship() == (0, "2 stops copied to OpenTelemetry\n")


def test_a_receiver_that_refuses_is_quoted_and_nothing_is_lost(ship, receiver, fill):
    fill(1)
    receiver.refuses = 401
    refused(ship, f"{receiver.url}: the receiver answered 401", "Unauthorized")
    receiver.refuses = 0
    assert ship() == (0, "2 stops copied to OpenTelemetry\n")


def test_without_the_extra_it_is_named(fill):
    fill(1)
    code = "import sys; sys.modules['opentelemetry.sdk.trace'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}from notyet.cli.main import main\nsys.exit(main(['ship']))"],
        capture_output=True,
        text=True,
        env=clean_environ(NOTYET_SHARE_OTEL="http://127.0.0.1:1"),
    )
    assert done.returncode == 1
    assert "it needs opentelemetry-sdk and its OTLP exporter" in done.stderr
    assert "pip install '.[otel]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_psycopg_opentelemetry_works(fill, receiver):
    fill(1)
    code = "import sys; sys.modules['psycopg'] = None\nfrom notyet.cli.main import main\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}sys.exit(main(['ship']))"],
        capture_output=True,
        text=True,
        env=clean_environ(NOTYET_SHARE_OTEL=receiver.url),
    )
    assert (done.returncode, done.stdout) == (0, "2 stops copied to OpenTelemetry\n"), done.stderr
