"""Records the real sessions in the how-to pages anew: `make record`, or of some: `goose droid`.

It needs the real programs, as `make test-clients` does; that one compares what is written there.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from clients.fetching import Wrong  # the tests are no package that is installed
from clients.programs import Program, path_of  # as above
from clients.recording import PAGES  # as above


def main() -> int:
    """Record the session of each page, or of those that are named, whose program can be had."""
    missing = 0
    for page in [PAGES[name] for name in sys.argv[1:] or PAGES]:
        program = _found(page.program)
        if isinstance(program, str):
            print(program)
            missing += 1
            continue
        page.write(page.recorded(program))
        print(f"recorded: {page.path.name}")
    return 1 if missing else 0


def _found(program: Program) -> Path | str:
    try:
        return path_of(program)
    except Wrong as why:
        return str(why)


if __name__ == "__main__":
    sys.exit(main())
