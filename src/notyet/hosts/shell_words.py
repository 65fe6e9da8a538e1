"""Parts a shell's script into simple commands and words, as far as that goes without a shell."""

from __future__ import annotations

_BREAKS = ";&|(){}\n"
_BLANKS = " \t\r"
_REDIRECTIONS = "<>"


def commands(script: str) -> list[tuple[list[str], list[str]]]:
    """Return every simple command: its words without quotes, and what it redirects to or from.

    Of `2>&1` that is `&1`, and of `<(...)` nothing: what stands in it is a command of its own.

    A script with a text in it (`<<`) has no commands here: that text would be taken for some.
    """
    found: list[tuple[list[str], list[str]]] = []
    words: list[str] = []
    files: list[str] = []
    at = 0
    while at < len(script):
        character = script[at]
        if character in _BREAKS:
            found.append((words, files))
            words, files = [], []
            at += 1
        elif character in _BLANKS or script.startswith("\\\n", at):
            at += 1 if character != "\\" else 2
        elif character == "#":  # a comment, up to the end of the line
            at = _find(script, "\n", at)
        elif script.startswith("<<", at):
            return []
        elif character in _REDIRECTIONS:
            file, at = _redirection(script, at)
            files += [file] if file else []
        else:
            word, end = _word(script, at)
            is_descriptor = script[at:end].isdecimal() and script[end : end + 1] in ("<", ">")
            if not is_descriptor:
                words.append(word)
            at = end
    return [*found, (words, files)]


def _redirection(script: str, at: int) -> tuple[str, int]:
    """Return the file of a redirection, and where it ends."""
    begin = at
    while script[at : at + 1] in tuple("<>&|"):
        at += 1
    sign = "&" if "&" in script[begin:at] else ""
    while script[at : at + 1] in tuple(_BLANKS):
        at += 1
    word, end = _word(script, at)
    return (sign + word if word else ""), end


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
