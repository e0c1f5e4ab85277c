"""Whether this machine can compute with bfloat16 as its processor promises."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["WITHOUT_TILES", "why_no_bfloat16"]

#: What oneDNN, which multiplies for torch, may use at most where tiles are not to be trusted.
WITHOUT_TILES = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}

_PRODUCT = "import torch; ones = torch.ones(64, 64, dtype=torch.bfloat16); ones @ ones"


@cache
def why_no_bfloat16() -> str | None:
    """Say why products of bfloat16 would end this process, and what to do; None if nothing speaks against them.

    Some virtual machines promise their processor's instructions for tiles (AMX) and refuse to run them, so that the
    first product of bfloat16 ends the process without a word. Where they are promised, a process of its own tries.

    Example:
        >>> why_no_bfloat16() is None or "ONEDNN_MAX_CPU_ISA" in why_no_bfloat16()
        True
    """
    if not _promises_tiles() or not sys.executable:  # a program that Python is part of cannot be asked again
        return None
    ended = _try_product()
    if ended >= 0:
        return None
    settings = " ".join(f"{name}={value}" for name, value in WITHOUT_TILES.items())
    return (
        "the processor promises instructions for it (AMX) that end a process here, as on some virtual machines "
        f"(signal {-ended}). Set {settings} in the environment before the start"
    )


def _promises_tiles() -> bool:
    facts = Path("/proc/cpuinfo")
    return facts.exists() and "amx_tile" in facts.read_text(encoding="utf-8")


def _try_product() -> int:
    """Give the exit code of a process that multiplies; negative is the signal that ended it."""
    # Without the folder one is in, whose files may be called torch.py.
    command = [sys.executable, "-P", "-c", _PRODUCT]
    return subprocess.run(command, capture_output=True, check=False).returncode  # noqa: S603 - our own words
