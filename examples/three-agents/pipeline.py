"""A planner, a coder and a reviewer, one after another, each held to what it promised.

    python pipeline.py                  # scripted agents: no model is called
    python pipeline.py --agent claude   # the same with Claude Code

The ledger in the folder survives a crash: the next run first goes on with what was left.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from notyet import Block, Engine, Ledger, StopEvent, Supervisor
from notyet.agents import open_session, reopen
from notyet.testing import Say, Scene, Script, ScriptedSession, Write

PROMPTS = {
    "planner": "Write PLAN.md: the steps to add a function that greets by name.",
    "coder": "Do what PLAN.md says, in greet.py.",
    "reviewer": "Review greet.py against PLAN.md. End with APPROVED, or with `wrong:` and why.",
}
# What scripted agents do, turn by turn: the planner writes its plan only when it is sent back.
SCRIPTS = {
    "planner": Script(
        turns=(
            Scene(steps=(Say("The plan is: one function."),)),
            Scene(steps=(Write("PLAN.md", "1. def greet(name)\n"), Say("PLAN.md is written."))),
        )
    ),
    "coder": Script(
        turns=(
            Scene(
                steps=(
                    Write("greet.py", 'def greet(name):\n    return f"Hello, {name}!"\n'),
                    Say("greet() is in greet.py."),
                )
            ),
        )
    ),
    "reviewer": Script.saying("Looks fine to me.", "I called it with three names. APPROVED"),
}


def plan_is_written(event: StopEvent) -> Block | None:
    """Hold the planner until there is a plan."""
    if event.label != "planner" or Path(event.cwd, "PLAN.md").exists():
        return None
    return Block("There is no PLAN.md. Write the plan into it.")


def code_compiles(event: StopEvent) -> Block | None:
    """Hold the coder until its file is Python."""
    if event.label != "coder":
        return None
    try:
        compile(Path(event.cwd, "greet.py").read_text(encoding="utf-8"), "greet.py", "exec")
    except (OSError, SyntaxError) as error:
        return Block(f"greet.py is not ready: {error}")
    return None


def review_has_a_verdict(event: StopEvent) -> Block | None:
    """Hold the reviewer until it has decided."""
    last = event.last_message or ""
    if event.label != "reviewer" or "APPROVED" in last or "wrong:" in last:
        return None
    return Block("Decide: end with APPROVED, or with `wrong:` and why.")


async def pipeline(folder: Path, agent: str = "") -> list[str]:
    """Run the three agents in a folder; return what came of each."""
    ledger = Ledger(str(folder / "pipeline.db"))
    engine = Engine([plan_is_written, code_compiles, review_has_a_verdict], ledger=ledger)
    outcomes = []
    async with Supervisor(engine, ledger, reopen, program="pipeline") as supervisor:
        for handle in await supervisor.recover():
            print(f"left by an earlier run: {(await handle.result()).outcome}")
        for role, prompt in PROMPTS.items():
            where = str(folder)
            session = (
                open_session(agent, cwd=where)
                if agent
                else ScriptedSession(SCRIPTS[role], cwd=where)
            )
            result = await supervisor.run(session, prompt, label=role, cwd=where)
            outcomes.append(result.outcome)
            print(f"{role:8}  {result.outcome}, send-backs {result.steers}: {result.text}")
            if result.outcome != "passed":  # the next one would build on sand
                break
    return outcomes


def main() -> int:
    """Run the pipeline; exit 0 if all three passed."""
    parser = argparse.ArgumentParser(description="Run three agents, one after another.")
    parser.add_argument("folder", nargs="?", default="work", help="where they work (work)")
    parser.add_argument("--agent", default="", help="claude, codex, ...; without it, scripted ones")
    args = parser.parse_args()
    folder = Path(args.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = asyncio.run(pipeline(folder, args.agent))
    return 0 if outcomes == ["passed"] * len(PROMPTS) else 1


if __name__ == "__main__":
    sys.exit(main())
