"""Which rows an epoch visits, in which order, and which of them a process gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from equipoise.core.errors import DataError, SplitError
from equipoise.core.names import check_choice
from equipoise.data.shuffling import permutation

if TYPE_CHECKING:
    from equipoise.data.dataset import Dataset

__all__ = ["ORDERS", "bucket_order", "epoch_rows", "shard_bounds", "trim_documents"]

#: ``rows`` is ascending; ``shuffled`` is random; ``buckets`` is random with documents of similar length in
#: one
#: batch; ``length`` has the longest documents first.
ORDERS = ("rows", "shuffled", "buckets", "length")


def epoch_rows(
    dataset: Dataset,
    split: str,
    *,
    order: str | None,
    batch_size: int,
    seed: int,
    epoch: int,
    indices: Tensor | None = None,
) -> NDArray[np.int64]:
    """Return the rows of an epoch; each ``batch_size`` of them are a global batch.

    Args:
        dataset: Where the rows are.
        split: The split they must belong to.
        order: One of :data:`ORDERS`; None shuffles ``train`` (text in buckets) and nothing else.
        batch_size: Rows of a global batch.
        seed: The run's seed.
        epoch: The number of the epoch; each has its own order.
        indices: Rows to use instead of the whole split.

    Returns:
        Row numbers of the dataset.

    Raises:
        SplitError: If a visited row is not in the split.

    Example:
        >>> import torch
        >>> from equipoise.data import from_arrays
        >>> data = from_arrays(torch.zeros(10, 1), torch.arange(10) % 2, name="mine", seed=1)
        >>> len(epoch_rows(data, "train", order=None, batch_size=2, seed=0, epoch=0))
        6
    """
    is_text = dataset.kind == "text"
    if order is None:
        order = "rows" if split != "train" else "buckets" if is_text else "shuffled"
    check_choice(order, ORDERS, where="batches", name="order")
    if order in ("buckets", "length") and dataset.lengths is None:
        raise DataError(
            f"batches: order {order!r} needs a dataset with lengths, and {dataset.name} has none. "
            "Use 'rows' or 'shuffled'."
        )
    rows = dataset.rows(split) if indices is None else _visited(dataset, split, indices)
    numbers = rows.numpy()
    if order == "rows":
        return numbers
    if order == "length":
        assert dataset.lengths is not None
        return numbers[np.argsort(-dataset.lengths.numpy()[numbers].astype(np.int64), kind="stable")]
    shuffled = numbers[permutation(len(numbers), seed=seed, stream=("order", epoch))]
    if order == "shuffled":
        return shuffled
    assert dataset.lengths is not None
    lengths = dataset.lengths.numpy()[shuffled]
    return shuffled[bucket_order(lengths, batch_size=batch_size, seed=seed, epoch=epoch)]


def _visited(dataset: Dataset, split: str, indices: Tensor) -> Tensor:
    allowed = np.zeros(len(dataset), dtype=bool)
    allowed[dataset.rows(split).numpy()] = True
    rows = indices.cpu()
    inside = ((rows >= 0) & (rows < len(dataset))).all()
    if not bool(inside) or not allowed[rows.numpy()].all():
        raise SplitError(
            f"batches: `indices` must hold rows of {split!r} only, got others. Take them from Batch.index or "
            f"dataset.rows({split!r})."
        )
    return rows


def bucket_order(
    lengths: NDArray[np.integer], *, batch_size: int, seed: int, epoch: int, pool: int = 64
) -> NDArray[np.int64]:
    """Reorder shuffled documents so that each batch holds documents of similar length.

    Pools of ``pool`` batches are sorted by length and cut into batches, and the batches are shuffled. The
    rows that do not fill a batch come last.

    Args:
        lengths: Of the documents, in shuffled order.
        batch_size: Documents of a batch.
        seed: The run's seed.
        epoch: The number of the epoch.
        pool: Batches that are sorted together; more make purer batches, fewer more random ones.

    Returns:
        Positions in ``lengths``.

    Example:
        >>> bucket_order(np.array([9, 1, 8, 2, 5]), batch_size=2, seed=0, epoch=0)
        array([2, 0, 1, 3, 4])
    """
    n_full = len(lengths) // batch_size
    full = n_full * batch_size
    places = np.arange(full)
    pools = [
        part[np.argsort(lengths[part], kind="stable")]
        for part in np.split(places, range(pool * batch_size, full, pool * batch_size))
    ]
    batches = np.concatenate(pools).reshape(n_full, batch_size)
    mixed = batches[permutation(n_full, seed=seed, stream=("buckets", epoch))].reshape(-1)
    return np.concatenate([mixed, np.arange(full, len(lengths))]).astype(np.int64)


def shard_bounds(n_rows: int, *, rank: int, world_size: int) -> tuple[int, int]:
    """Return which part of a global batch a process gets: contiguous, and as even as can be.

    Args:
        n_rows: Rows of the global batch.
        rank: The number of the process.
        world_size: How many processes there are.

    Returns:
        First row, and the row after the last.

    Example:
        >>> [shard_bounds(10, rank=rank, world_size=4) for rank in range(4)]
        [(0, 2), (2, 5), (5, 7), (7, 10)]
    """
    return rank * n_rows // world_size, (rank + 1) * n_rows // world_size


def trim_documents(tokens: Tensor, lengths: Tensor, *, margin: int = 21) -> Tensor:
    """Cut padding that no document of a batch needs.

    Under global max pooling the result is exactly that of the untrimmed batch, as long as ``margin`` is at
    least the receptive field of the network: 21 tokens for three convolutions of width 5 with two pools of
    width 5.

    Args:
        tokens: ``(n, length)``, padded in front.
        lengths: Tokens of each document.
        margin: Padding to keep in front of the longest document.

    Returns:
        The last columns of ``tokens``.

    Example:
        >>> import torch
        >>> trim_documents(torch.tensor([[0, 0, 0, 7, 8]]), torch.tensor([2]), margin=1)
        tensor([[0, 7, 8]])
    """
    if not len(lengths):
        return tokens
    keep = min(int(lengths.max()) + margin, tokens.shape[1])
    return tokens[:, tokens.shape[1] - keep :]
