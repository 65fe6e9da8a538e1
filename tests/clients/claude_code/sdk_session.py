"""A session of claude-agent-sdk, as a program of its own: `sdk_session.py OPTIONS PROMPT...`.

OPTIONS is JSON; every prompt is a turn of one conversation. What the SDK delivers is written
to stdout, a line of JSON for each result. The tests never import the SDK themselves.
"""

import asyncio
import json
import sys

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage


async def main(options, *prompts):
    chosen = ClaudeAgentOptions(permission_mode="bypassPermissions", **json.loads(options))
    async with ClaudeSDKClient(chosen) as client:
        for prompt in prompts:
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    said = {"result": message.result, "is_error": message.is_error}
                    print(json.dumps(said), flush=True)  # noqa: T201  # it is a program


asyncio.run(main(*sys.argv[1:]))
