"""What the files of an agent look like: here, and on other machines."""

from __future__ import annotations
