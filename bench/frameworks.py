"""What the adapters for frameworks cost: `python -m bench.frameworks [NAME ...]`.

Runs the `Trial` of tests/frameworks/test_NAME.py in the environment that `make test-frameworks` made,
in turns without notyet (`engine=None`) and with one trivial gate that passes, in one process. Its
`delay` is what each call of the scripted model takes.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".frameworks"
TESTS = ROOT / "tests" / "frameworks"
DELAYS = {0.0: 60, 0.05: 30}  # seconds for a call of the model: a floor, and a realistic one; runs
WARM_UP = 3
PATIENCE = 300.0


def main(names: list[str]) -> int:
    """Measure frameworks that are installed, one after the other; print a line for each way."""
    installed = sorted(path.parent.parent.name for path in VENVS.glob("*/bin/python"))
    known = [name for name in installed if (TESTS / f"test_{name}.py").exists()]
    if unknown := set(names) - set(known):
        print(f"not installed: {', '.join(sorted(unknown))}; run: make test-frameworks")
        return 2
    print(f"{'framework':<18} {'way':<9} {'model':>7} {'bare':>9} {'gated':>9} {'added':>8}  ratio")
    for name in names or known:
        command = [str(VENVS / name / "bin" / "python"), __file__, "--here", name]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=False, cwd=ROOT
        )
        if done.returncode:
            print(f"{name:<18} not measured: its trial failed, see above")
            continue
        for way, delay, bare, gated in json.loads(done.stdout.splitlines()[-1]):
            times = f"{bare * 1000:6.2f} ms {gated * 1000:6.2f} ms {(gated - bare) * 1000:5.2f} ms"
            print(f"{name:<18} {way:<9} {delay * 1000:4.0f} ms {times}  {gated / bare:.2f}")
    return 0


def measured(name: str) -> list[tuple[str, float, float, float]]:
    """Return for each way and delay of a trial the median of a bare run, and of a gated one."""
    trial = trial_of(name)
    rows = []
    for way in ("run", "run_sync"):
        for delay, rounds in DELAYS.items():
            if hasattr(trial, way):
                trial.delay = delay
                rows.append((way, delay, *medians(trial, way, rounds)))
    return rows


def trial_of(name: str) -> Any:
    """Return the trial of a framework's tests."""
    sys.path.insert(0, str(TESTS.parent))
    spec = importlib.util.spec_from_file_location(f"test_{name}", TESTS / f"test_{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Trial()


def medians(trial: Any, way: str, rounds: int) -> tuple[float, float]:
    """Run a trial in turns without and with a gate."""
    from notyet import Engine  # installed there

    engine = Engine([lambda event: None])
    taken: dict[Any, list[float]] = {None: [], engine: []}

    async def run_all() -> None:
        for number in range(WARM_UP + rounds):
            for each, seconds in taken.items():
                began = time.perf_counter()
                await trial.run(each, ["Done."])
                if number >= WARM_UP:
                    seconds.append(time.perf_counter() - began)

    if way == "run":
        asyncio.run(run_all())
    else:
        for number in range(WARM_UP + rounds):
            for each, seconds in taken.items():
                began = time.perf_counter()
                trial.run_sync(each, ["Done."])
                if number >= WARM_UP:
                    seconds.append(time.perf_counter() - began)
    return statistics.median(taken[None]), statistics.median(taken[engine])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        logging.disable()
        warnings.simplefilter("ignore")
        print(json.dumps(measured(sys.argv[2])))
    else:
        sys.exit(main(sys.argv[1:]))
