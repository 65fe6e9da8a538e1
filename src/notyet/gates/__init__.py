"""Gates beyond a command: what people can write in a `notyet.toml` instead of, or besides, `run`.

Each kind of gate is one module with a function `check(question) -> Answer`. It runs in a process of
its own, which a stop starts like any command (`child`), so these modules are ordinary Python and
cost nothing where no such gate is configured.
"""
