"""Faults of our entries."""

import json

from hook_runs import trust
from planting import plants
from status_world import GATES


@plants("not-registered")
def nothing_of_ours(world, monkeypatch):
    world.settings.write_text("{}")


@plants("partly-registered")
def no_stop_of_subagents(world, monkeypatch):
    (world.project / "notyet.toml").write_text(f'{GATES}[gates.review]\nrun = "true"\nfor = "*"\n')
    trust(world.project / "notyet.toml")
    world.change(lambda value: value["hooks"].pop("SubagentStop"))


@plants("starts-not-registered")
def no_start(world, monkeypatch):
    world.change(lambda value: value["hooks"].pop("SessionStart"))


@plants("registered-twice")
def in_two_places(world, monkeypatch):
    world.change(lambda value: value["hooks"]["Stop"].append(value["hooks"]["Stop"][0]))
    if world.host == "codex":
        world.serve()


@plants("event-misspelt")
def lower_case(world, monkeypatch):
    world.change(lambda value: value["hooks"].update(stop=value["hooks"].pop("Stop")))


@plants("entry-conditional", "claude")
def with_an_if(world, monkeypatch):
    world.each_entry(**{"if": "Bash(rm *)"})


@plants("entry-async")
def nobody_waits(world, monkeypatch):
    world.each_entry(**{"async": True})


@plants("entry-refused", "claude")
def a_timeout_of_0(world, monkeypatch):
    def change(value):
        value["hooks"]["SessionStart"][0]["hooks"][0]["timeout"] = 0

    world.change(change)


@plants("entry-refused", "claude")
def a_matcher_that_is_a_number(world, monkeypatch):
    world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher=5))


REFUSED = {
    "of_no_type": {"type": None},
    "a_prompt": {"type": "prompt"},
    "async_as_a_text": {"async": "true"},
    "in_a_strange_shell": {"shell": "zsh"},
    "in_powershell_without_one": {"shell": "powershell"},
    "a_message_that_is_a_number": {"statusMessage": 5},
    "a_timeout_that_is_nothing": {"timeout": None},
    "a_timeout_that_is_a_text": {"timeout": "1800"},
}


def refused(fields):
    def plant(world, monkeypatch):
        world.each_entry(**fields)

    return plant


for name, fields in REFUSED.items():
    planted = refused(fields)
    planted.__name__ = name
    plants("entry-refused", "claude")(planted)


@plants("entry-refused", "claude")
def an_entry_that_only_claude_code_refuses(world, monkeypatch):
    why = "Invalid command hook (x: Invalid input); entry ignored."
    world.claude(world.complaint("hooks.Stop.0.hooks.0.x", why))


@plants("entry-refused", "claude")
def a_group_that_only_claude_code_refuses(world, monkeypatch):
    world.claude(world.complaint("hooks.Stop.0", "Invalid hook matcher; matcher ignored."))


@plants("matcher-broken")
def half_a_pattern(world, monkeypatch):
    world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher="(a"))


@plants("matcher-restricts")
def only_some_agents(world, monkeypatch):
    world.change(lambda value: value["hooks"]["SubagentStop"][0].update(matcher="reviewer"))


@plants("wrong-host")
def of_another(world, monkeypatch):
    line = f"{world.notyet} hook --host notyet --timeout 1800"
    for event in ("Stop", "SubagentStop"):
        world.change(lambda value, e=event: value["hooks"][e][0]["hooks"][0].update(command=line))
    answer = json.dumps({"systemMessage": "notyet 0.1.0: would ask lint, tests"})
    world.program("notyet", f"echo '{answer}'")
