"""Which networks take which data: known before anything is loaded, and checked again when it is."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.core.errors import SpecError
from equipoise.experiments.catalogue.models import MODELS

__all__ = ["check_match"]


def check_match(model: str, data: str, kinds: Sequence[str]) -> None:
    """Raise unless a network takes such data.

    Args:
        model: Key of the network.
        data: What the data are called, for the message.
        kinds: What they hold, or may hold.

    Raises:
        SpecError: With networks that do.

    Example:
        >>> check_match("mlp", "digits", ("image",))
        >>> check_match("resnet8", "mixture", ("features",))
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: model 'resnet8' takes image, but 'mixture' holds features. Use 'mlp'.
    """
    takes = MODELS[model].kinds
    if set(takes) & set(kinds):
        return
    fitting = [entry.key for entry in MODELS.values() if set(entry.kinds) & set(kinds)]
    raise SpecError(
        f"model {model!r} takes {' or '.join(takes)}, but {data!r} holds {' or '.join(kinds)}. "
        f"Use {' or '.join(map(repr, fitting[:4]))}."
    )
