"""`python -m notyet`."""

from notyet.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
