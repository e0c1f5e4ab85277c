"""The four splits: seeded, stratified, with exact sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equipoise.core.errors import SplitError
from equipoise.core.names import check_choice
from equipoise.data.shuffling import permutation

if TYPE_CHECKING:
    from equipoise.data.dataset import Dataset

__all__ = [
    "VALIDATIONS",
    "focal_split",
    "meta_part",
    "official_splits",
    "stratified_split",
    "whole_validation",
]

#: What may happen to the validation rows: halved into ``tune`` and ``calib``, or all in ``tune``.
VALIDATIONS = ("halves", "whole")


def stratified_split(
    labels: Tensor,
    sizes: Mapping[str, float],
    *,
    seed: int = 0,
    rows: Tensor | None = None,
    rest: str = "train",
) -> dict[str, Tensor]:
    """Split rows so that every part has each class in the proportion of the whole.

    Totals are exact; what proportions leave over goes to the classes with the largest remainders.

    Args:
        labels: Class numbers of the whole dataset.
        sizes: Name of each part and its size: an int counts rows, a float is a share of the rows.
        seed: Another seed gives other parts.
        rows: The rows to split; all by default.
        rest: The name of what is left.

    Returns:
        Row numbers of each part, ascending; the rest first.

    Raises:
        ValueError: If the sizes do not fit.

    Example:
        >>> parts = stratified_split(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), {"test": 0.5})
        >>> {name: len(part) for name, part in parts.items()}
        {'train': 4, 'test': 4}
    """
    chosen = np.arange(len(labels)) if rows is None else rows.numpy()
    classes = labels.numpy()[chosen]
    counts = _row_counts(sizes, len(chosen), seen=rest)
    groups = []
    for number in np.unique(classes):
        members = chosen[classes == number]
        groups.append(members[permutation(len(members), seed=seed, stream=("split", int(number)))])
    left = np.array([len(group) for group in groups], dtype=np.int64)
    taken = np.zeros_like(left)
    parts: dict[str, list[NDArray[np.int64]]] = {rest: [], **{name: [] for name in counts}}
    for name, size in counts.items():
        share = _quotas(left, size)
        for place, group in enumerate(groups):
            parts[name].append(group[taken[place] : taken[place] + share[place]])
        taken, left = taken + share, left - share
    parts[rest] = [group[start:] for group, start in zip(groups, taken, strict=True)]
    return {name: _ascending(pieces) for name, pieces in parts.items()}


def _row_counts(sizes: Mapping[str, float], n_rows: int, *, seen: str) -> dict[str, int]:
    counts = {
        name: round(size * n_rows) if isinstance(size, float) else int(size) for name, size in sizes.items()
    }
    if seen in counts or min(counts.values(), default=0) < 0 or sum(counts.values()) >= n_rows:
        raise ValueError(
            f"stratified_split: `sizes` must leave some of the {n_rows} rows for {seen!r}, got "
            f"{dict(sizes)}. "
            "Make the parts smaller."
        )
    return counts


def _quotas(counts: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    whole = max(int(counts.sum()), 1)
    share, remainder = np.divmod(counts * total, whole)
    missing = total - int(share.sum())
    # A stable sort gives ties to the lower class number, on every machine.
    share[np.argsort(-remainder, kind="stable")[:missing]] += 1
    return share


def _ascending(pieces: list[NDArray[np.int64]]) -> Tensor:
    joined = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
    return torch.from_numpy(np.sort(joined).astype(np.int64))


def focal_split(n_rows: int, *, held_out: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Split rows as the focal-calibration code does: the first of a shuffled list are held out.

    It is what the results of focal loss, dual focal loss and AdaFocal on CIFAR rest on. Not stratified.

    Args:
        n_rows: Rows of the official training set.
        held_out: How many are held out; the papers take 5,000 of 50,000.
        seed: Theirs is 1.

    Returns:
        Training rows and held-out rows, each in the order of the shuffled list.

    Example:
        >>> train, held_out = focal_split(10, held_out=3)
        >>> held_out
        tensor([2, 9, 6])

    Reference:
        Mukhoti et al. (2020), Calibrating Deep Neural Networks using Focal Loss.

    Differs from the authors' code:
        Nothing known.
    """
    order = torch.from_numpy(np.random.RandomState(seed).permutation(n_rows).astype(np.int64))
    return order[held_out:], order[:held_out]


