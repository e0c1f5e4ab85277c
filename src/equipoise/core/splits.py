"""The four splits: who may see which rows."""

from __future__ import annotations

from equipoise.core.errors import SplitError
from equipoise.core.names import nearest

__all__ = ["HISTORIES", "SPLITS", "check_split"]

#: ``train`` is fitted on; ``tune`` is what objectives, schedules and model selection may see; ``calib`` is
#: for post-hoc maps; ``test`` is scored once.
SPLITS = ("train", "tune", "calib", "test")
#: Splits whose scores a history may show; ``test`` only beside ``tune``.
HISTORIES = ("tune", "test")


def check_split(split: str | None, *, where: str) -> str | None:
    """Return ``split`` if it is one of :data:`SPLITS` or None.

    Raises:
        SplitError: For any other word.

    Example:
        >>> check_split("test", where="score")
        'test'
        >>> check_split("valid", where="score")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SplitError: score: `split` must be one of train, tune, calib, test, got ...
    """
    if split is None or split in SPLITS:
        return split
    guess = nearest(str(split), SPLITS)
    remedy = f"Did you mean {guess!r}?" if guess else "Validation data are 'tune' or 'calib' here."
    raise SplitError(f"{where}: `split` must be one of {', '.join(SPLITS)}, got {split!r}. {remedy}")
