"""Pin a program of tests/clients with all that it needs, as requirements/clients/NAME.

    pin_client.py npm qwen @qwen-code/qwen-code@0.24.4
    pin_client.py pip vibe mistral-vibe==3.0.3
    pin_client.py tools package twine==7.0.0    # requirements/package.txt

npm's lock has no addresses of a registry in it, only digests. Packages of Python are pinned for
each Python of this machine that is new enough.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from clients.fetching import LOCKS, found_pythons  # the tests are no package that is installed


def main(kind: str, name: str, *packages: str) -> int:
    """Write the lock."""
    with tempfile.TemporaryDirectory() as scratch:
        if kind == "npm":
            pin_npm(name, packages, Path(scratch))
            return 0
        pythons, file = found_pythons(dict(os.environ)), LOCKS / f"{name}.txt"
        if kind == "tools":  # which run in our own Python, too
            pythons, file = [sys.executable, *pythons], LOCKS.parent / f"{name}.txt"
        pin_pip(file, pythons, packages, Path(scratch))
    return 0


def pin_npm(name: str, packages: tuple[str, ...], scratch: Path) -> None:
    """Let npm write package.json and package-lock.json."""
    wanted = dict(package.rsplit("@", 1) for package in packages)
    (scratch / "package.json").write_text(
        json.dumps({"private": True, "dependencies": wanted}, indent=2) + "\n"
    )
    own = ("--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(scratch / "cache"))
    line = ["npm", "install", "--package-lock-only", "--omit-lockfile-registry-resolved", *own]
    subprocess.run(line, cwd=scratch, check=True)
    folder = LOCKS / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(scratch / file, folder)
    # npm names the project after its folder.
    lock = json.loads((folder / "package-lock.json").read_text())
    lock["name"] = name
    for package in lock[
        "packages"
    ].values():  # npm ci refuses a lock without what it could not find
        optional = package.get("optionalDependencies", {})
        for missing in [one for one in optional if f"node_modules/{one}" not in lock["packages"]]:
            del optional[missing]
    (folder / "package-lock.json").write_text(json.dumps(lock, indent=2) + "\n")
    print(f"{folder}: {len(lock['packages']) - 1} packages")


def pin_pip(file: Path, pythons: list[str], packages: tuple[str, ...], scratch: Path) -> None:
    """Ask the pip of each Python what it would install."""
    digests: dict[str, set[str]] = {}
    for number, python in enumerate(pythons):
        own = scratch / str(number)
        subprocess.run([python, "-m", "venv", str(own)], check=True)
        report = own / "report.json"
        options = ("--dry-run", "--only-binary", ":all:", "--quiet", "--report", str(report))
        line = [str(own / "bin" / "python"), "-m", "pip", "install", *options, *packages]
        subprocess.run(line, check=True)
        for item in json.loads(report.read_text())["install"]:
            pinned = f"{item['metadata']['name']}=={item['metadata']['version']}"
            digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
            digests.setdefault(pinned, set()).add(digest)
    lines = [f"# What {' '.join(packages)} needs (tools/pin_client.py).\n"]
    for pinned, known in sorted(digests.items()):
        hashes = [f"    --hash=sha256:{digest}" for digest in sorted(known)]
        lines.append(" \\\n".join([pinned, *hashes]) + "\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(lines))
    print(f"{file}: {len(digests)} packages")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
