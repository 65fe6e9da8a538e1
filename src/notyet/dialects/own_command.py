"""Recognises notyet's own hook among commands, by what a shell would run and not by its letters.

`echo 'run notyet hook'` is somebody else's. What is not understood is nobody's: a command that
is wrongly taken for ours would be left out, or even removed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Words = Sequence[str]

_VERBS = ("hook", "conclaude")
_BREAKS = ";&|(){}\n"
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "ash")
# They run a program that stands among their arguments.
_RUNNERS = frozenset(
    {"exec", "command", "env", "nohup", "nice", "ionice", "time", "timeout", "setsid", "stdbuf"}
    | {"sudo", "!", "if", "then", "else", "elif", "do", "while", "until", "uv", "uvx", "pipx"}
    | {"poetry", "pdm", "hatch", "rye", "pixi", "mise", "conda", "micromamba", "direnv", "nix"}
)
_BETWEEN = ("run", "tool", "exec", "x")  # may stand between a runner and the program
_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")  # options of Python that take a word
_PROGRAMS = ("python", "pypy", "__main__.py")
_MODULE = "/notyet/__main__.py"
_DIRECT = frozenset({*_SHELLS, "eval", "notyet"})
_DIRECT_STARTS = ("$(", "`")
_DEEPEST = 4  # shells inside shells


def ours_in(command: str) -> list[str] | None:
    """Return the words of our own call in a shell's command, from its program on; None: not ours.

    The program is `notyet`, or a Python with everything up to us.
    """
    return _in_script(command, 0)


def ours_of(words: Words) -> list[str] | None:
    """Do the same for a program with its arguments, which no shell reads."""
    return _in_words(words, 0)


def at_verb(words: Words) -> int:
    """Return where `hook` or `conclaude` stands in the words of our own call."""
    return 1 if _is_program(words[0]) else _after_python(words)


def _in_script(script: str, depth: int) -> list[str] | None:
    if depth > _DEEPEST or "notyet" not in script:
        return None
    for words in _commands(script):
        found = _in_words(words, depth)
        if found:
            return found
    return None


def _in_words(words: Words, depth: int) -> list[str] | None:
    """Look for our call in one command, behind assignments and programs that run others."""
    is_after_option = is_after_runner = False
    for at, word in enumerate(words):
        name = word.rsplit("/", 1)[-1]
        if name in _DIRECT or word.startswith(_DIRECT_STARTS) or name.startswith(_PROGRAMS):
            return _direct(words[at:], name, depth)
        is_option = word.startswith("-")
        may_pass = is_option or is_after_option or word[:1].isdigit() or word in _BETWEEN
        if name in _RUNNERS:
            is_after_runner = True
        elif not _is_assignment(word) and not (is_after_runner and may_pass):
            return None
        is_after_option = is_option
    return None


def _direct(words: Words, name: str, depth: int) -> list[str] | None:
    """Look for our call in a command that begins with us, a Python or a shell."""
    if name in _SHELLS:
        return _in_shell(words[1:], depth)
    if name == "eval":
        return _in_script(" ".join(words[1:]), depth + 1)
    verb = at_verb(words)
    return list(words) if verb < len(words) and words[verb] in _VERBS else None


def _in_shell(words: Words, depth: int) -> list[str] | None:
    """Look into the script that a shell is given after `-c`."""
    is_script = False
    for word in words:
        if word.startswith("-") and word != "-":
            is_script = is_script or (not word.startswith("--") and "c" in word)
        elif is_script:
            return _in_script(word, depth + 1)
        else:
            return None  # a file
    return None


def _is_program(word: str) -> bool:
    if word.startswith(_DIRECT_STARTS):
        return word[:-1].split()[-1:] == ["notyet"]  # $(which notyet)
    return word.rsplit("/", 1)[-1] == "notyet" or word.endswith(_MODULE)


def _after_python(words: Words) -> int:
    """Return where the words after `-m notyet` or `.../notyet/__main__.py` begin; else the end."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] in _WITH_VALUE:
            at += 1
        elif words[at].endswith("m") and not words[at].startswith("--"):  # -m, -Im
            return at + 2 if tuple(words[at + 1 : at + 2]) == ("notyet",) else len(words)
        at += 1
    is_us = at < len(words) and words[at].endswith((_MODULE, "/bin/notyet"))
    return at + 1 if is_us else len(words)


def _is_assignment(word: str) -> bool:
    name, sign, _ = word.partition("=")
    return bool(sign) and name.isidentifier()


def _commands(script: str) -> Iterator[list[str]]:
    """Yield the words of every simple command of a script, without their quotes."""
    words: list[str] = []
    at = 0
    while at < len(script):
        character = script[at]
        if character in _BREAKS:
            yield words
            words = []
            at += 1
        elif character in " \t\r" or script.startswith("\\\n", at):
            at += 1 if character != "\\" else 2
        elif character == "#":  # a comment, up to the end of the line
            at = _find(script, "\n", at)
        else:
            word, at = _word(script, at)
            words.append(word)
    yield words


def _word(script: str, at: int) -> tuple[str, int]:
    """Return the word that begins here, without its quotes, and where it ends."""
    parts: list[str] = []
    while at < len(script):
        character = script[at]
        if script.startswith("$(", at):
            end = _closed(script, at + 2)
            parts.append(script[at:end])
        elif character in "'\"`":
            end = _unquoted(script, at, parts)
        elif script.startswith("${", at):
            end = _find(script, "}", at) + 1
            parts.append(script[at:end])
        elif character in _BREAKS or character in " \t\r":
            break
        elif character == "\\":
            end = at + 2
            parts.append(script[at + 1 : end].removeprefix("\n"))
        else:
            end = at + 1
            parts.append(character)
        at = end
    return "".join(parts), min(at, len(script))


def _unquoted(script: str, at: int, parts: list[str]) -> int:
    """Add what stands in the quotes that begin here; return where they end."""
    quote = script[at]
    if quote != '"':
        end = _find(script, quote, at + 1)
        parts.append(script[at + 1 : end] if quote == "'" else script[at : end + 1])
        return end + 1
    at += 1
    while at < len(script) and script[at] != '"':
        if script[at] == "\\" and script[at + 1 : at + 2] in ('"', "\\", "$", "`", "\n"):
            at += 1
            parts.append(script[at : at + 1].removeprefix("\n"))
        else:
            parts.append(script[at])
        at += 1
    return at + 1


def _find(script: str, what: str, at: int) -> int:
    found = script.find(what, at)
    return len(script) if found < 0 else found


def _closed(script: str, at: int) -> int:
    """Return where the brackets end that were opened before this place."""
    depth = 1
    while at < len(script) and depth:
        depth += {"(": 1, ")": -1}.get(script[at], 0)
        at += 1
    return at
