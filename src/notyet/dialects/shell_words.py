"""Parts a shell's script into simple commands and words, as far as that goes without a shell."""

from __future__ import annotations

_BREAKS = ";&|(){}\n"
_BLANKS = " \t\r"
_REDIRECTIONS = "<>"


def commands(script: str) -> list[list[str]]:
    """Return the words of every simple command, without quotes and without redirections.

    A script with a text in it (`<<`) has no commands here: that text would be taken for some.
    """
    found: list[list[str]] = []
    words: list[str] = []
    at = 0
    while at < len(script):
        character = script[at]
        if character in _BREAKS:
            found.append(words)
            words = []
            at += 1
        elif character in _BLANKS or script.startswith("\\\n", at):
            at += 1 if character != "\\" else 2
        elif character == "#":  # a comment, up to the end of the line
            at = _find(script, "\n", at)
        elif script.startswith("<<", at):
            return []
        elif character in _REDIRECTIONS:
            at = _after_redirection(script, at)
        else:
            word, end = _word(script, at)
            is_descriptor = script[at:end].isdecimal() and script[end : end + 1] in ("<", ">")
            if not is_descriptor:
                words.append(word)
            at = end
    return [*found, words]


def _after_redirection(script: str, at: int) -> int:
    """Return where the file of a redirection ends; that of `<(...)` is a command."""
    while script[at : at + 1] in tuple("<>&|"):
        at += 1
    while script[at : at + 1] in tuple(_BLANKS):
        at += 1
    return _word(script, at)[1]


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
        elif character in _BREAKS or character in _BLANKS or character in _REDIRECTIONS:
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
