"""Batches that carry the sample index: deterministic, sharded, augmented."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import betaincinv
from torch import Tensor
from torch.nn.functional import one_hot

from equipoise.core.errors import DataError
from equipoise.data.augment import (
    Augment,
    cut_mix,
    cut_out,
    erase_boxes,
    flip_images,
    jitter_colors,
    mix_up,
    normalize,
    shift_crop,
    take_rows,
)
from equipoise.data.dataset import Dataset
from equipoise.data.ordering import epoch_rows, shard_bounds, trim_documents
from equipoise.data.shuffling import permutation, uniform
from equipoise.data.streaming import ImageFiles, stream

__all__ = ["Batch", "Batches", "batches"]

_N_DRAWS, _N_COLOR = 9, 8


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A few samples, ready for a network.

    Attributes:
        inputs: Images ``(n, c, h, w)`` float32 channels-last, features ``(n, d)``, or token numbers ``(n,
            length)``.
        targets: Class numbers ``(n,)``, masks ``(n, h, w)``, or probabilities ``(n, k)`` of mixed samples.
        index: Row numbers in the dataset.

    Example:
        >>> len(Batch(torch.zeros(2, 3), torch.tensor([0, 1]), torch.tensor([7, 4])))
        2
    """

    inputs: Tensor
    targets: Tensor
    index: Tensor

    def __len__(self) -> int:
        return len(self.index)

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on another device."""
        moved = (part.to(device, non_blocking=True) for part in (self.inputs, self.targets, self.index))
        return Batch(*moved)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one step needs: rows to read, their random numbers, and how they are mixed."""

    rows: NDArray[np.int64]
    draws: NDArray[np.float64]
    color: NDArray[np.float64]
    own: NDArray[np.int64]
    partner: NDArray[np.int64] | None
    weight: float
    center: tuple[float, float] = (0.5, 0.5)


