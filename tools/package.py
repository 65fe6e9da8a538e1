"""`make package`: build the wheel and the sdist twice, compare them, and check them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "package-venv" / "bin"
DIST = ROOT / "build" / "dist"


def main() -> int:
    """Build, compare and check; exit 1 if something is wrong."""
    shutil.rmtree(DIST, ignore_errors=True)
    build(ROOT, DIST)
    with tempfile.TemporaryDirectory() as scratch:
        # Elsewhere, from other files with other times: none of that may be in the result.
        copy, again = Path(scratch) / "notyet", Path(scratch) / "dist"
        copy_tracked(copy)
        build(copy, again)
        if differing := [file.name for file in files(DIST) if not same(file, again)]:
            print(f"not the same when built again: {', '.join(differing)}")
            return 1
    wheels = [file for file in files(DIST) if file.suffix == ".whl"]
    for line in (
        ("twine", "check", "--strict", *files(DIST)),
        ("check-wheel-contents", *wheels),
    ):
        if subprocess.run([BIN / line[0], *line[1:]], check=False).returncode:
            return 1
    for file in files(DIST):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes, the same built twice")
    return 0


def build(source: Path, into: Path) -> None:
    """Build a wheel and an sdist, with the pinned backend."""
    line = [BIN / "python", "-m", "build", "--no-isolation", "--outdir", into, source]
    environ = os.environ | {"SOURCE_DATE_EPOCH": epoch()}
    done = subprocess.run(
        line, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stdout)


def epoch() -> str:
    """Return the time of the last commit: the time of all files in a package."""
    line = ["git", "log", "-1", "--format=%ct"]
    return subprocess.check_output(line, cwd=ROOT, text=True).strip()


def copy_tracked(into: Path) -> None:
    """Copy the files that git tracks, as they are now."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, into / name)
            (into / name).chmod((ROOT / name).stat().st_mode & 0o777)


def files(folder: Path) -> list[Path]:
    """Return the files of a folder, in order."""
    return sorted(folder.iterdir())


def same(file: Path, folder: Path) -> bool:
    """Return True if a folder has the very same file."""
    other = folder / file.name
    return other.is_file() and other.read_bytes() == file.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
