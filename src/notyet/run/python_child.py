"""A program that calls a gate or observer function of a project; run by path, or from an archive.

It runs in the project's own interpreter, which need not have notyet installed: this copy of the
package is on its path, and nothing else of our environment. On another machine the copy is a small
archive, whose main program imports this module (see `python_gate`).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback

_MOST = 24_000  # characters of one text; the end of a longer answer would be cut off


def main() -> int:
    """Read an event from stdin, call the function, and print the answer as one JSON object."""
    folder, target = sys.argv[1:3]
    answer_to = os.dup(1)
    os.dup2(2, 1)  # prints of the function are output, not part of the answer
    try:
        answer = _call(folder, target, json.loads(sys.stdin.buffer.read()))
    except BaseException as error:  # noqa: BLE001  # foreign code, which may raise SystemExit
        traceback.print_exc()
        answer = {"problem": _described(error)}
    sys.stdout.flush()
    os.write(answer_to, json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
    return 1 if "problem" in answer else 0  # an observer's answer is not read


def _described(error: BaseException) -> str:
    said = f"{type(error).__name__}: {error}"[:2000]
    is_sent = __name__ != "__main__"
    if is_sent and isinstance(error, ImportError) and (error.name or "").startswith("notyet."):
        from notyet import __version__

        said += f"; only what a gate needs of notyet is sent along, so install notyet {__version__}"
    return said


def _call(folder: str, target: str, payload: dict[str, object]) -> dict[str, object]:
    sys.path[0] = folder  # replaces this file's folder
    if __name__ == "__main__":
        _use_our_notyet()
    from notyet.core.text import bounded
    from notyet.hosts.notyet import HOST
    from notyet.hosts.notyet.events import read
    from notyet.hosts.notyet.hooks import read_return

    module, _, name = target.partition(":")
    function = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    told = payload.get("event", payload)
    event = read(told)  # type: ignore[arg-type]  # it accepts any JSON value
    args = (event,) if told is payload else (event, payload["decision"])
    returned = function(*args)  # type: ignore[operator]  # TypeError is a good message
    if inspect.isawaitable(returned):
        import asyncio

        returned = asyncio.run(_finished(returned))
    answer, _ = read_return(returned)
    if type(answer).__name__ == "Problem":
        return {"problem": str(answer.detail)}  # type: ignore[union-attr]
    reply: dict[str, object] = json.loads(HOST.write_reply(answer, "", event, {}).stdout)  # type: ignore[arg-type]  # a verdict
    return {
        name: bounded(said, _MOST) if isinstance(said, str) else said
        for name, said in reply.items()
    }


async def _finished(awaitable: object) -> object:
    return await awaitable  # type: ignore[misc]


def _use_our_notyet() -> None:
    """Make `import notyet` load this copy: another version may not understand our payload."""
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
