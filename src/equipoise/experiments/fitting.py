"""Which networks take which data: known before anything is loaded, and checked again when it is."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.core.errors import SpecError
from equipoise.experiments.catalogue import CATALOGUE

__all__ = ["check_fit", "kinds_of"]

#: What a network takes, where it is not images.
_TAKES = {
    "mlp": ("features", "image"),
    "global_pooling_cnn": ("text",),
    "deeplabv3_resnet34": ("segmentation",),
}
#: What a dataset may hold, where it is not images.
_HOLDS = {
    "mixture": ("features",),
    "table": ("features",),
    "npz": ("features", "image"),
    "newsgroups": ("text",),
    "voc2012": ("segmentation",),
}


def kinds_of(data: str) -> tuple[str, ...]:
    """Return what a dataset may hold.

    Example:
        >>> kinds_of("newsgroups"), kinds_of("cifar10")
        (('text',), ('image',))
    """
    return _HOLDS.get(data, ("image",))


def check_fit(model: str, data: str, kinds: Sequence[str]) -> None:
    """Raise unless a network takes such data.

    Raises:
        SpecError: With networks that do.

    Example:
        >>> check_fit("mlp", "digits", ("image",))
        >>> check_fit("resnet8", "mixture", ("features",))
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: model 'resnet8' takes image, but 'mixture' holds features. Use 'mlp'.
    """
    takes = _TAKES.get(model, ("image",))
    if set(takes) & set(kinds):
        return
    fitting = [key for key in CATALOGUE["models"] if set(_TAKES.get(key, ("image",))) & set(kinds)]
    raise SpecError(
        f"model {model!r} takes {' or '.join(takes)}, but {data!r} holds {' or '.join(kinds)}. "
        f"Use {' or '.join(map(repr, fitting[:4]))}."
    )
