"""Scores of dense predictions, image after image: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from equipoise.calibrators import Calibrator
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.metrics import CalibrationState
from equipoise.training.batch_source import BatchLike
from equipoise.training.evaluation import evaluating
from equipoise.training.network_call import as_logits, call_network
from equipoise.training.pixel_sample import PixelSample

__all__ = ["DenseScores", "boundary_mask", "score_dense"]

_Counts = NDArray[np.int64]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DenseScores:
    """What a segmentation network said about images, in sums, and a sample of its pixels.

    Attributes:
        state: All pixels that have a class.
        near: Those near a boundary between classes.
        inside: The others.
        sample: A random sample of pixels before any calibrator, for what needs rows: fits, adaptive losses, files.
        places: Which pixels these are, counted over all that have a class, image after image.
        share: The part of all pixels that the sample holds.
        intersections: Pixels per image and class that have it and are said to.
        unions: Pixels per image and class that have it or are said to.
        near_images: Weight, confidence, NLL and Brier score of pixels near a boundary, by image, bin and correctness,
            ``(images, bins, 2, 4)``.
        inside_images: The same of the others.

    Example:
        >>> right = np.array([[3, 1]])
        >>> scores = DenseScores(
        ...     state=CalibrationState(2),
        ...     near=CalibrationState(2),
        ...     inside=CalibrationState(2),
        ...     sample=Predictions(logits=[[0.0, 1.0]], labels=[1]),
        ...     places=np.array([2]),
        ...     share=0.25,
        ...     intersections=right,
        ...     unions=np.array([[4, 2]]),
        ...     near_images=np.zeros((1, 15, 2, 4)),
        ...     inside_images=np.ones((1, 15, 2, 4)),
        ... )
        >>> scores.class_iou, scores.mean_iou
        (array([0.75, 0.5 ]), 0.625)
    """

    state: CalibrationState
    near: CalibrationState
    inside: CalibrationState
    sample: Predictions
    places: NDArray[np.int64]
    share: float
    intersections: _Counts
    unions: _Counts
    near_images: NDArray[np.float64]
    inside_images: NDArray[np.float64]

    @property
    def images(self) -> NDArray[np.int64]:
        """Number of the image that each pixel of the sample is from."""
        counts = (self.near_images + self.inside_images)[..., 0].sum(axis=(1, 2))
        found: NDArray[np.int64] = np.searchsorted(np.cumsum(counts), self.places, side="right")
        return found

    @property
    def class_iou(self) -> NDArray[np.float64]:
        """Intersection over union of each class over all images; NaN for a class that is nowhere."""
        return _ratio(self.intersections.sum(0), self.unions.sum(0))

    @property
    def mean_iou(self) -> float:
        """The mean over classes that are somewhere."""
        return float(np.nanmean(self.class_iou))

    def intervals(
        self, *, level: float = 0.95, n_resamples: int = 1000, seed: int = 0
    ) -> tuple[tuple[float, float], NDArray[np.float64]]:
        """Return intervals of the mean IoU and of each class's ``(k, 2)``, from resampling whole images.

        Pixels of one image depend on each other, so images and not pixels are drawn.
        """
        n = len(self.unions)
        random = numpy_generator(seed, "images")
        times = random.multinomial(n, np.full(n, 1 / n), size=n_resamples)
        drawn = _ratio(times @ self.intersections, times @ self.unions)
        tails = 100 * np.array([(1 - level) / 2, (1 + level) / 2])
        low, high = np.nanpercentile(np.nanmean(drawn, axis=1), tails)
        somewhere = self.unions.sum(0) > 0
        classes = np.full((drawn.shape[1], 2), np.nan)
        classes[somewhere] = np.nanpercentile(drawn[:, somewhere], tails, axis=0).T
        return (float(low), float(high)), classes


def _ratio(above: NDArray[np.int64], below: NDArray[np.int64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return result


def boundary_mask(labels: Tensor, *, reach: int = 3) -> Tensor:
    """Return which pixels have another label within some pixels of them; what is no class counts as another.

    Args:
        labels: Class numbers ``(n, h, w)``.
        reach: How many pixels, in each direction.

    Example:
        >>> boundary_mask(torch.tensor([[[0, 0, 0, 1, 1, 1]]]), reach=1).int()
        tensor([[[0, 0, 1, 1, 0, 0]]], dtype=torch.int32)
    """
    if reach < 1:
        raise ValueError(f"boundary_mask: `reach` must be at least 1, got {reach}.")
    numbers = labels[:, None].float()
    highest = max_pool2d(numbers, 2 * reach + 1, stride=1, padding=reach)
    lowest = -max_pool2d(-numbers, 2 * reach + 1, stride=1, padding=reach)
    return ((highest != numbers) | (lowest != numbers))[:, 0]


def score_dense(
    network: nn.Module,
    batches: Iterable[BatchLike],
    *,
    n_classes: int,
    ignore_index: int | None = None,
    n_pixels: int = 100_000,
    reach: int = 3,
    n_bins: int = 15,
    closed: str = "right",
    calibrator: Calibrator | None = None,
    split: str | None = None,
    seed: int = 0,
) -> DenseScores:
    """Score a segmentation network batch by batch, after a fitted calibrator if one is passed.

    Memory is needed for one batch, a sample of pixels, and a few kilobytes per image.

    Args:
        network: From images to logits ``(n, k, h, w)``, on the device of the batches.
        batches: Images with masks ``(n, h, w)``.
        n_classes: How many classes.
        ignore_index: Label of pixels that are no class.
        n_pixels: Size of the sample.
        reach: How near a boundary is near, in pixels.
        n_bins: Bins of the calibration errors.
        closed: Which side of a bin belongs to it.
        calibrator: A fitted calibrator that maps the logits of each batch before they are scored.
        split: The name of the split they come from.
        seed: Of the sample.

    Returns:
        Sums over all pixels, counts per image, and the sample.

    Raises:
        DataError: If there is no batch, or no pixel has a class.

    Example:
        >>> from equipoise.training import Loader
        >>> images, masks = torch.zeros(2, 3, 4, 4), torch.zeros(2, 4, 4, dtype=torch.int64)
        >>> source = Loader([(images, masks)])
        >>> found = source(epoch=0, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu"))
        >>> scores = score_dense(nn.Conv2d(3, 2, 1), found, n_classes=2, n_pixels=5)
        >>> scores.state.n_samples, len(scores.sample), scores.share
        (32, 5, 0.15625)
    """
    states = [CalibrationState(n_classes, n_bins=n_bins, closed=closed) for _ in range(2)]
    images: tuple[list[NDArray[np.float64]], ...] = ([], [])
    sample, counts = PixelSample(n_pixels, seed=seed), []
    kind = "logits" if calibrator is None else calibrator.gives
    with evaluating(network):
        for batch in batches:
            logits = as_logits(call_network(network, batch.inputs), where="score_dense").float().cpu()
            labels = batch.targets.cpu()
            known = (
                torch.ones_like(labels, dtype=torch.bool) if ignore_index is None else labels != ignore_index
            )
            near = boundary_mask(labels, reach=reach)
            scores = logits if calibrator is None else calibrator(logits)
            rows = scores.movedim(1, -1)
            for state, found, chosen in zip(states, images, (near & known, ~near & known), strict=True):
                found += [_add_image(state, kind, *part) for part in zip(rows, labels, chosen, strict=True)]
            sample.add(logits.movedim(1, -1)[known], labels[known])
            counts.append(_overlaps(scores.argmax(1), labels, known, n_classes))
    if not sample.seen:
        raise DataError("score_dense: there is no pixel with a class to score. Is the split empty?")
    together = CalibrationState(n_classes, n_bins=n_bins, closed=closed)
    for state in states:
        together.merge(state)
    intersections, unions = (np.concatenate(parts) for parts in zip(*counts, strict=True))
    return DenseScores(
        state=together,
        near=states[0],
        inside=states[1],
        sample=Predictions(logits=sample.logits, labels=sample.labels, ids=sample.places, split=split),
        places=sample.places.numpy(),
        share=len(sample.labels) / sample.seen,
        intersections=intersections,
        unions=unions,
        near_images=np.stack(images[0]),
        inside_images=np.stack(images[1]),
    )


def _add_image(
    state: CalibrationState, kind: str, scores: Tensor, labels: Tensor, chosen: Tensor
) -> NDArray[np.float64]:
    """Add some pixels of one image to a state, and return their sums by bin and correctness."""
    part = CalibrationState(state.n_classes, n_bins=state.n_bins, closed=state.closed)
    if chosen.any():
        rows = {kind: scores[chosen]}
        part.update(logits=rows.get("logits"), probs=rows.get("probs"), labels=labels[chosen])
        state.merge(part)
    sums: NDArray[np.float64] = np.asarray(part.sums.cells)[..., [0, 1, 3, 5]]
    return sums


def _overlaps(said: Tensor, labels: Tensor, known: Tensor, n_classes: int) -> tuple[_Counts, _Counts]:
    """Return intersections and unions per image and class, over pixels that have a class."""
    image = torch.arange(len(labels)).view(-1, 1, 1).expand_as(labels)[known]
    true, guess = labels[known], said[known]

    def count(numbers: Tensor, where: Tensor) -> Tensor:
        cells = torch.bincount(image[where] * n_classes + numbers[where], minlength=len(labels) * n_classes)
        return cells.view(len(labels), n_classes)

    everywhere = torch.ones_like(true, dtype=torch.bool)
    both = count(true, true == guess)
    return both.numpy(), (count(true, everywhere) + count(guess, everywhere) - both).numpy()
