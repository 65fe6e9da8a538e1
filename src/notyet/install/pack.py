"""Write the pack: the modules that a hook imports, compiled for one Python into one file.

A hook spends most of its time on finding, reading and unmarshalling modules. The pack holds them
in groups, each as one list in the order in which they can be run, without what running does not
need: docstrings, annotations of functions, code for type checkers, and line numbers.
`install/pack_loader.py` reads it.
"""

from __future__ import annotations
import __future__

import ast
import marshal
import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import MAGIC_NUMBER, find_spec
from types import CodeType, MappingProxyType

from notyet.hosts import DEFAULT, HOSTS
from notyet.install.pack_loader import are_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from notyet.install.pack_loader import Item, Span

# The groups and their modules. What these import at the top belongs to the group too, if no group
# before has it; what they import inside functions does not.
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Of every event.
        "door": ("notyet.hook.main", f"notyet.hosts.{DEFAULT}"),
        # Hosts other than the usual one, and to find out which one calls.
        **{name: (f"notyet.hosts.{name}",) for name in HOSTS if name != DEFAULT},
        "detect": ("notyet.hosts.detect",),
        # Where a host does not name the project that a session was started in.
        "sessions": ("notyet.config.sessions",),
        # In linked work trees.
        "worktrees": ("notyet.git.worktrees",),
        # Where a subagent stops, and there is a file.
        "silent": ("notyet.config.compiled",),
        # Where something is configured for this agent.
        "setup": ("notyet.hook.hook", "notyet.hosts.wire", "notyet.config.load"),
        # Where gates run.
        "gates": ("notyet.core.plan", "notyet.engine.stop", "notyet.ledger.ledger"),
        # Where a command runs.
        "commands": (
            "notyet.run.command_runner",
            "notyet.run.gate_command",
            "notyet.run.groups",
            "notyet.hosts.notyet.hooks",
        ),
        # Where gates have answered; loaded while they run.
        "answers": ("notyet.core.settle",),
        # Where gates depend on files.
        "files": (
            "notyet.engine.unchanged",
            "notyet.git.fingerprint",
        ),
        # While git looks at them.
        "looking": ("notyet.ledger.passes",),
        # Where a project has several files, members, or a table in its pyproject.toml.
        "layers": ("notyet.config.layers",),
        "members": ("notyet.config.members", "notyet.engine.members"),
        "pyproject": ("notyet.config.pyproject",),
    }
)
# What these import of Python's own that may be libraries, which are looked for in every folder.
LIBRARIES = ("_blake2", "_ctypes", "_json", "_sqlite3", "select")
SIGN = b"notyet 1 %b %d %d "  # for which Python, and the file's own size and time
HEAD = 64  # bytes: the sign, and the length of the first block, which follows
_PACKAGE = "notyet"
_LOADER = "notyet.install.pack_loader"
# Record reads annotations of classes, which are texts as in the source.
_FLAGS = __future__.annotations.compiler_flag


