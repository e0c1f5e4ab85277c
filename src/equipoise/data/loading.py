"""Datasets by name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from equipoise.core.errors import SpecError
from equipoise.core.names import check_choice, look_up, nearest
from equipoise.data.dataset import Dataset
from equipoise.data.readers.cifar import cifar10, cifar100
from equipoise.data.readers.cifar10h import cifar10h
from equipoise.data.readers.cifar_c import cifar10c, cifar100c
from equipoise.data.readers.digits import digits
from equipoise.data.readers.image_folder import image_folder
from equipoise.data.readers.imagenet import imagenet, imagenet_lt
from equipoise.data.readers.mixtures import mixture
from equipoise.data.readers.mnist import fashion_mnist, mnist
from equipoise.data.readers.newsgroups import newsgroups
from equipoise.data.readers.npz import npz
from equipoise.data.readers.scenes import scenes
from equipoise.data.readers.svhn import svhn
from equipoise.data.readers.table import table
from equipoise.data.readers.tiny_imagenet import tiny_imagenet
from equipoise.data.readers.voc2012 import voc2012
from equipoise.data.row_splits import VALIDATIONS, whole_validation
from equipoise.data.stand_ins import stand_in
from equipoise.data.subsets import few, long_tail

__all__ = ["COMMON_OPTIONS", "READERS", "load"]

#: Options that :func:`load` takes for every dataset, beside those of its reader.
COMMON_OPTIONS = ("long_tail", "n_train", "validation", "stand_in")

#: Every dataset that can be loaded by name.
READERS: Mapping[str, Callable[..., Dataset]] = MappingProxyType(
    {
        "cifar10": cifar10,
        "cifar100": cifar100,
        "cifar100c": cifar100c,
        "cifar10c": cifar10c,
        "cifar10h": cifar10h,
        "digits": digits,
        "fashion_mnist": fashion_mnist,
        "image_folder": image_folder,
        "imagenet": imagenet,
        "imagenet_lt": imagenet_lt,
        "mixture": mixture,
        "mnist": mnist,
        "newsgroups": newsgroups,
        "npz": npz,
        "scenes": scenes,
        "svhn": svhn,
        "table": table,
        "tiny_imagenet": tiny_imagenet,
        "voc2012": voc2012,
    }
)


def load(
    name: str,
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Dataset:
    """Load a dataset by name.

    Args:
        name: A key of :data:`READERS`.
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``. Datasets that need
            none, because they are built in or have a path of their own, do not look at it.
        seed: Of the splits, and of whatever else is random.
        download: Bring the official files if they are not there.
        options: Further parameters of the reader, for example ``{"path": "mine.npz"}``; ``n_train``, how many
            training rows of any dataset are kept; ``long_tail``, the imbalance factor to which they are thinned;
            ``validation``, ``"whole"`` for one validation set in ``tune`` instead of ``tune`` and ``calib``; and
            ``stand_in``, true for a few made-up rows of the same shape (:func:`equipoise.data.stand_in`), or the
            side of their images.

    Returns:
        The dataset.

    Raises:
        SpecError: If there is no such dataset or option; the nearest is named.
        DataError: If its files are not there, or are wrong.

    Example:
        >>> load("digits", options={"test": 0.5}).class_counts("test").sum()
        tensor(898)
    """
    options = dict(options)
    factor, n_train, validation, made_up = (options.pop(key, None) for key in COMMON_OPTIONS)
    check_choice(validation or VALIDATIONS[0], VALIDATIONS, where=name, name="validation")
    if made_up:
        sizes = {split: 0 for split in ("tune", "calib") if options.get(split) == 0}
        if validation == "whole":
            sizes.setdefault(
                "calib", 2
            )  # the rows go to `tune`, which no calibrator of many numbers is fitted on
        side = options.get("size", 0) if made_up is True else made_up
        dataset = stand_in(name, seed=seed, size=side, **sizes)
    else:
        dataset = _read(name, root=root, seed=seed, download=download, options=options)
    if validation == "whole":
        dataset = whole_validation(dataset)
    if n_train is not None:
        dataset = few(dataset, n_train, seed=seed)
    return dataset if factor is None else long_tail(dataset, factor=factor, seed=seed)


def _read(
    name: str,
    *,
    root: str | os.PathLike[str] | None,
    seed: int,
    download: bool,
    options: Mapping[str, Any],
) -> Dataset:
    reader = look_up(name, READERS, what="dataset")
    known = inspect.signature(reader).parameters
    given = {"root": root, "seed": seed, "download": download}
    own = [key for key in known if key not in given]
    for key in options:
        if key in given:
            raise SpecError(
                f"dataset {name!r} has no option {key!r}; it is an argument of its own, {key}=..."
            )
        if key not in own:
            guess = nearest(key, own)
            remedy = f"did you mean {guess!r}?" if guess else f"it has {', '.join(own) or 'none'}."
            raise SpecError(f"dataset {name!r} has no option {key!r}; {remedy}")
    wanted = [key for key, value in known.items() if value.default is value.empty and key not in options]
    if wanted:
        raise SpecError(
            f"dataset {name!r} needs the option {wanted[0]!r}; pass options={{{wanted[0]!r}: ...}}."
        )
    shared = {key: value for key, value in given.items() if key in known}
    return reader(**shared, **options)