def batches(
    dataset: Dataset,
    split: str,
    *,
    batch_size: int,
    seed: int = 0,
    epoch: int = 0,
    augment: Augment | None = None,
    order: str | None = None,
    indices: Tensor | None = None,
    start: int = 0,
    drop_last: bool = False,
    rank: int = 0,
    world_size: int = 1,
    workers: int = 0,
    device: torch.device | str = "cpu",
) -> Batches:
    """Give one epoch of batches.

    Everything random depends on seed, epoch and step alone. An epoch entered in the middle with ``start``
    goes on as if it had never been left, and the batches of several processes joined are the batches of one.

    Args:
        dataset: Where the samples are.
        split: ``"train"``, ``"tune"``, ``"calib"`` or ``"test"``.
        batch_size: Samples of a global batch; with several processes each gets its part of it.
        seed: The run's seed.
        epoch: The number of the epoch.
        augment: What is done to the inputs; nothing by default.
        order: ``"rows"``, ``"shuffled"``, ``"buckets"`` or ``"length"``. By default ``train`` is shuffled
            (text in buckets of similar length) and every other split is in the order of its rows.
        indices: Rows to use instead of the whole split.
        start: The first step, after a resume.
        drop_last: Leave out a last batch that is not full. With several processes a batch that is not full
            may leave some of them with no sample, so training should leave it out.
        rank: The number of this process.
        world_size: How many processes there are.
        workers: Processes that read images from disk; samples in memory need none.
        device: Where batches shall be; images travel there as uint8 and are augmented there.

    Returns:
        An iterable with a length.

    Raises:
        SplitError: If the split does not exist, or ``indices`` leaves it.
        ValueError: If a parameter is out of range, or the augmentation does not fit the data.

    Example:
        >>> from equipoise.data import load
        >>> digits = load("digits")
        >>> first = next(iter(batches(digits, "train", batch_size=64, augment=Augment(crop_padding=1))))
        >>> tuple(first.inputs.shape), first.targets.dtype
        ((64, 1, 8, 8), torch.int64)
    """
    _check_numbers(batch_size, start, rank, world_size)
    augment = augment or Augment()
    _check_augment(dataset, augment)
    rows = epoch_rows(
        dataset, split, order=order, batch_size=batch_size, seed=seed, epoch=epoch, indices=indices
    )
    if drop_last:
        rows = rows[: len(rows) // batch_size * batch_size]
    if not len(rows):
        raise DataError(
            f"batches: {dataset.name} has no full batch of {batch_size} in {split!r}. Make batch_size "
            "smaller, "
            "or keep the last batch."
        )
    return Batches(
        dataset=dataset,
        rows=rows,
        batch_size=batch_size,
        seed=seed,
        epoch=epoch,
        augment=augment,
        start=start,
        rank=rank,
        world_size=world_size,
        workers=workers,
        device=torch.device(device),
    )


def _check_numbers(batch_size: int, start: int, rank: int, world_size: int) -> None:
    if batch_size < 1 or start < 0:
        raise ValueError(f"batches: `batch_size` and `start` must be positive, got {batch_size} and {start}.")
    if not 0 <= rank < world_size:
        raise ValueError(f"batches: `rank` must lie in [0, {world_size}), got {rank}. Count from zero.")


def _check_augment(dataset: Dataset, augment: Augment) -> None:
    images = dataset.kind in ("image", "segmentation")
    changes = (
        augment.crop_padding,
        augment.flip,
        augment.cutout,
        augment.area,
        augment.jitter,
        augment.erase,
        augment.cutmix,
    )
    if not images and any(changes):
        raise ValueError(
            f"batches: {dataset.name} holds no images to crop, flip, cut or color. Use mixup, regmixup or nothing."
        )
    if augment.beta and dataset.kind in ("text", "segmentation"):
        raise ValueError(
            f"batches: mixup, cutmix and regmixup mix inputs and labels, which {dataset.kind} data do not allow. "
            "Use none of them."
        )
    if augment.area is not None and not isinstance(dataset.inputs, ImageFiles):
        raise ValueError("batches: `area` is for images streamed from disk. Use crop_padding in memory.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batches:
    """One epoch of batches; made by :func:`batches`.

    Attributes:
        dataset: Where the samples are.
        rows: Row numbers of the epoch, in order, of all processes.
        batch_size: Samples of a global batch.
        seed: The run's seed.
        epoch: The number of the epoch.
        augment: What is done to the inputs.
        start: The first step.
        rank: The number of this process.
        world_size: How many processes there are.
        workers: Processes that read from disk.
        device: Where batches shall be.

    Example:
        >>> from equipoise.data import load
        >>> len(batches(load("digits"), "test", batch_size=100))
        4
    """

    dataset: Dataset
    rows: NDArray[np.int64]
    batch_size: int
    seed: int
    epoch: int
    augment: Augment
    start: int
    rank: int
    world_size: int
    workers: int
    device: torch.device

    def __len__(self) -> int:
        return max(-(-len(self.rows) // self.batch_size) - self.start, 0)

    def __iter__(self) -> Iterator[Batch]:
        steps = range(self.start, self.start + len(self))
        if isinstance(self.dataset.inputs, ImageFiles):
            yield from self._streamed(self.dataset.inputs, steps)
            return
        for step in steps:
            plan = self._plan(step)
            index = torch.from_numpy(plan.rows)
            if self.dataset.kind == "image":
                stored = self.dataset.inputs.permute(0, 2, 3, 1)
                images = take_rows(stored, index).permute(0, 3, 1, 2)
                yield self._image_batch(plan, images, self.dataset.labels[index])
            else:
                yield self._vector_batch(
                    plan, take_rows(self.dataset.inputs, index), self.dataset.labels[index]
                )

    def _streamed(self, files: ImageFiles, steps: range) -> Iterator[Batch]:
        plans = [self._plan(step) for step in steps]
        area = self.augment.area
        requests = [(plan.rows, None if area is None else plan.draws[:, :4]) for plan in plans]
        read = stream(files, requests, workers=self.workers, area=area or 1.0)
        for plan, (images, masks) in zip(plans, read, strict=True):
            labels = self.dataset.labels[torch.from_numpy(plan.rows)] if masks is None else masks.long()
            yield self._image_batch(plan, images, labels)

    def _plan(self, step: int) -> _Plan:
        rows = self.rows[step * self.batch_size : (step + 1) * self.batch_size]
        key = (self.epoch, step)
        draws = uniform(len(rows) * _N_DRAWS, seed=self.seed, stream=("augment", *key)).reshape(-1, _N_DRAWS)
        low, high = shard_bounds(len(rows), rank=self.rank, world_size=self.world_size)
        mine = np.arange(low, high)
        beta = self.augment.beta
        if not beta:
            return _Plan(
                rows[mine], draws[mine], self._color(key, len(rows))[mine], np.arange(len(mine)), None, 1.0
            )
        other = permutation(len(rows), seed=self.seed, stream=("mixup", *key))[mine]
        chance, *center = uniform(3, seed=self.seed, stream=("weight", *key)).tolist()
        weight = float(betaincinv(beta, beta, chance))
        # A partner may belong to another process; it is read here too, so that joined shards equal one batch.
        needed, place = np.unique(np.concatenate([mine, other]), return_inverse=True)
        partner = np.arange(len(needed))
        partner[place[: len(mine)]] = place[len(mine) :]
        own = place[: len(mine)]
        color = self._color(key, len(rows))[needed]
        return _Plan(rows[needed], draws[needed], color, own, partner, weight, (center[0], center[1]))

    def _color(self, key: tuple[int, int], n: int) -> NDArray[np.float64]:
        """Numbers of a stream of their own, so that asking for colors changes no crop; none if none are needed."""
        width = _N_COLOR if self.augment.jitter or self.augment.erase else 0
        return uniform(n * width, seed=self.seed, stream=("color", *key)).reshape(n, width)

    def _image_batch(self, plan: _Plan, images: Tensor, labels: Tensor) -> Batch:
        images, labels = images.to(self.device), labels.to(self.device)
        augment, draws = self.augment, torch.from_numpy(plan.draws).to(self.device)
        dense = labels.ndim > 1
        if augment.crop_padding and len(images):
            top, left = (_whole(draws[:, column], 2 * augment.crop_padding + 1) for column in (4, 5))
            images = shift_crop(images, top, left, padding=augment.crop_padding)
            if dense:
                fill = self.dataset.ignore_index or 0
                labels = shift_crop(labels[:, None], top, left, padding=augment.crop_padding, fill=fill)[:, 0]
        if augment.flip:
            images = flip_images(images, draws[:, 6] < 0.5)
            labels = flip_images(labels, draws[:, 6] < 0.5) if dense else labels
        if augment.jitter:
            chance = torch.from_numpy(plan.color[:, :3]).to(self.device)
            images = jitter_colors(images, chance, strength=augment.jitter)
        inputs = normalize(images, self.dataset.mean, self.dataset.std)
        if augment.cutout:
            row, column = (
                _whole(draws[:, k], length) for k, length in ((7, inputs.shape[2]), (8, inputs.shape[3]))
            )
            inputs = cut_out(inputs, row, column, side=augment.cutout)
        if augment.erase:
            chance = torch.from_numpy(plan.color[:, 3:]).to(inputs)
            inputs = erase_boxes(inputs, chance, share=augment.erase)
        return self._mixed(plan, inputs, labels)

    def _vector_batch(self, plan: _Plan, inputs: Tensor, labels: Tensor) -> Batch:
        if self.dataset.kind == "text":
            assert self.dataset.lengths is not None
            inputs = trim_documents(inputs, self.dataset.lengths[torch.from_numpy(plan.rows)]).long()
        else:
            if self.dataset.mean is not None:
                inputs = inputs - self.dataset.mean
            if self.dataset.std is not None:
                inputs = inputs / self.dataset.std
        return self._mixed(plan, inputs.to(self.device), labels.to(self.device))

    def _mixed(self, plan: _Plan, inputs: Tensor, labels: Tensor) -> Batch:
        index = torch.from_numpy(plan.rows).to(self.device)
        if plan.partner is None:
            return Batch(inputs, labels, index)
        partner = torch.from_numpy(plan.partner).to(self.device)
        weight, n_classes = plan.weight, self.dataset.n_classes
        if self.augment.cutmix:
            mixed, targets = cut_mix(
                inputs, labels, partner, weight=weight, center=plan.center, n_classes=n_classes
            )
        else:
            mixed, targets = mix_up(inputs, labels, partner, weight=weight, n_classes=n_classes)
        own = torch.from_numpy(plan.own).to(self.device)
        if len(own) < len(mixed):
            inputs, labels, mixed, targets, index = (
                part[own] for part in (inputs, labels, mixed, targets, index)
            )
        if not self.augment.regmixup:
            return Batch(mixed, targets, index)
        plain = one_hot(labels, n_classes).to(targets)
        return Batch(torch.cat([inputs, mixed]), torch.cat([plain, targets]), torch.cat([index, index]))


def _whole(numbers: Tensor, n_values: int) -> Tensor:
    return (numbers * n_values).long().clamp_(max=n_values - 1)
