"""What is kept of a turn's lines, of which there may be many and large ones."""

import json

from notyet.acp.heard import Heard


def line(kind, **fields):
    update = {"sessionUpdate": kind, **fields}
    message = {"method": "session/update", "params": {"sessionId": "s", "update": update}}
    return json.dumps(message).encode() + b"\n"


def said(text):
    return line("agent_message_chunk", content={"type": "text", "text": text})


def commands(size):
    return line("available_commands_update", availableCommands=[{"name": "x" * size}])


def test_a_large_list_of_commands_does_not_displace_the_last_words():
    for bundles in ([said("Done."), commands(600_000)], [said("Done.") + commands(600_000)]):
        heard = Heard()
        for bundle in bundles:
            heard.add(bundle)
        assert heard.read("s").text == "Done."


def test_a_turn_of_nothing_but_commands_is_one_without_a_word():
    heard = Heard()
    heard.add(commands(600_000))
    heard.add(commands(600_000))
    assert not heard.read("s").has_acted


def test_large_words_are_kept_and_older_ones_are_not():
    heard = Heard()
    heard.add(said("first"))
    heard.add(line("tool_call", toolCallId="t", title="Run tests"))
    heard.add(said("w" * 600_000))
    facts = heard.read("s")
    assert facts.text == "w" * 600_000
    assert facts.has_acted


def test_a_tool_that_is_called_twice_is_named_once():
    heard = Heard()
    for call, title in (("1", "Edit"), ("2", "Run tests"), ("3", "Edit"), ("4", "")):
        heard.add(line("tool_call", toolCallId=call, title=title))
    facts = heard.read("s")
    assert (facts.tools, facts.tool_calls) == (("Edit", "Run tests"), 4)
