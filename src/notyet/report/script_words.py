"""Which programs a script of a shell starts, as far as that can be told without a shell."""

from __future__ import annotations

import re

from notyet.dialects.shell_words import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BUILT_IN = frozenset((
    ".", ":", "[", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare",
    "dirs", "echo", "eval", "exec", "exit", "export", "false", "fg", "getopts", "hash", "help",
    "history", "jobs", "kill", "let", "local", "popd", "printf", "pushd", "pwd", "read",
    "readonly", "return", "set", "shift", "shopt", "source", "test", "times", "trap", "true",
    "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait",
))  # fmt: skip
# A command follows these.
_BEFORE = frozenset(("!", "do", "elif", "else", "if", "then", "time", "until", "while"))
_OTHER_WORDS = frozenset(
    ("case", "done", "esac", "fi", "for", "function", "in", "select", "[[", "]]")
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_DEFINED = re.compile(r"\b([A-Za-z_][A-Za-z0-9_-]*+)[ \t]*+\([ \t]*+\)")
_PLAIN = re.compile(r"[A-Za-z0-9_./~+@%-]+")
_LOOKS_ITSELF = re.compile(r"\b(?:command|type|hash|which|case|alias|source|eval)\b|(?:^|\s)\.\s")


def programs_in(script: str) -> Iterator[str]:
    """Yield the programs of a plain script; of one that looks for itself, or has cases, none."""
    if _LOOKS_ITSELF.search(script):
        return
    defined = set(_DEFINED.findall(script))
    has_moved = False
    for words, _ in commands(script):
        word = _first(words)
        if word == "cd":
            has_moved = True
        is_known = word in _BUILT_IN or word in _OTHER_WORDS or word in defined
        if is_known or not _PLAIN.fullmatch(word):
            continue
        if "/" not in word or not has_moved or word.startswith(("/", "~")):
            yield word


def _first(words: list[str]) -> str:
    """Return the word that names what is started; empty for none."""
    for word in words:
        if word not in _BEFORE and not _ASSIGNMENT.match(word):
            return word
    return ""
