"""Agents that speak ACP, told by the command that starts them."""

import pytest

from notyet.hosts.acp_agents import ACP_AGENTS, acp_agent, acp_of


@pytest.mark.parametrize("agent", ACP_AGENTS, ids=lambda agent: agent.host)
def test_an_agent_is_known_by_its_command_and_by_its_host(agent):
    assert acp_agent(agent.command.split()) is agent
    assert acp_of(agent.host) is agent


@pytest.mark.parametrize(
    ("argv", "host"),
    [
        (["/opt/bin/goose", "acp"], "goose"),
        (["npx", "-y", "@agentclientprotocol/codex-acp@2.6.0"], "codex"),
        (["env", "A=1", "copilot", "--acp"], "copilot"),
        (["my-agent", "--acp"], None),
        ([], None),
    ],
)
def test_an_agent_may_be_started_by_another_program(argv, host):
    found = acp_agent(argv)
    assert (found.host if found else None) == host


def test_a_host_without_such_an_agent_has_none():
    assert acp_of("mux") is None
