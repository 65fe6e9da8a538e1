"""Running checks: the only place where anybody waits for a gate."""

from __future__ import annotations
