"""The command line: one file per command."""

import sys

if sys.platform == "win32":
    sys.exit("notyet does not run on Windows itself; install it in WSL, beside your agent")
