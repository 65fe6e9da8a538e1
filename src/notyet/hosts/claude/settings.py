"""Claude Code's settings: also those of the repository's root and of the administrator."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from notyet.config.find import root_of
from notyet.config.readers import read_file
from notyet.git.worktrees import main_worktree
from notyet.hosts.claude import HOST
from notyet.install import settings
from notyet.install.settings import SettingsFile, distinct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.install.settings import Registration

MANAGED = HOST.managed


class Settings(settings.Settings):
    """Claude Code reads a project's settings where it is started, and nowhere above.

    Newer versions also find the local settings of the repository and of its main work tree.
    """

    def files(self, cwd: str, environ: Mapping[str, str]) -> list[SettingsFile]:
        """Return every settings file that Claude Code reads in a folder; they add up."""
        found = super().files(cwd, environ)
        here = os.path.realpath(cwd)
        for root in filter(None, (root_of(here), main_worktree(here))):
            path = os.path.join(root, self.host.settings["local"])
            found.append(SettingsFile(scope="local", path=path))
        names = ["managed-settings.json"]
        try:
            more = sorted(os.listdir(os.path.join(MANAGED, "managed-settings.d")))
        except OSError:
            more = []
        names += [
            os.path.join("managed-settings.d", name)
            for name in more
            if name.endswith(".json") and not name.startswith(".")
        ]
        found += [SettingsFile(scope="managed", path=os.path.join(MANAGED, name)) for name in names]
        return distinct(found)

    def running(self, cwd: str, environ: Mapping[str, str]) -> list[Registration]:
        """Return our entries that Claude Code runs; an organisation may allow only plugins' hooks.

        That a file says so is enough: then both hooks run, and the stop counts once all the same.
        """
        found = super().running(cwd, environ)
        managed = [one.path for one in self.files(cwd, environ) if one.scope == "managed"]
        texts = [read_file(path)[0] or "" for path in managed if os.path.isfile(path)]
        if any("strictPluginOnlyCustomization" in text for text in texts):
            return [one for one in found if one.file.scope == "managed"]
        return found
