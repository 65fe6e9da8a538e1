"""Import the modules of the hook's path from one file, the pack, instead of one file each.

`notyet install` writes the pack (`install/pack.py`), and the launcher runs this module out of it.
The first import of a module loads its whole group, if every source file is still what it was when
it was packed. Otherwise, and for modules in no group, the ordinary import finds the source.
The pack also has the paths of those of Python's own modules that are shared libraries.
"""

from __future__ import annotations

import sys
from _frozen_importlib import ModuleSpec
from marshal import loads
from posix import O_NONBLOCK, O_RDONLY, close, fstat, open, pread, stat  # noqa: A004  # as in `os`

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, ModuleType
    from typing import Any, TypeAlias

    # A module's name, whether it is a package, its source file, the time and size of that, and
    # its code.
    Item: TypeAlias = tuple[str, bool, str, int, int, CodeType]
    Span: TypeAlias = tuple[int, int]  # where a group begins, from the end, and how long it is

_INIT = len("/__init__.py")
_Module = type(sys)


class Pack:
    """The finder and loader of the modules in a pack."""

    def __init__(
        self,
        path: str,
        sign: tuple[int, ...],
        spans: Mapping[str, Span],
        libraries: Mapping[str, str],
    ) -> None:
        self._path = path
        self._sign = sign  # of the very file that the spans are about
        self._spans = spans  # by the names of modules
        self._libraries = libraries  # the files of Python's own modules, by their names

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Run the group of a module; None: the ordinary import finds it."""
        span = self._spans.get(name)
        if span is None:
            return self._library(name)
        # Only once: if it fails, the ordinary import finds the modules.
        self._spans = {name: other for name, other in self._spans.items() if other != span}
        items = self._read(span)
        if items is None or not run(items, self) or name not in sys.modules:
            return None
        return sys.modules[name].__spec__

    def _library(self, name: str) -> ModuleSpec | None:
        """Return the spec of a shared library, if this Python would find it there too."""
        file = self._libraries.get(name, "")
        if file.rpartition("/")[0] not in sys.path or not _is_there(file):
            return None
        from _frozen_importlib_external import ExtensionFileLoader

        return ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module that was already run."""
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module was already run."""

    def _read(self, span: Span) -> Sequence[Item] | None:
        """Return a group; None if the pack is gone or was replaced."""
        try:
            descriptor = open(self._path, O_RDONLY | O_NONBLOCK)
            try:
                if sign_of(fstat(descriptor)) != self._sign:
                    return None
                content = pread(descriptor, span[1], self._sign[1] - span[0])
            finally:
                close(descriptor)
            items: Sequence[Item] = loads(content)  # noqa: S302  # written by us, as the launcher
        except (OSError, EOFError, ValueError, TypeError):
            return None
        return items


def begin(
    path: str,
    found: Any,
    items: Sequence[Item],
    spans: Mapping[str, Span],
    libraries: Mapping[str, str],
) -> None:
    """Run the first group of the pack, and import further modules from it."""
    pack = Pack(path, sign_of(found), spans, libraries)
    sys.meta_path.insert(0, pack)
    run(items, pack)


def _is_there(file: str) -> bool:
    try:
        stat(file)
    except OSError:
        return False
    return True


def sign_of(found: Any) -> tuple[int, ...]:
    """Return what identifies a file, apart from one that replaced it."""
    return found.st_ino, found.st_size, found.st_mtime_ns


def run(items: Sequence[Item], loader: Any) -> bool:
    """Run modules in their order, except loaded ones; return True if all are as packed."""
    if not are_unchanged(items):
        return False
    modules = sys.modules
    for name, is_package, file, _, _, code in items:
        if name in modules:
            continue
        parent, _, own = name.rpartition(".")
        if parent and parent not in modules:
            __import__(parent)
        module = modules[name] = _Module(name)
        space = module.__dict__
        space["__file__"] = file
        space["__package__"] = name if is_package else parent
        spec = ModuleSpec(name, loader, origin=file, is_package=is_package)
        # Read at every import of the module: without it, Python raises an error each time.
        spec._initializing = False  # type: ignore[attr-defined]  # noqa: SLF001
        space["__spec__"] = spec
        if is_package:
            space["__path__"] = [file[:-_INIT]]
        try:
            exec(code, space)  # noqa: S102  # our own, as the launcher is
        except BaseException as error:
            del modules[name]
            if isinstance(error, Exception):  # the ordinary import will raise it again
                return False
            raise  # such as a timeout
        if parent:
            setattr(modules[parent], own, module)
    return True


def are_unchanged(items: Sequence[Item]) -> bool:
    """Return True if every source file has the time and size that it had when it was packed."""
    try:
        for _, _, file, time, size, _ in items:
            found = stat(file)
            if found.st_mtime_ns != time or found.st_size != size:
                return False
    except OSError:
        return False
    return True