class Package:
    """The source of the package in the folder `root`; each file is read once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._read: dict[str, tuple[os.stat_result, ast.Module]] = {}

    def members(self) -> dict[str, tuple[str, ...]]:
        """Return the modules of each group, in an order in which they can be run."""
        seen: set[str] = set()
        return {
            group: tuple(one for name in names for one in self._ordered(name, seen))
            for group, names in GROUPS.items()
        }

    def packed(self, moment: int) -> bytes:
        """Return a pack for the Python that runs this; `moment` is the time its file will have.

        Raises OSError where a source cannot be read, and SyntaxError.
        """
        (_, door), *others = [
            (names, [self._item(name) for name in names]) for names in self.members().values()
        ]
        rest = b""
        spans: dict[str, Span] = {}
        for names, items in reversed(others):
            content = _dumped(items)
            rest = content + rest
            spans |= dict.fromkeys(names, (len(rest), len(content)))
        first = _dumped((self._item(_LOADER)[-1], (door, spans, _libraries())))
        size = HEAD + len(first) + len(rest)
        head = SIGN % (MAGIC_NUMBER, size, moment) + b"%d" % len(first)
        return head.ljust(HEAD) + first + rest

    def _ordered(self, name: str, seen: set[str]) -> Iterator[str]:
        """Yield a module after all that it imports; nothing for a name that is not a module."""
        if name in seen or not self._source(name):
            return
        seen.add(name)
        parent = name.rpartition(".")[0]
        for other in (parent, *_imported(self._tree(name))):
            yield from self._ordered(other, seen)
        yield name

    def _tree(self, name: str) -> ast.Module:
        """Return the syntax tree of a module, without what running does not need."""
        if name not in self._read:
            with open(self._source(name), "rb") as file:
                found = os.fstat(file.fileno())  # before: if it changes now, it is not as packed
                tree = _Lean(self._source).visit(ast.parse(file.read()))
                self._read[name] = found, ast.fix_missing_locations(tree)
        return self._read[name][1]

    def _item(self, name: str) -> Item:
        file = self._source(name)
        tree = self._tree(name)
        # Without docstrings and assertions.
        code = compile(tree, file, "exec", _FLAGS, dont_inherit=True, optimize=2)
        code = _without_lines(code)
        found = self._read[name][0]
        is_package = file.endswith("/__init__.py")
        return name, is_package, file, found.st_mtime_ns, found.st_size, code

    def _source(self, name: str) -> str:
        """Return the source file of a module of ours; empty where there is none."""
        if name.partition(".")[0] != _PACKAGE:
            return ""
        path = os.path.join(self._root, *name.split("."))
        files = (os.path.join(path, "__init__.py"), f"{path}.py")
        return next((file for file in files if os.path.isfile(file)), "")


def is_current(path: str) -> bool:
    """Return True if a pack is for this Python, complete, and of the sources as they are now."""
    try:
        with open(path, "rb", opener=_not_blocking) as file:
            found = os.fstat(file.fileno())
            content = file.read() or b""
        sign = SIGN % (MAGIC_NUMBER, found.st_size, found.st_mtime_ns)
        if not content.startswith(sign) or len(content) != found.st_size:
            return False
        _, (items, spans, _) = marshal.loads(content[HEAD:])  # noqa: S302  # our own, as its sign says
        groups = [items]
        for begin, length in set(spans.values()):
            groups.append(marshal.loads(content[len(content) - begin :][:length]))  # noqa: S302
    except (OSError, EOFError, ValueError, TypeError):
        return False
    return all(are_unchanged(items) for items in groups)


def _libraries() -> dict[str, str]:
    """Return the files of those of Python's own modules that are shared libraries here."""
    found = {name: find_spec(name) for name in LIBRARIES}
    return {
        name: spec.origin
        for name, spec in found.items()
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader) and spec.origin
    }


def _not_blocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe in its place must not block


def _without_lines(code: CodeType) -> CodeType:
    """Return code, and what is defined in it, without its lines: a fifth less to read."""
    consts = [_without_lines(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return code.replace(co_linetable=b"", co_consts=tuple(consts))


def _dumped(value: Any) -> bytes:
    """Marshal twice: then only what occurs twice is marked as shared."""
    return marshal.dumps(marshal.loads(marshal.dumps(value)))  # noqa: S302  # our own


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module imports at the top; some may not be modules."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue  # runs later
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from _imported(node)


class _Lean(ast.NodeTransformer):
    """Remove from a module what running does not need; `source` finds modules of ours."""

    def __init__(self, source: Callable[[str], str]) -> None:
        self._source = source

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_If(self, node: ast.If) -> ast.If | list[ast.stmt]:
        self.generic_visit(node)
        is_for_checkers = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return node.orelse if is_for_checkers else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | list[ast.stmt] | None:
        """Import a module by itself, and take the names out of it.

        Python would ask each time whether it is a package, and make an error of it that it is
        not: up to 3.11 this costs ten times as much as what is asked for.
        """
        module = node.module or ""
        if module == "__future__":
            return None
        is_ours = not node.level and bool(self._source(module))
        is_built_in = not node.level and module in sys.builtin_module_names
        if not (is_ours or is_built_in) or node.names[0].name == "*":
            return node
        modules = [alias for alias in node.names if self._source(f"{module}.{alias.name}")]
        names = [alias for alias in node.names if alias not in modules]
        lines: list[ast.stmt] = [
            ast.Import([ast.alias(f"{module}.{alias.name}", alias.asname or alias.name)])
            for alias in modules
        ]
        if names:
            known_as = [alias.asname or alias.name for alias in names]
            last = known_as[-1]  # stands for the module until it has its own value
            lines.append(ast.Import([ast.alias(module, last)]))
            lines += [
                ast.Assign(
                    [ast.Name(own, ast.Store())],
                    ast.Attribute(ast.Name(last, ast.Load()), alias.name, ast.Load()),
                )
                for own, alias in zip(known_as, names, strict=True)
            ]
        return [ast.copy_location(line, node) for line in lines]
