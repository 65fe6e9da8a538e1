"""The script for bash; it runs in 3.2, too."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.cli.completion_words import Completed, Value

_HEAD = """\
# bash completion for notyet; made by: notyet completion bash
_notyet_words() {
  local word quoted special
  case $cur in
    \\"*) special='["$`\\!]' ;;
    \\'*) special="[']" ;;
  esac
  while IFS= read -r word; do
    if [[ $special ]]; then  # in quotes: what can stand there as it is
      [[ $word == "${cur:1}"* && ! $word =~ $special ]] && COMPREPLY+=("$word")
      continue
    fi
    quoted=$(printf '%q' "$word")
    [[ $word == "$cur"* || $quoted == "$cur"* ]] && COMPREPLY+=("$quoted")
  done
}
_notyet_files() {
  local word
  compopt -o filenames 2>/dev/null
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen "$1" -- "$cur")
}
_notyet_asked() { _notyet_words < <(command notyet completion --values "$1" 2>/dev/null); }
_notyet_value() {
  case $1 in
    -) ;;
    +files) _notyet_files -f ;;
    +folders) _notyet_files -d ;;
    +*) _notyet_asked "${1#+}" ;;
    *) _notyet_words < <(printf '%s\\n' $1) ;;
  esac
}
_notyet() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} place=0 at word options= with= values=() repeats=
  COMPREPLY=()
  [[ $cur == = ]] && cur= && COMP_CWORD=$((COMP_CWORD + 1))
  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}
  if ((COMP_CWORD == 1)); then
"""
_TAIL = """\
    *) return ;;
  esac
  case " $with " in
    *" $prev "*)
      _notyet_value_of "$command" "$prev"
      return ;;
  esac
  if [[ $cur == -* ]]; then
    _notyet_words < <(printf '%s\\n' $options)
    return
  fi
  for ((at = 2; at < COMP_CWORD; at++)); do
    word=${COMP_WORDS[at]}
    case " $with " in *" $word "*) at=$((at + 1)); continue ;; esac
    [[ $word == -* ]] || place=$((place + 1))
  done
  if ((place >= ${#values[@]} && ${#values[@]})) && [[ $repeats ]]; then
    place=$((${#values[@]} - 1))
  fi
  _notyet_value "${values[place]:--}"
}
complete -F _notyet notyet
"""


def script(commands: Sequence[Completed]) -> str:
    """Return the script."""
    names = " ".join(command.name for command in commands)
    lines = [f"    _notyet_words < <(printf '%s\\n' {names} --help --version)", "    return"]
    lines += ["  fi", "  case $command in"]
    for command in commands:
        flags = [flag for option in command.options for flag in option.flags]
        takes = [flag for option in command.options if option.value for flag in option.flags]
        places = " ".join(f"'{_word(value)}'" for value in command.places)
        repeats = "1" if command.repeats else ""
        lines += [
            f"    {command.name})",
            f"      options='{' '.join(flags)}' with='{' '.join(takes)}'",
            f"      values=({places}) repeats={repeats} ;;",
        ]
    return _values_of(commands) + _HEAD + "\n".join(lines) + "\n" + _TAIL


def _values_of(commands: Sequence[Completed]) -> str:
    lines = ["_notyet_value_of() {", '  case "$1 $2" in']
    for command in commands:
        for option in command.options:
            if option.value is not None:
                names = " | ".join(f"'{command.name} {flag}'" for flag in option.flags)
                lines.append(f"    {names}) _notyet_value '{_word(option.value)}' ;;")
    return "\n".join([*lines, "  esac", "}", ""])


def _word(value: Value) -> str:
    if value.words:
        return " ".join(value.words)
    return f"+{value.kind}" if value.kind else "-"
