"""The pack: which modules, in which order, and what is left of them."""

import marshal
import os
import subprocess
import sys

import pytest

from launching import laid
from notyet.install import pack as packing
from notyet.install.launcher import own_root
from notyet.install.pack import HEAD, Package, is_current

LEAN = '''"""What it is for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nowhere import Nothing


class Row:
    """A row."""

    name: Nothing

    def told(self, by: Nothing, *rest: int) -> Nothing:
        """Tell."""
        return 4
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make a package of these modules, of which one group consists."""

    def make(files, roots=("notyet.a",)):
        for name, content in (
            {"notyet/__init__.py": "", "notyet/install/pack_loader.py": ""} | files
        ).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        monkeypatch.setattr(packing, "GROUPS", {"only": roots})
        return Package(str(tmp_path))

    return make


def items(pack):
    """Return all that a pack holds, by the names of modules."""
    _, (first, spans, _) = marshal.loads(pack[HEAD:])  # noqa: S302  # our own
    groups = [first]
    for begin, length in sorted(set(spans.values()), reverse=True):
        groups.append(marshal.loads(pack[len(pack) - begin :][:length]))  # noqa: S302  # our own
    return {item[0]: item for group in groups for item in group}


def test_a_module_stands_behind_what_it_imports_and_its_packages(package):
    made = package(
        {
            "notyet/a.py": "import sys, time\nfrom notyet.x.y import z\nfrom notyet import b",
            "notyet/b.py": "try:\n    import notyet.c\nexcept ImportError:\n    pass",
            "notyet/c.py": "def f():\n    import notyet.lazily",
            "notyet/lazily.py": "",
            "notyet/time.py": "",
            "notyet/x/__init__.py": "",
            "notyet/x/y.py": "class A:\n    from notyet.x import w\nz = 1",
            "notyet/x/w.py": "",
        }
    )
    expected = "notyet notyet.x notyet.x.w notyet.x.y notyet.c notyet.b notyet.a"
    assert made.members() == {"only": tuple(expected.split())}
    assert made.members() == made.members()


def test_a_packed_module_has_nothing_that_running_it_does_not_need(package):
    pack = package({"notyet/a.py": LEAN}).packed(5)
    name, is_package, file, _, size, code = items(pack)["notyet.a"]
    assert (name, is_package, size) == ("notyet.a", False, len(LEAN))
    assert file.endswith("/notyet/a.py") == code.co_filename.endswith("/notyet/a.py")
    space = {"__name__": "a"}
    exec(code, space)
    row = space["Row"]
    assert row.__annotations__ == {"name": "Nothing"}  # which records read
    assert (row.__doc__, row.told.__doc__, row.told.__annotations__) == (None, None, {})
    assert row().told("x") == 4
    assert code.co_linetable == b""


IMPORTS = """
from notyet.x import w, one as other, y as why
from notyet.x.y import z
from time import monotonic, sleep as rest
from os import path
from _signal import *
from os.path import join


def later():
    global late
    from notyet.x.y import z as late, u
    return u


class Inner:
    from notyet.x.y import u as own
"""


def test_names_that_are_imported_from_modules_are_what_they_are(package, monkeypatch, tmp_path):
    files = {
        "notyet/a.py": IMPORTS,
        "notyet/x/__init__.py": "one = 1",
        "notyet/x/w.py": "",
        "notyet/x/y.py": "z, u = 'z', 'u'",
    }
    code = items(package(files).packed(5))["notyet.a"][-1]
    others = {name: other for name, other in sys.modules.items() if name.split(".")[0] == "notyet"}
    for name in others:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    packed, plain = {"__name__": "a"}, {"__name__": "a"}
    try:
        exec(code, packed)
        exec(IMPORTS, plain)
        assert packed["later"]() == plain["later"]() == "u"
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "notyet"]:
            del sys.modules[name]
    assert packed["Inner"].own == plain["Inner"].own == "u"
    ours = {"later", "Inner", "__builtins__"}
    assert packed.keys() == plain.keys()
    assert {k: packed[k] for k in packed if k not in ours} == {
        k: plain[k] for k in plain if k not in ours
    }
    assert (packed["late"], packed["other"], packed["why"].__name__) == ("z", 1, "notyet.x.y")


def test_each_group_can_be_run_and_makes_the_same_modules_as_importing_does(tmp_path):
    laid(tmp_path)
    names = [name for names in Package(own_root()).members().values() for name in names]
    code = f"""
import sys
known = open({str(tmp_path / "launch.py")!r}).read().partition("try:\\n    from notyet")[0]
if sys.argv[1] == "pack":
    exec(known)
else:
    sys.path.append({own_root()!r})
for name in {names!r}:
    __import__(name)
for name in {names!r}:
    module = sys.modules[name]
    kept = {{n: v for n, v in vars(module).items() if n[:2] != "__" and n != "annotations"}}
    print(name, module.__file__, module.__package__, getattr(module, "__path__", ""))
    print(module.__spec__.name, module.__spec__.origin, module.__spec__.parent)
    print(sorted((n, type(v).__name__) for n, v in kept.items()))
    parent, _, own = name.rpartition(".")
    assert not parent or getattr(sys.modules[parent], own) is module
    assert (type(module.__spec__.loader).__name__ == "Pack") == (sys.argv[1] == "pack")
"""
    run = [
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", code, way],
            capture_output=True,
            text=True,
            timeout=60,
        )
        for way in ("pack", "files")
    ]
    assert run[0].stderr == run[1].stderr == ""
    assert run[0].stdout == run[1].stdout != ""


def test_a_pack_is_current_until_a_source_changes(package, tmp_path):
    made = package({"notyet/a.py": "x = 1"})
    path = tmp_path / "pack"

    def write(content):
        path.write_bytes(content)
        os.utime(path, ns=(10**9, 10**9))

    write(made.packed(10**9))
    assert is_current(str(path))
    write(made.packed(10**9 + 1))  # which says that it is of another time
    assert not is_current(str(path))
    write(made.packed(10**9)[:-1])
    assert not is_current(str(path))
    write(made.packed(10**9))
    assert is_current(str(path))
    (tmp_path / "notyet" / "a.py").write_text("x = 12")
    assert not is_current(str(path))
    assert not is_current(str(tmp_path / "none"))
