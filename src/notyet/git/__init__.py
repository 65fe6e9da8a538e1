"""What the files of an agent look like."""

from __future__ import annotations
