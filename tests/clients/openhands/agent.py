"""A program that uses the SDK of OpenHands: agent.py [--resume] PROMPT. Run by its own Python.

Its conversations are where OpenHands' command line keeps them.
"""

import os
import subprocess
import sys
import uuid
from pathlib import Path

from openhands.sdk import LLM, Agent, Conversation
from openhands.sdk.conversation.response_utils import get_agent_final_response
from openhands.sdk.hooks import HookConfig
from openhands.sdk.tool import (
    Action,
    Observation,
    Tool,
    ToolDefinition,
    ToolExecutor,
    register_tool,
)


class ShellAction(Action):
    """A command."""

    command: str


class ShellObservation(Observation):
    """What the command said."""


class Shell(ToolExecutor):
    """The smallest shell."""

    def __call__(self, action, conversation=None):
        done = subprocess.run(action.command, shell=True, capture_output=True, text=True)
        return ShellObservation.from_text(text=done.stdout + done.stderr)


class ShellTool(ToolDefinition[ShellAction, ShellObservation]):
    """A shell as a tool; the one of OpenHands needs a hundred packages more."""

    @classmethod
    def create(cls, conv_state=None, **params):
        return [
            cls(
                description="Run a command.",
                action_type=ShellAction,
                observation_type=ShellObservation,
                executor=Shell(),
            )
        ]


register_tool("shell", ShellTool)
args = sys.argv[1:]
here = os.getcwd()
kept = Path.home() / ".openhands" / "conversations"
resumed = uuid.UUID(next(kept.iterdir()).name) if "--resume" in args else None
llm = LLM(
    model="openai/fake-model",
    base_url=os.environ["LLM_BASE_URL"],
    api_key="dummy",
    usage_id="agent",
    num_retries=0,
)
conversation = Conversation(
    agent=Agent(llm=llm, tools=[Tool(name="shell")]),
    workspace=here,
    hook_config=HookConfig.load(working_dir=here),
    persistence_dir=str(kept),
    conversation_id=resumed,
    visualizer=None,
)
conversation.send_message(args[-1])
conversation.run()
sys.stdout.write(get_agent_final_response(conversation.state.events) + "\n")
conversation.close()
