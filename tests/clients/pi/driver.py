"""Pi in a scratch home: how it is set up, run, and asked what it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from clients.model.chat import Chat
from clients.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.runs import Ran


class Pi(World):
    """What is Pi's own way of doing things."""

    HOST: ClassVar[str] = "pi"
    WIRE = Chat()
    RESUME = ("--continue",)
    SHOWS_NOTES = True
    ITS_FILES: ClassVar[tuple[str, ...]] = ("*",)

    @property
    def models(self) -> Path:
        """Its settings of models."""
        return self.home / ".pi" / "agent" / "models.json"

    def settle_in(self) -> None:
        """Let there be the folder of its settings."""
        self.models.parent.mkdir(parents=True)
        self.models.write_text('{"providers": {}}')

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return the command line; where the model is, its settings say."""
        self.add_model(url)
        model_options = ("--provider", self.provider(url), "--model", "fake-model")
        return [str(self.program), "-p", *model_options, *args, prompt]

    def add_model(self, url: str) -> None:
        """Add a model to its settings."""
        model = {"baseUrl": f"{url}/v1", "apiKey": "dummy", "api": "openai-completions"}
        providers = {self.provider(url): {**model, "models": [{"id": "fake-model"}]}}
        known = json.loads(self.models.read_text())["providers"]
        self.models.write_text(json.dumps({"providers": known | providers}))

    def point_at(self, url: str) -> None:
        self.add_model(url)
        default = {"defaultProvider": self.provider(url), "defaultModel": "fake-model"}
        self.models.with_name("settings.json").write_text(json.dumps(default))

    def provider(self, url: str) -> str:
        """Return a name for each model: two may be asked at the same time."""
        return f"fake{url.rpartition(':')[2]}"

    def variables(self, url: str) -> dict[str, str]:
        """Keep it off the network."""
        return {"PI_OFFLINE": "1"}

    def answer(self, out: str) -> str:
        """Return all of stdout: only the last answer is printed."""
        return out.strip()

    def notes(self, ran: Ran) -> list[str]:
        """Return what the extension wrote for the user."""
        return [line for line in ran.err.splitlines() if line.startswith("notyet: ")]
