"""Whatever `notyet check` is given is a stop or an error with words, and its reply the hook's."""

import argparse
import json
import os
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hook_runs import HOSTS, ask, new_project, payload, trust
from notyet.cli.rehearsal import VERDICTS, AnswerOption, rehearse
from notyet.cli.stop_options import described_stop, read_stop
from notyet.core.event import StopEvent
from notyet.errors import NotyetError

FIELDS = ("as_host", "event", "agent_type", "agent_id", "agent_name", "payload", "workspace")
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2)
NAMES = st.sampled_from(
    [
        *("session_id", "cwd", "transcript_path", "turn_id", "scope", "stop_hook_active"),
        *("last_assistant_message", "agent_id", "agent_type", "background_tasks", "internal"),
        *("host", "ending", "permission_mode", "workspace", "crons", "task_name"),
    ]
)
BLOCKING = '[gates.g]\nrun = "echo no; exit 1"\nwhen = "always"\nfor = "all"\n'


def options(**given_ones):
    return argparse.Namespace(**dict.fromkeys(FIELDS) | given_ones)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_are_a_stop_or_an_error_that_names_the_file(tmp_path, content):
    file = tmp_path / "sent.json"
    file.write_bytes(content)
    event, said = None, str(file)
    try:
        event = read_stop(described_stop(options(payload=str(file)), "/"), {})
    except NotyetError as error:
        said = str(error)
    assert said.startswith(str(file))
    assert (said == str(file)) == isinstance(event, StopEvent)


@given(text=st.text() | st.tuples(st.text(), st.sampled_from(VERDICTS), st.text()).map("=".join))
def test_any_text_is_an_answer_or_an_error_with_words(text):
    said = ""
    try:
        answer = AnswerOption.parse(text)
    except ValueError as error:
        said = str(error)
    if said:
        assert "tests=allow" in said
    else:
        assert text.startswith(f"{answer.gate}={answer.verdict}")
        assert answer.verdict in VERDICTS


@pytest.fixture(autouse=True)
def _nobody_is_adopted(monkeypatch):
    """Leave the other children of the tests' process alone."""
    monkeypatch.setattr("notyet.run.groups.adopt_orphans", lambda: False)


@pytest.fixture(scope="module")
def one_project(tmp_path_factory):
    return tmp_path_factory.mktemp("check") / "p"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    host=st.sampled_from(HOSTS),
    odd=st.dictionaries(NAMES, VALUES, max_size=3),
    event=st.sampled_from(["Stop", "SubagentStop"]),
)
def test_the_reply_to_any_payload_is_the_hooks(one_project, tmp_path, host, odd, event):
    if not one_project.exists():
        new_project(one_project, BLOCKING)
    trust(one_project / "notyet.toml")
    sent = payload(host, one_project) | {"hook_event_name": event} | odd
    if isinstance(sent["session_id"], str) and sent["session_id"].strip():
        sent["session_id"] = os.urandom(8).hex()  # so that it is a first stop, as a check is one
    file = tmp_path / "sent.json"
    file.write_text(json.dumps(sent))
    stop = described_stop(options(payload=str(file), as_host=host), "/")
    said = rehearse(stop, os.environ).reply
    real = ask(sent, "--host", host)
    assert [timeless(said.stdout), timeless(said.stderr), said.code] == [
        timeless(real.stdout),
        timeless(real.stderr),
        real.code,
    ]


def timeless(text):
    return re.sub(r" \(notyet log \d+\)", "", re.sub(r"\d+\.\d s", "N s", text))
