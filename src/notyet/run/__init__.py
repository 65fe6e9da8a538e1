"""Run gates: the only package that waits for one."""

from __future__ import annotations
