"""Codex in a scratch home: how it is set up, run, and asked what it did."""

from __future__ import annotations

import json
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from clients.codex.app_server import AppServer
from clients.model import responses
from clients.model.server import ModelServer
from clients.runs import Ran
from clients.world import NOTYET, World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.model.script import Request

_CONFIG = """\
model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:1/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[analytics]
enabled = false

[features]
plugins = false
apps = false
shell_snapshot = false
"""


BYPASS = "--dangerously-bypass-hook-trust"  # makes `codex exec` run hooks that nobody approved


class Codex(World):
    """What is Codex's own way of doing things."""

    HOST: ClassVar[str] = "codex"
    WIRE = responses
    NAMES_THREADS: ClassVar[bool] = True
    # What is too long for the model, and what its sandbox leaves.
    ITS_FILES: ClassVar[tuple[str, ...]] = ("hook_outputs/*", "codex-bwrap-*")

    @property
    def codex_home(self) -> Path:
        return self.home / ".codex"

    @property
    def config(self) -> Path:
        return self.codex_home / "config.toml"

    @property
    def hooks(self) -> Path:
        return self.codex_home / "hooks.json"

    def settle_in(self) -> None:
        """Write the settings; where the model is, every run says itself."""
        self.codex_home.mkdir()
        self.forget_project()
        self.trust_project()

    def trust_project(self) -> None:
        """Let Codex read the project's own settings and hooks."""
        self.configure(projects={str(self.project): {"trust_level": "trusted"}})

    def forget_project(self) -> None:
        """Go back to settings that know no project."""
        self.config.write_text(_CONFIG)

    def settings(self) -> dict[str, Any]:
        return tomllib.loads(self.config.read_text())

    def path_with_notyet(self) -> str:
        """Return a PATH on which notyet is found, as on the machine of somebody who has it."""
        return f"{NOTYET.parent}:{self.environ['PATH']}"

    def configure(self, **tables: dict[str, dict[str, str]]) -> None:
        """Add tables to the settings."""
        with self.config.open("a") as file:
            for name, entries in tables.items():
                for key, values in entries.items():
                    file.write(f"\n[{name}.{json.dumps(key)}]\n")
                    file.writelines(f"{k} = {json.dumps(v)}\n" for k, v in values.items())
        self.settings()  # it is still TOML

    def install(self, *options: str) -> None:
        """Install, and approve it in Codex, which skips hooks that nobody approved."""
        super().install("--trust", *options)

    def install_unapproved(self, *options: str) -> None:
        super().install(*options)

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return the command line of `codex exec`; `args` come last, as `resume` must."""
        return [str(self.program), "exec", *self.where(url), *args, prompt]

    def where(self, url: str) -> list[str]:
        """Return the options that say where the model is."""
        return ["-c", f"model_providers.mock.base_url={json.dumps(url + '/v1')}"]

    def variables(self, url: str) -> dict[str, str]:
        """Return nothing: all is in its settings, and they are where it looks by itself."""
        return {}

    def point_at(self, url: str) -> None:
        config = self.config.read_text()
        self.config.write_text(config.replace("http://127.0.0.1:1/v1", f"{url}/v1"))

    def answer(self, out: str) -> str:
        """Return the final answer: all of its stdout, but with --json."""
        if not out.startswith("{"):
            return out.strip()
        items = [json.loads(line).get("item", {}) for line in out.splitlines()]
        said = [item["text"] for item in items if item.get("type") == "agent_message"]
        return said[-1] if said else ""

    def thread(self, request: Request) -> str:
        """Every request names its thread, which is its session's or its subagent's id."""
        return request.headers["thread-id"]

    def define_agent(self, name: str) -> None:
        """Let there be a role; one is enough for the model to be offered types at all."""
        self.configure(agents={name: {"description": f"A {name}."}})

    def notes(self, ran: Ran) -> list[str]:
        """Return nothing: `codex exec` shows no words of a hook."""
        return []

    # -- the server that Codex has for editors: it tells everything about hooks

    @contextmanager
    def serving(self, script: Any, **config: Any):
        """Start `codex app-server` with a thread in the project; yield server, thread, model."""
        with ModelServer(self.WIRE, script) as model:
            with self._app_server(model.url) as server:
                yield server, server.new_thread(**config), model
            self.runs.append(Ran("", server.process.returncode, "", "", model))

    def _app_server(self, url: str) -> AppServer:
        line = [str(self.program), *self.where(url)]
        environ = self.environ | self.variables(url)
        return AppServer(line, environ, self.project, self.logs / "app-server.err")

    def seen_hooks(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """Return the hooks that Codex finds for the project, by their keys, and its warnings."""
        with self._app_server("http://127.0.0.1:1") as server:
            hooks, warnings = server.hooks()
        return {hook["key"]: hook for hook in hooks}, warnings

    def status(self, **environ: str) -> tuple[int, list[str]]:
        """Ask `notyet status`, which may ask Codex; return its exit code and what it found."""
        path = f"{self.program.parent}:{self.environ['PATH']}"
        done = self.notyet("status", "codex", "--json", **{"PATH": path} | environ)
        assert not done.stderr, done.stderr
        said = json.loads(done.stdout)
        found = [fault for part in (said, *said["hosts"]) for fault in part["faults"]]
        return done.returncode, [fault["code"] for fault in found if fault["level"] == "fault"]
