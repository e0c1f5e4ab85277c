"""Importing this module raises one line with the command to run if torch is missing.

Packages that need torch import it first.
"""

from __future__ import annotations

from equipoise.core.errors import require

__all__: list[str] = []

require("torch", extra="torch", purpose="work with networks")
