"""Few training rows: what a dataset would be if fewer had been labelled."""

from __future__ import annotations

import dataclasses

from equipoise.data.dataset import Dataset
from equipoise.data.row_splits import stratified_split

__all__ = ["few"]


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