def meta_part(dataset: Dataset, *, share: float = 0.5, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Divide ``tune`` in two: one part to choose by, another for objectives that learn from held-out samples.

    Bilevel objectives learn from ``tune`` as they train; an epoch chosen on the same rows would be chosen on what
    was learned. Rows keep their numbers in both.

    Args:
        dataset: With a ``tune`` split.
        share: The part of ``tune`` that becomes the second dataset's; an int counts rows.
        seed: Of the choice.

    Returns:
        The dataset without those rows, and one whose only split is a ``tune`` of those rows.

    Raises:
        SplitError: If there is no ``tune``.
        ValueError: If nothing would be left of either.

    Example:
        >>> from equipoise.data import from_arrays
        >>> data = from_arrays(torch.zeros(200, 1), torch.arange(200) % 2, name="mine")
        >>> [len(part.rows("tune")) for part in meta_part(data)]
        [10, 10]

    Reference:
        Wang and Golebiowski (2024), who divide training data 8:1:1.
    """
    rows = dataset.rows("tune")
    labels = (
        torch.zeros(len(dataset), dtype=torch.int64) if dataset.kind == "segmentation" else dataset.labels
    )
    parts = stratified_split(labels, {"meta": share}, seed=seed, rows=rows, rest="tune")
    if not len(parts["meta"]):
        raise ValueError(
            f"meta_part: `share` must leave some of the {len(rows)} rows of 'tune', got {share}."
        )
    rest = {**dataset.splits, "tune": parts["tune"]}
    return replace(dataset, splits=rest), replace(dataset, splits={"tune": parts["meta"]})


def whole_validation(dataset: Dataset) -> Dataset:
    """Put all validation rows into ``tune``, as the papers do; there is no ``calib`` then.

    Post-hoc calibrators of runs are fitted on ``tune`` in this case, on rows that training may have looked at.

    Args:
        dataset: With ``tune`` and ``calib``, or one of them.

    Returns:
        A dataset that shares the memory of the given one.

    Raises:
        SplitError: If it has neither.

    Example:
        >>> from equipoise.data import from_arrays
        >>> data = from_arrays(torch.zeros(200, 1), torch.arange(200) % 2, name="mine")
        >>> whole_validation(data)
        Dataset('mine', features (200, 1), 2 classes, train 120, tune 40, test 40)
    """
    parts = [dataset.splits[name] for name in ("tune", "calib") if name in dataset.splits]
    rows = torch.cat(parts).sort().values if parts else torch.empty(0, dtype=torch.int64)
    if not len(rows):
        raise SplitError(
            f"{dataset.name}: validation = 'whole' needs rows in 'tune' or 'calib', got none. Keep some rows for them."
        )
    kept = {name: part for name, part in dataset.splits.items() if name != "calib"}
    return replace(dataset, splits={**kept, "tune": rows})


def official_splits(
    labels: Tensor, n_train: int, *, tune: int, calib: int, seed: int, recipe: str = "stratified"
) -> dict[str, Tensor]:
    """Make four splits from an official training set that is followed by an official test set.

    Args:
        labels: Class numbers: first the training rows, then the test rows.
        n_train: Rows of the official training set.
        tune: Size of ``tune``, taken from the training rows.
        calib: Size of ``calib``, taken from the training rows.
        seed: Of the stratified recipe; the other has its own.
        recipe: ``"stratified"``, or ``"focal"`` for the held-out rows of the focal-calibration code,
            the first part of which becomes ``tune`` and the second ``calib``.

    Returns:
        Row numbers of ``train``, ``tune``, ``calib`` and ``test``.

    Example:
        >>> parts = official_splits(torch.arange(12) % 2, 10, tune=2, calib=2, seed=0)
        >>> parts["test"]
        tensor([10, 11])
    """
    check_choice(recipe, ("stratified", "focal"), where="splits", name="recipe")
    test = torch.arange(n_train, len(labels))
    if recipe == "stratified":
        rows = torch.arange(n_train)
        parts = stratified_split(labels, {"tune": tune, "calib": calib}, seed=seed, rows=rows)
        return {**parts, "test": test}
    train, held_out = focal_split(n_train, held_out=tune + calib)
    return {
        "train": train.sort().values,
        "tune": held_out[:tune].sort().values,
        "calib": held_out[tune:].sort().values,
        "test": test,
    }
