"""A program that runs one gate of notyet's own; a stop starts it by the path of this file.

It reads a question from stdin and prints the answer as one JSON object. The interpreter is the one
that runs notyet; nothing of the project is on its path.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from notyet.gates.question import Answer

_MOST = 24_000  # characters of one text; the end of a longer answer would be cut off


def main() -> int:
    """Read a question, let its kind of gate check, and print the answer."""
    _use_our_notyet()
    from notyet.gates.kinds import MODULES

    told = json.loads(sys.stdin.buffer.read())
    sys.stdout, answer_to = sys.stderr, sys.stdout  # a stray print is output, no answer
    try:
        module = importlib.import_module(f"notyet.gates.{MODULES[sys.argv[1]]}")
        answer = module.check(question_from(told))
    except Exception as error:  # noqa: BLE001  # a fault of ours must not look like a pass
        traceback.print_exc()
        written: dict[str, Any] = {"problem": f"{type(error).__name__}: {error}"[:2000]}
    else:
        if isinstance(answer, int):  # the exit code of a command that has printed for itself
            return answer
        if answer.output:
            sys.stderr.write(f"{answer.output}\n")
        written = written_answer(answer)
    answer_to.write(json.dumps(written))
    answer_to.flush()
    return 0


def question_from(told: dict[str, Any]) -> Any:
    """Return the question that a stop wrote."""
    from notyet.gates.question import Question
    from notyet.hosts.notyet.events import read

    known = {name: told[name] for name in Question.__dataclass_fields__ if name in told}
    known["reports"] = tuple(known.get("reports", ()))
    known["commands"] = tuple(known.get("commands", ()))
    return Question(**known | {"event": read(told["event"])})


def written_answer(answer: Answer) -> dict[str, Any]:
    """Return an answer in the form in which a native gate may print it (E10)."""
    from notyet.core.text import bounded

    if answer.problem:
        said: dict[str, Any] = {"problem": bounded(answer.problem, _MOST)}
    elif answer.reason:
        said = {"decision": "block", "reason": bounded(answer.reason, _MOST)}
    else:
        said = {"decision": "allow", "reason": bounded(answer.note, _MOST)}
    if answer.tell:
        said["systemMessage"] = bounded(answer.tell, _MOST)
    if answer.tokens:
        said["tokens"] = answer.tokens
    return said


def _use_our_notyet() -> None:
    """Make `import notyet` load this copy, wherever the program was started."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "notyet", os.path.join(home, "__init__.py"), submodule_search_locations=[home]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["notyet"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    sys.exit(main())
