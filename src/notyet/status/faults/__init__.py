"""What silently keeps a host from asking us, found and explained: one judge for each host."""

from __future__ import annotations
