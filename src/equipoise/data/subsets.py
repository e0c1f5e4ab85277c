"""Smaller training sets: fewer rows, or class sizes that fall exponentially (long-tailed)."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from equipoise.data.dataset import Dataset
from equipoise.data.row_splits import stratified_split
from equipoise.data.shuffling import permutation

__all__ = ["few", "long_tail", "long_tail_counts"]


def few(dataset: Dataset, n_train: int, *, seed: int = 0) -> Dataset:
    """Keep some training rows of a dataset, every class in its proportion; other splits stay.

    Args:
        dataset: Any dataset with one label per sample.
        n_train: How many training rows are kept.
        seed: Of the choice of rows.

    Returns:
        A dataset that shares the memory of the given one.

    Raises:
        ValueError: If there are not so many, or a sample has more than one label.

    Example:
        >>> import torch
        >>> from equipoise.data import from_arrays
        >>> data = from_arrays(torch.zeros(200, 1), torch.arange(200) % 2, name="mine")
        >>> few(data, 20).class_counts("train")
        tensor([10, 10])
    """
    if dataset.kind == "segmentation":
        raise ValueError(f"n_train: one label per sample is needed, and {dataset.name} has masks.")
    rows = dataset.rows("train")
    if isinstance(n_train, bool) or not isinstance(n_train, int) or not 0 < n_train <= len(rows):
        raise ValueError(
            f"n_train: must be a number of rows from 1 to the {len(rows)} that {dataset.name} trains on, got {n_train}."
        )
    if n_train == len(rows):
        return dataset
    kept = stratified_split(dataset.labels, {"kept": n_train}, seed=seed, rows=rows)["kept"]
    return dataclasses.replace(
        dataset, name=f"{dataset.name}_{n_train}", splits={**dataset.splits, "train": kept}
    )


def long_tail_counts(largest: int, n_classes: int, *, factor: float) -> Tensor:
    r"""Return class sizes that fall from ``largest`` to ``largest / factor``.

    .. math:: n_i = \lfloor n_0 \, \mu^{-i / (k - 1)} \rfloor

    Args:
        largest: Size of the first class.
        n_classes: How many classes.
        factor: The imbalance factor.

    Returns:
        One size per class.

    Example:
        >>> long_tail_counts(100, 3, factor=100.0)
        tensor([100,  10,   1])

    Reference:
        Cui et al. (2019), Class-Balanced Loss Based on Effective Number of Samples.
    """
    if factor < 1:
        raise ValueError(f"long_tail: `factor` must be at least 1, got {factor}. 100 is usual.")
    step = torch.arange(n_classes, dtype=torch.float64) / max(n_classes - 1, 1)
    # The tiny addition undoes rounding, which would turn 100 / 10 into 9.
    return (largest * factor**-step + 1e-9).long().clamp_(min=1)


def long_tail(dataset: Dataset, *, factor: float = 100.0, seed: int = 0) -> Dataset:
    """Thin the training rows of a dataset so that class sizes fall exponentially; other splits stay.

    Args:
        dataset: Any dataset with one label per sample.
        factor: How many times as large the first class is as the last; 10, 50 and 100 are usual.
        seed: Of the choice of rows.

    Returns:
        A dataset that shares the memory of the given one.

    Example:
        >>> from equipoise.data import from_arrays
        >>> data = from_arrays(torch.zeros(200, 1), torch.arange(200) % 2, name="mine")
        >>> long_tail(data, factor=10.0).class_counts("train")
        tensor([60,  6])
    """
    if dataset.kind == "segmentation":
        raise ValueError(f"long_tail: one label per sample is needed, and {dataset.name} has masks.")
    rows = dataset.rows("train")
    labels = dataset.labels[rows]
    wanted = long_tail_counts(int(dataset.class_counts("train").max()), dataset.n_classes, factor=factor)
    kept = []
    for number, count in enumerate(wanted.tolist()):
        members = rows[labels == number]
        order = torch.from_numpy(permutation(len(members), seed=seed, stream=("long_tail", number)))
        kept.append(members[order[:count]])
    splits = {**dataset.splits, "train": torch.cat(kept).sort().values}
    return dataclasses.replace(dataset, name=f"{dataset.name}_lt{factor:g}", splits=splits)
