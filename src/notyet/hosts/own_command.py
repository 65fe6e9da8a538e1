"""Recognises notyet's own hook among commands, by what a shell would run and not by its letters.

`echo 'run notyet hook'` is somebody else's. What is not understood is nobody's: a command that
is wrongly taken for ours would be left out, or even removed.
"""

from __future__ import annotations

from notyet.hosts.shell_words import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Words = Sequence[str]
    Call = list[str] | None  # the words of our own call; None: somebody else's command

_VERBS = ("hook", "conclaude")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "ash")
_KEYWORDS = ("if", "then", "else", "elif", "do", "while", "until", "!")
# They run a program that stands among their arguments.
_RUNNERS = frozenset(
    {"exec", "command", "env", "nohup", "nice", "ionice", "time", "timeout", "setsid", "stdbuf"}
    | {*_KEYWORDS, "sudo", "doas", "caffeinate", "busybox", "uv", "uvx", "pipx", "poetry", "pdm"}
    | {"hatch", "rye", "pixi", "mise", "conda", "micromamba", "direnv", "nix"}
)
_FETCHERS = ("uv", "uvx", "pipx")  # behind them a version may follow the name
_VERSIONS = "@=[<>~!"
_BETWEEN = ("run", "tool", "exec", "x")  # may stand between a runner and the program
_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")  # options of Python that take a word
_SHELLS_WITH_VALUE = ("--rcfile", "--init-file")  # besides -o and -O, also behind others: -euo
# Options of runners that take the next word, whatever it is: short ones as letters.
_VALUES = {
    "sudo": ("CDRTUghprtu", ("--user", "--group", "--host", "--prompt", "--chdir", "--chroot")),
    "doas": ("Cu", ()),
    "env": ("Cu", ("--unset", "--chdir")),
    "nice": ("n", ("--adjustment",)),
    "timeout": ("ks", ("--kill-after", "--signal")),
    "uv": ("", ("--directory", "--project", "--extra", "--group", "--env-file", "--cache-dir")),
}
_SPLIT = ("-S", "--split-string")  # of `env`: the next word is a whole command
_PROGRAMS = ("python", "pypy", "__main__.py")
_MODULE = "/notyet/__main__.py"
LAUNCHER = "launch.py"  # which `install` writes, for a Python to run
INSTALLATION = 12  # hexadecimal digits: the folder in ours that it lies in
_DIRECT = frozenset({*_SHELLS, "eval", "notyet", "py"})
_DIRECT_STARTS = ("$(", "`")
_LOOKUPS = (["which"], ["command", "-v"], ["type", "-p"], ["type", "-P"])
# Commands around ours that do nothing of their own.
_GLUE = frozenset(
    {"true", ":", "cd", "test", "[", "[[", "set", "export", "type", "which", "fi", "done"}
)
_NOWHERE = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "&-")  # to redirect to
_DEEPEST = 4  # shells inside shells


def ours_in(command: str) -> list[str] | None:
    """Return the words of our own call in a shell's command, from its program on; None: not ours.

    The program is `notyet`, or a Python with everything up to us.
    """
    return _first(_in_script(command, 0)) if "notyet" in command else None


def ours_of(words: Words) -> list[str] | None:
    """Do the same for a program with its arguments, which no shell reads."""
    return _first(_in_words(words, 0))


def is_only_hook(command: str) -> bool:
    """Tell whether a shell's command runs our hook and nothing else, but for harmless glue."""
    calls = list(_in_script(command, 0)) if "notyet" in command else []
    return bool(calls) and all(call and call[at_verb(call)] == "hook" for call in calls)


def at_verb(words: Words) -> int:
    """Return where `hook` or `conclaude` stands in the words of our own call."""
    return 1 if _is_program(words[0]) else _after_python(words)


def is_launcher(path: str) -> bool:
    """Tell whether a file is a launcher of ours, by its name and the folders that it lies in."""
    folder, _, name = path.rpartition("/")
    around, _, own = folder.rpartition("/")
    if len(own) == INSTALLATION and not own.strip("0123456789abcdef"):
        folder = around
    return name == LAUNCHER and folder.endswith("/notyet")


def _first(calls: Iterable[Call]) -> list[str] | None:
    return next((call for call in calls if call), None)


def _in_script(script: str, depth: int) -> Iterator[Call]:
    """Yield what a script runs, without the glue."""
    if depth > _DEEPEST:
        yield None
        return
    for words, files in commands(script):
        yield from _in_words(words, depth)
        if not all(_is_nowhere(file) for file in files):
            yield None  # it writes or reads a file of somebody


def _is_nowhere(file: str) -> bool:
    """Tell whether to redirect there touches no file: `/dev/null` and `&1` do not."""
    return file in _NOWHERE or (file.startswith("&") and file[1:].isdecimal())


