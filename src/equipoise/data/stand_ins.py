"""Small made-up data in the place of public datasets, to rehearse an experiment before the real data are there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from equipoise.core.errors import SpecError
from equipoise.core.names import nearest
from equipoise.core.seeds import numpy_generator
from equipoise.data.dataset import Dataset, Kind
from equipoise.data.readers.class_names import CIFAR10, CIFAR100, DIGITS, NEWSGROUPS, VOC2012
from equipoise.data.streaming import ImageFiles

__all__ = ["STAND_INS", "StandIn", "stand_in"]

#: Rows of each split: two batches of two to train on.
_ROWS = {"train": 4, "tune": 2, "calib": 2, "test": 4}
_WORDS, _LENGTH, _EMBEDDING = 50, 60, 100


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """What a dataset looks like to a network.

    Attributes:
        kind: What the inputs are.
        class_names: One word per class.
        size: Side of the images.
        is_streamed: Whether images are read when they are needed, not kept in memory.
        splits: Splits that it has.
        n_calib: Rows of ``calib``: enough for every calibrator of the papers.
    """

    kind: Kind
    class_names: tuple[str, ...]
    size: int = 32
    is_streamed: bool = False
    splits: tuple[str, ...] = tuple(_ROWS)
    n_calib: int = _ROWS["calib"]


def _numbered(n_classes: int) -> tuple[str, ...]:
    return tuple(f"class {number}" for number in range(n_classes))


#: The datasets of the papers.
STAND_INS: dict[str, StandIn] = {
    "cifar10": StandIn(kind="image", class_names=CIFAR10),
    "cifar100": StandIn(kind="image", class_names=CIFAR100),
    "cifar10c": StandIn(kind="image", class_names=CIFAR10, splits=("test",)),
    "imagenet": StandIn(kind="image", class_names=_numbered(1000), size=224, is_streamed=True),
    "imagenet_lt": StandIn(kind="image", class_names=_numbered(1000), size=224, is_streamed=True),
    "newsgroups": StandIn(kind="text", class_names=NEWSGROUPS),
    "svhn": StandIn(kind="image", class_names=DIGITS),
    # Dirichlet calibration of 200 classes refuses fewer rows.
    "tiny_imagenet": StandIn(kind="image", class_names=_numbered(200), size=64, n_calib=402),
    "voc2012": StandIn(kind="segmentation", class_names=VOC2012, size=512, is_streamed=True),
}


def stand_in(name: str, *, seed: int = 0, size: int = 0, tune: int = 2, calib: int | None = None) -> Dataset:
    """Make a few rows of two classes that have the shape, the classes and the name of a public dataset.

    Args:
        name: A key of :data:`STAND_INS`.
        seed: Of the rows.
        size: Side of the images; 0 is that of the dataset.
        tune: Rows of ``tune``; 0 leaves it out.
        calib: Rows of ``calib``; 0 leaves it out, None is as many as the papers' calibrators need.

    Returns:
        A dataset whose scores mean nothing.

    Raises:
        SpecError: If there is no such dataset.

    Example:
        >>> stand_in("cifar100")
        Dataset('cifar100', image (12, 3, 32, 32), 100 classes, train 4, tune 2, calib 2, test 4)
    """
    if name not in STAND_INS:
        guess = nearest(name, STAND_INS)
        remedy = f"did you mean {guess!r}?" if guess else f"there are {', '.join(STAND_INS)}."
        raise SpecError(f"no stand-in for the dataset {name!r}; {remedy}")
    known = STAND_INS[name]
    sizes = {**_ROWS, "tune": tune, "calib": known.n_calib if calib is None else calib}
    kept = [split for split in known.splits if sizes[split]]
    ends = np.cumsum([0, *(sizes[split] for split in kept)]).tolist()
    labels = torch.arange(ends[-1]) % 2
    is_dense = known.kind == "segmentation"
    facts: dict[str, Any] = {
        "name": name,
        "kind": known.kind,
        "class_names": known.class_names,
        "labels": torch.zeros_like(labels) if is_dense else labels,
        "splits": {
            split: torch.arange(start, end) for split, start, end in zip(kept, ends, ends[1:], strict=False)
        },
    }
    random = numpy_generator(seed, "stand-in", name)
    if known.kind == "text":
        # Words of even numbers are of one class, words of odd numbers of the other.
        words = 2 * random.integers(_WORDS // 2, size=(len(labels), _LENGTH)) + labels.numpy()[:, None]
        vectors = random.standard_normal((_WORDS, _EMBEDDING))
        return Dataset(
            inputs=torch.from_numpy(words.astype(np.int32)),
            lengths=torch.full((len(labels),), _LENGTH),
            embedding=torch.from_numpy(vectors.astype(np.float32)),
            **facts,
        )
    maker = _Stripes(side=size or known.size, seed=seed, is_dense=is_dense)
    facts |= {"mean": torch.full((3,), 0.5), "std": torch.full((3,), 0.25)}
    if not known.is_streamed:
        images = torch.stack([maker(row)[0] for row in range(len(labels))])
        return Dataset(inputs=images.contiguous(memory_format=torch.channels_last), **facts)
    names = tuple(f"{row} of {maker!r}" for row in range(len(labels)))
    files = ImageFiles(
        folder="", paths=names, masks=names if is_dense else None, size=maker.side, maker=maker
    )
    return Dataset(inputs=files, ignore_index=255 if is_dense else None, **facts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Stripes:
    """Images of upright stripes in even rows and of level stripes in odd rows, with noise.

    Attributes:
        side: Height and width.
        seed: Of the noise.
        is_dense: Whether there is a mask too: its left half has the class of the stripes, its first line no class.
    """

    side: int
    seed: int
    is_dense: bool

    def __call__(self, row: int) -> list[Tensor]:
        """Return the image ``(3, side, side)``, and the mask ``(side, side)`` if there is one."""
        random = numpy_generator(self.seed, "stripes", row)
        stripes = np.broadcast_to(100.0 * (np.arange(self.side) // 4 % 2), (self.side, self.side))
        clean = stripes.T if row % 2 else stripes
        noisy = 70 + clean + 30 * random.standard_normal((3, self.side, self.side))
        image = torch.from_numpy(noisy.clip(0, 255).astype(np.uint8))
        if not self.is_dense:
            return [image]
        mask = torch.zeros(self.side, self.side, dtype=torch.uint8)
        mask[:, : self.side // 2] = 1 + row % 2
        mask[0] = 255
        return [image, mask]
