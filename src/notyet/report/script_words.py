"""Which programs a script of a shell certainly starts, as far as that can be told without one."""

from __future__ import annotations

import re

from notyet.dialects.shell_words import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# They are part of every shell, and make no program that a later command could start.
_BUILT_IN = frozenset((
    ":", "cd", "echo", "exit", "export", "false", "printf", "pwd", "set", "shift", "trap", "true",
    "ulimit", "umask", "unset", "wait",
))  # fmt: skip
# What follows may depend on them: they look, decide, define or take in something.
_UNSURE = frozenset((
    ".", "[", "[[", "alias", "break", "builtin", "case", "command", "continue", "declare", "do",
    "done", "elif", "else", "esac", "eval", "exec", "fi", "for", "function", "hash", "if", "in",
    "let", "local", "read", "readonly", "return", "select", "shopt", "source", "test", "then",
    "time", "type", "typeset", "unalias", "until", "which", "while",
))  # fmt: skip
_BRINGS = frozenset(("add", "ci", "install", "sync"))  # words of programs that bring others
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_PLAIN = re.compile(r"[A-Za-z0-9_./~+@%-]+")
# Groups, functions and expansions; another way if something fails; another PATH.
_NOT_SIMPLE = re.compile(r"[{}()`]|\|\||\bPATH\b")


def programs_in(script: str) -> Iterator[str]:
    """Yield the programs of a simple script, up to the first command that is not understood.

    A program by its path counts only before any other, which may have made it or moved away.
    """
    if _NOT_SIMPLE.search(script):
        return
    is_first = True
    for words, _ in commands(script):
        rest = _without_assignments(words)
        if not rest:
            continue
        word = rest[0]
        if word in _UNSURE or not _PLAIN.fullmatch(word):
            return
        if word not in _BUILT_IN and (is_first or "/" not in word):
            yield word
        if not _BRINGS.isdisjoint(rest):
            return
        is_first = is_first and word in _BUILT_IN and word != "cd"


def _without_assignments(words: list[str]) -> list[str]:
    """Return a command from the word on that names what is started."""
    for at, word in enumerate(words):
        if word != "!" and not _ASSIGNMENT.match(word):
            return words[at:]
    return []