def _in_words(words: Words, depth: int) -> Iterator[Call]:
    """Yield what one command runs; behind assignments and programs that run others."""
    is_after_option = is_fetched = False
    runner = ""
    for at, word in enumerate(words):
        if is_after_option and _takes_value(runner, words[at - 1]):
            is_after_option = False
            continue
        name = word.rsplit("/", 1)[-1]
        if is_fetched:
            name = _unversioned(name)
        if name in _DIRECT or word.startswith(_DIRECT_STARTS) or name.startswith(_PROGRAMS):
            own = name if is_fetched and name == "notyet" else word
            found = list(_direct([own, *words[at + 1 :]], name, depth))
            if _first(found) or not is_after_option:  # else it is the option's value
                yield from ([None] if _substitutes(words[:at]) else [])
                yield from found
                return
        if word in _SPLIT and runner:
            yield from _in_script(" ".join(words[at + 1 :]), depth + 1)
            return
        is_option = word.startswith("-")
        may_pass = is_option or is_after_option or word[:1].isdigit() or word in _BETWEEN
        if name in _RUNNERS and not _is_lookup(words[at : at + 2]):
            runner = name
            is_fetched = is_fetched or name in _FETCHERS
        elif not _is_assignment(word) and not (runner and may_pass):
            break
        is_after_option = is_option
    if not _is_glue(words):
        yield None


def _takes_value(runner: str, option: str) -> bool:
    """Tell whether an option of a runner takes the next word: `-u`, also behind others: `-nu`."""
    letters, names = _VALUES.get("uv" if runner == "uvx" else runner, ("", ()))
    if option.startswith("--"):
        return option in names
    taking = [at for at, letter in enumerate(option) if letter in letters]
    return taking[:1] == [len(option) - 1]


def _direct(words: Words, name: str, depth: int) -> Iterator[Call]:
    """Yield what a command runs that begins with us, a Python or a shell."""
    if name in _SHELLS:
        yield from _in_shell(words[1:], depth)
        return
    if name == "eval":
        yield from _in_script(" ".join(words[1:]), depth + 1)
        return
    verb = at_verb(words)
    is_ours = verb < len(words) and words[verb] in _VERBS
    yield list(words) if is_ours else None
    if is_ours and (_substitutes(words[1:]) or not _is_plain(words[0])):
        yield None


def _in_shell(words: Words, depth: int) -> Iterator[Call]:
    """Look into the script that a shell is given after `-c`."""
    is_script = is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith(("-", "+")) and word != "-":
            is_short = not word.startswith("--")
            is_script = is_script or (is_short and "c" in word)
            is_value = word in _SHELLS_WITH_VALUE or (is_short and word[-1] in "oO")
        elif is_script:
            yield from _in_script(word, depth + 1)
            return
        else:
            break  # a file
    yield None


def _is_glue(words: Words) -> bool:
    """Tell whether a command does nothing but look, go to a folder, or set variables."""
    if _substitutes(words):
        return False
    rest = [word for word in words if not _is_assignment(word)]
    while rest and rest[0] in _KEYWORDS:
        rest = rest[1:]
    is_end = rest in (["exit"], ["exit", "0"], ["exit", "$?"], ["exec"])
    return not rest or rest[0] in _GLUE or is_end or _is_lookup(rest)


def _is_lookup(words: Words) -> bool:
    """Tell whether this is `command -v`, which runs nothing."""
    option = "".join(words[1:2])
    return words[:1] == ["command"] and option.startswith("-") and "v" in option.lower()


def _substitutes(words: Words) -> bool:
    """Tell whether words have commands in them, whose output takes their place."""
    return any("$(" in word or "`" in word for word in words)


def _is_plain(word: str) -> bool:
    """Tell whether a program is named, or only looked up."""
    return not _substitutes([word]) or word.strip("$()`").split()[:-1] in _LOOKUPS


def _unversioned(name: str) -> str:
    for sign in _VERSIONS:
        name = name.partition(sign)[0]
    return name


def _is_program(word: str) -> bool:
    if word.rsplit("/", 1)[-1] == "notyet" or word.endswith(_MODULE):
        return True
    return word.startswith(_DIRECT_STARTS) and word[:-1].split()[-1:] == ["notyet"]  # $(which us)


def _after_python(words: Words) -> int:
    """Return where the words after `-m notyet` or a file of ours begin; else the end."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] in _WITH_VALUE:
            at += 1
        elif words[at].endswith("m") and not words[at].startswith("--"):  # -m, -Im
            return at + 2 if tuple(words[at + 1 : at + 2]) == ("notyet",) else len(words)
        at += 1
    is_us = at < len(words) and (
        words[at].endswith((_MODULE, "/bin/notyet")) or is_launcher(words[at])
    )
    return at + 1 if is_us else len(words)


def _is_assignment(word: str) -> bool:
    name, sign, _ = word.partition("=")
    return bool(sign) and name.isidentifier()
