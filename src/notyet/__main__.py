"""`python -m notyet`."""

import sys

if not __package__:  # run by its path, as installed hooks do: `python -I -S .../notyet/__main__.py`
    sys.path.insert(0, __file__.rpartition("/")[0].rpartition("/")[0])

if __name__ == "__main__":
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        import gc

        gc.disable()  # the process lives for a moment; what it holds is bounded
        from notyet.hook.main import serve

        code = serve(sys.argv[2:])
        if not __package__:
            from posix import _exit

            _exit(code)  # everything is written; taking the interpreter apart would cost more
        raise SystemExit(code)

    from notyet.cli.main import main

    raise SystemExit(main())
