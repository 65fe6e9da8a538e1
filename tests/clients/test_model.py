"""The scripted model speaks the protocol of chat completions as programs expect it."""

import json
from contextlib import closing
from http.client import HTTPConnection

from clients.model.chat import Chat
from clients.model.script import Fail, Run, Say, Spawn
from clients.model.server import ModelServer

WIRE = Chat(
    run=lambda step: ("sh", {"line": step.command}),
    spawn=lambda step: ("delegate", {"task": step.task}),
    words=r"^Stop hook blocked:\n(.*)\nGo on\.$",
    frames=("<info>",),
)
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("sh", "delegate")]


def user(text):
    return {"role": "user", "content": text}


def ask(model, method, path, body=None):
    """Return the status, the type and the text of an answer."""
    with closing(HTTPConnection(model.url.removeprefix("http://"), timeout=30)) as connection:
        connection.request(method, path, body and json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.headers["content-type"], answer.read().decode()


def post(model, *messages, tools=TOOLS, **more):
    """Ask the model; return the text and the type of its answer."""
    body = {"model": "fake-model", "messages": messages, "tools": tools} | more
    status, kind, said = ask(model, "POST", "/v1/chat/completions", body)
    assert status == 200, said
    return said, kind


def test_an_answer_is_one_object_or_a_stream_of_chunks_with_an_end():
    with ModelServer(WIRE, [Say("One."), Say("Two."), Run("ls")]) as model:
        said, kind = post(model, user("do it"))
        assert kind == "application/json"
        assert json.loads(said)["choices"][0]["message"]["content"] == "One."
        streamed, kind = post(
            model, user("do it"), stream=True, stream_options={"include_usage": True}
        )
        assert kind == "text/event-stream"
        assert "event:" not in streamed
        *chunks, end = [line.removeprefix("data: ") for line in streamed.split("\n\n") if line]
        assert end == "[DONE]"
        first, last, usage = map(json.loads, chunks)
        assert first["choices"][0]["delta"]["content"] == "Two."
        assert last["choices"][0]["finish_reason"] == "stop"
        assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 10)
        called, _ = post(model, user("do it"))
        (call,) = json.loads(called)["choices"][0]["message"]["tool_calls"]
        assert call["function"] == {"name": "sh", "arguments": '{"line": "ls"}'}
    assert not model.unexpected


def test_each_actor_is_known_and_what_is_news_to_it():
    script = {"main": [Spawn("[actor: coder] Code."), Say("Done.")], "coder": [Say("Coded.")]}
    with ModelServer(WIRE, script) as model:
        assert "delegate" in post(model, user("do it"))[0]
        parts = [{"type": "text", "text": "<info>now</info>"}, {"type": "text", "text": "Go."}]
        coder = {"role": "system", "content": "[actor: coder] Code."}
        assert "Coded." in post(model, coder, user(parts))[0]
        assistant = {"role": "assistant", "content": None}
        told = user("Stop hook blocked:\nnotyet: no.\nDo more.\nGo on.")
        tool = {"role": "tool", "tool_call_id": "1", "content": "Coded."}
        assert "Done." in post(model, user("do it"), tool, assistant, told)[0]
    assert model.actors == ["main", "coder"]
    assert model.asked("coder")[0].texts == ["Go."]
    again = model.asked()[1]
    assert (again.results, len(again.texts)) == (["Coded."], 2)
    assert WIRE.prompts(again.news) == ["notyet: no.\nDo more."]


def test_titles_errors_and_lists_of_models_need_no_script():
    with ModelServer(WIRE, [Fail(400)]) as model:
        assert "A title" in post(model, user("name it"), tools=[])[0]
        body = {"messages": [user("do it")], "tools": TOOLS}
        assert ask(model, "POST", "/v1/chat/completions", body)[0] == 400
        _, _, models = ask(model, "GET", "/v1/models")
        assert json.loads(models)["data"][0]["id"] == "fake-model"
    assert len(model.asides) == 1


def test_a_program_that_ends_its_turns_with_a_tool_says_so_in_its_call():
    tools = [{"type": "function", "function": {"name": "finish"}}]
    wire = Chat(finish=lambda step: ("finish", {"message": step.text}))
    with ModelServer(wire, [Say("Done.")]) as model:
        said, _ = post(model, user("do it"), tools=tools)
    (call,) = json.loads(said)["choices"][0]["message"]["tool_calls"]
    assert call["function"]["arguments"] == '{"message": "Done."}'
