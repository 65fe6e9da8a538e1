"""Modules out of the pack, as those who import them see it."""

import marshal
import os
import sys
from importlib import import_module

import pytest

from notyet.install import pack_loader as packed


class World:
    """Some modules in files and in a pack of two groups, which may be imported."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.path = str(folder / "pack")
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
        self.groups = ({}, {})

    def add(self, group, name, source):
        """Write a module, and have it packed as it is."""
        is_package = name.endswith(".__init__")
        file = self.folder / (name.replace(".", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        found = file.stat()
        name = name.removesuffix(".__init__")
        code = compile(f"{source}\nPACKED = True", str(file), "exec")
        item = (name, is_package, str(file), found.st_mtime_ns, found.st_size, code)
        self.groups[group][name] = item
        return file

    def begin(self, libraries=()):
        """Write the pack, and begin with its first group."""
        first, second = self.groups
        content = marshal.dumps(list(second.values()))
        spans = dict.fromkeys(second, (len(content), len(content)))
        with open(self.path, "wb") as file:
            file.write(b"something before" + content)
        packed.begin(self.path, os.stat(self.path), list(first.values()), spans, dict(libraries))


@pytest.fixture
def world(tmp_path, monkeypatch):
    before = set(sys.modules)
    yield World(tmp_path, monkeypatch)
    for name in set(sys.modules) - before:
        del sys.modules[name]


def is_packed(name):
    return hasattr(import_module(name), "PACKED")


def two_groups(world):
    world.add(0, "pk.__init__", "x = 1")
    world.add(0, "pk.door", "from pk import x as y")
    world.add(1, "pk.more.__init__", "")
    world.add(1, "pk.more.a", "from pk.door import y")
    return world.add(1, "pk.more.b", "from pk.more import a\nz = a.y + 1")


def test_the_first_group_is_run_at_once_and_another_with_its_first_import(world):
    two_groups(world)
    world.begin()
    assert sys.modules["pk.door"].y == 1
    assert sys.modules["pk"].door is sys.modules["pk.door"]
    assert "pk.more.b" not in sys.modules
    from pk.more import b

    assert b.z == 2
    assert is_packed("pk.more.a")
    assert b.__file__ == str(world.folder / "pk" / "more" / "b.py")
    assert (b.__name__, b.__package__) == ("pk.more.b", "pk.more")
    assert sys.modules["pk.more"].__path__ == [str(world.folder / "pk" / "more")]


def test_what_is_in_no_group_is_imported_in_the_usual_way(world):
    two_groups(world)
    (world.folder / "pk" / "other.py").write_text("x = 3")
    world.begin()
    assert not is_packed("pk.other")
    with pytest.raises(ModuleNotFoundError):
        import_module("pk.none")


@pytest.mark.parametrize("change", ["x = 3", "x = 4 + 5", None])
def test_a_group_with_a_changed_source_is_left_alone(world, change):
    source = two_groups(world)
    world.begin()
    if change is None:
        source.unlink()
        with pytest.raises(ModuleNotFoundError):
            import_module("pk.more.b")
    else:
        source.write_text(change)
        os.utime(source, ns=(1, 1))
        assert import_module("pk.more.b").x
    assert not is_packed("pk.more.a")
    assert is_packed("pk.door")


@pytest.mark.parametrize("what", ["gone", "replaced", "damaged"])
def test_a_pack_that_is_another_one_by_now_is_left_alone(world, what):
    two_groups(world)
    world.begin()
    found = os.stat(world.path)
    if what == "gone":
        os.unlink(world.path)
    elif what == "replaced":
        os.rename(world.path, f"{world.path}.old")
        with open(world.path, "wb") as file:
            file.write(b"x" * found.st_size)
    else:
        with open(world.path, "r+b") as file:
            file.write(b"\0" * found.st_size)
            file.truncate(found.st_size)
        os.utime(world.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert not is_packed("pk.more.b")


def test_a_module_that_fails_fails_for_its_importer_only(world):
    two_groups(world)
    world.add(1, "pk.more.c", "import pk.not_there")
    world.add(1, "pk.more.d", "")
    world.begin()
    assert is_packed("pk.more.b")
    with pytest.raises(ModuleNotFoundError, match=r"pk\.not_there"):
        import_module("pk.more.c")
    assert not is_packed("pk.more.d")


def test_what_ends_the_process_is_not_kept_and_leaves_no_half_of_a_module(world):
    two_groups(world)
    world.add(1, "pk.more.c", "raise KeyboardInterrupt")
    world.begin()
    with pytest.raises(KeyboardInterrupt):
        import_module("pk.more.b")
    assert "pk.more.c" not in sys.modules
    assert is_packed("pk.more.b")  # which was run before


@pytest.mark.parametrize("where", ["on the path", "elsewhere", "gone"])
def test_a_library_is_taken_from_where_it_lies_if_this_python_looks_there(world, where):
    library = import_module("_queue").__spec__
    if not library.has_location:
        pytest.skip("it is no library of its own here")
    file = {"elsewhere": "/elsewhere/_queue.so", "gone": f"{world.folder}/_queue.so"}
    world.begin({"_queue": file.get(where, library.origin)})
    found = sys.meta_path[0].find_spec("_queue")
    assert (found and found.origin) == (library.origin if where == "on the path" else None)
    assert sys.meta_path[0].find_spec("json") is None  # which the usual import finds
