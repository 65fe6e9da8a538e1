"""Split a shell script into its simple commands, as far as that goes without a shell."""

from __future__ import annotations

import shlex

_OPERATORS = ";&|()<>\n"


def commands(script: str) -> list[list[str]]:
    """Return the words of each simple command, unquoted and without redirections.

    Return an empty list for a script that has a here-document or an open quote.
    """
    lexer = shlex.shlex(script, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    found: list[list[str]] = [[]]
    is_comment = is_file = False
    for token in tokens:
        if is_comment and "\n" not in token:
            continue
        is_comment = token.startswith("#")
        if "<<" in token:
            return []
        if is_file or is_comment:
            is_file = False
        elif token.strip(_OPERATORS):
            found[-1].append(token)
        elif "<" in token or ">" in token:
            is_file = True
            if found[-1] and found[-1][-1].isdecimal():  # the descriptor of `2>file`
                found[-1].pop()
        else:
            found.append([])
    return found
