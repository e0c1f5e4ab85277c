"""Augmentation of whole batches with tensor operations; the random numbers come in from outside."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

__all__ = [
    "Augment",
    "cut_mix",
    "cut_out",
    "erase_boxes",
    "flip_images",
    "jitter_colors",
    "mix_up",
    "normalize",
    "shift_crop",
    "take_rows",
]

#: How much each channel adds to the gray of an image.
_GRAY = (0.299, 0.587, 0.114)
#: Smallest and largest share of an image that is erased, and the widest ratio of its sides.
_ERASED, _LONGEST = (0.02, 1 / 3), 10 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Augment:
    """What is done to a training batch, in this order.

    Attributes:
        area: The smallest part of a streamed image that may be cut out and resized, 0.08 in most recipes
            for large images; None takes the center.
        crop_padding: Pixels of black border from which a part of the old size is cut; 4 for CIFAR.
        flip: Mirror every second image from left to right.
        cutout: Side of a square that is set to the mean color; 16 is usual for CIFAR-10.
        mixup: Parameter of the beta distribution from which the mixing weight of a batch is drawn;
            zero does not mix. Targets become probabilities.
        cutmix: The same for CutMix, which replaces a rectangle of each image by that of another; 1 is usual.
        regmixup: The same for RegMixup, which trains on the batch and its mixed copy at once: batches are twice as
            long. 20 for CIFAR-10 and 10 for CIFAR-100 in the paper.
        jitter: Brightness, contrast and saturation of each image are multiplied by numbers within this of one.
        erase: Probability that a rectangle of an image is set to the mean color.

    Example:
        >>> Augment(crop_padding=4, flip=True).mixup
        0.0
    """

    area: float | None = None
    crop_padding: int = 0
    flip: bool = False
    cutout: int = 0
    mixup: float = 0.0
    cutmix: float = 0.0
    regmixup: float = 0.0
    jitter: float = 0.0
    erase: float = 0.0

    def __post_init__(self) -> None:
        if self.area is not None and not 0 < self.area <= 1:
            raise ValueError(f"Augment: `area` must lie in (0, 1], got {self.area}. Most recipes use 0.08.")
        if self.erase > 1 or self.jitter > 1:
            raise ValueError(
                f"Augment: `jitter` and `erase` must lie in [0, 1], got {self.jitter} and {self.erase}. Usual are "
                "0.4 and 0.25."
            )
        for name in ("crop_padding", "cutout", "mixup", "cutmix", "regmixup", "jitter", "erase"):
            if getattr(self, name) < 0:
                raise ValueError(f"Augment: `{name}` must not be negative, got {getattr(self, name)}.")
        mixing = [name for name in ("mixup", "cutmix", "regmixup") if getattr(self, name)]
        if len(mixing) > 1:
            raise ValueError(
                f"Augment: `{mixing[0]}` and `{mixing[1]}` exclude each other. Set one of them to 0."
            )

    @property
    def beta(self) -> float:
        """Parameter of the beta distribution of the mixing weight, whichever way samples are mixed; 0 if not."""
        return self.mixup or self.cutmix or self.regmixup


def shift_crop(images: Tensor, top: Tensor, left: Tensor, *, padding: int, fill: int = 0) -> Tensor:
    """Pad images on all sides, and cut a part of the old size out of each.

    Args:
        images: ``(n, c, h, w)``, best stored channels-last.
        top: First row of the part in the padded image, one per image, in ``[0, 2 * padding]``.
        left: First column, likewise.
        padding: Pixels on each side.
        fill: What the border holds.

    Returns:
        Images of the same shape, stored channels-last.

    Example:
        >>> image = torch.arange(4, dtype=torch.uint8).view(1, 1, 2, 2)
        >>> shift_crop(image, torch.tensor([2]), torch.tensor([1]), padding=1)
        tensor([[[[2, 3],
                  [0, 0]]]], dtype=torch.uint8)
    """
    n, channels, height, width = images.shape
    padded = pad(images.permute(0, 2, 3, 1), (0, 0, padding, padding, padding, padding), value=fill)
    tall = height + 2 * padding
    # Sorted by column offset, images with one offset are cut together: a few long copies instead of many
    # short.
    order = torch.argsort(left, stable=True)
    lines = (order * tall + top[order])[:, None] + torch.arange(height, device=images.device)
    rows = take_rows(padded.reshape(n * tall, -1), lines.flatten()).view(n, height, -1)
    part = torch.empty(n, height, width * channels, dtype=images.dtype, device=images.device)
    start = 0
    for offset, count in enumerate(torch.bincount(left, minlength=2 * padding + 1).tolist()):
        first = offset * channels
        part[start : start + count] = rows[start : start + count, :, first : first + width * channels]
        start += count
    back = torch.argsort(order)
    return take_rows(part, back).view(n, height, width, channels).permute(0, 3, 1, 2)


def flip_images(images: Tensor, where: Tensor) -> Tensor:
    """Mirror some images from left to right.

    Args:
        images: ``(n, ..., w)``.
        where: True for those to mirror, ``(n,)``.

    Returns:
        New images; the given ones are not touched.

    Example:
        >>> flip_images(torch.tensor([[1, 2], [3, 4]]), torch.tensor([True, False]))
        tensor([[2, 1],
                [3, 4]])
    """
    rows = images.permute(0, 2, 3, 1) if images.ndim == 4 else images
    chosen = where.nonzero().flatten()
    mirrored = take_rows(rows, chosen).flip(2 if images.ndim == 4 else -1)
    order = torch.arange(len(rows), device=rows.device)
    order[chosen] = torch.arange(len(rows), len(rows) + len(chosen), device=rows.device)
    flipped = take_rows(torch.cat([rows, mirrored]), order)
    return flipped.permute(0, 3, 1, 2) if images.ndim == 4 else flipped


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """Return ``values[index]``, several times faster for rows of many small numbers.

    Indexing moves element by element, selecting from a matrix moves whole rows.

    Args:
        values: ``(n, ...)``, stored row after row.
        index: Row numbers.

    Returns:
        The rows, in the order of ``index``.

    Example:
        >>> take_rows(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
        tensor([[3, 4],
                [3, 4]])
    """
    shape = (len(index), *values.shape[1:])
    return values.reshape(len(values), -1).index_select(0, index).view(shape)


def cut_out(images: Tensor, row: Tensor, column: Tensor, *, side: int) -> Tensor:
    """Set a square of each image to zero, which is the mean once images are normalized.

    The center may be anywhere, so that part of the square may lie outside.

    Args:
        images: ``(n, c, h, w)``, normalized.
        row: Row of each center.
        column: Column of each center.
        side: Side of the square.

    Returns:
        New images.

    Example:
        >>> cut_out(torch.ones(1, 1, 2, 2), torch.tensor([0]), torch.tensor([0]), side=2)
        tensor([[[[0., 1.],
                  [1., 1.]]]])

    Reference:
        DeVries and Taylor (2017), Improved Regularization of Convolutional Neural Networks with Cutout.
    """
    height, width = images.shape[-2:]
    inside_rows = _inside(row - side // 2, side, height)
    inside_columns = _inside(column - side // 2, side, width)
    square = inside_rows[:, None, :, None] & inside_columns[:, None, None, :]
    return images.masked_fill(square, 0.0)


def _inside(start: Tensor, side: int | Tensor, length: int) -> Tensor:
    place = torch.arange(length, device=start.device)
    end = start + side
    return (place >= start[:, None]) & (place < end[:, None])


def erase_boxes(images: Tensor, chance: Tensor, *, share: float) -> Tensor:
    """Set a rectangle of some images to zero, which is the mean once images are normalized.

    Args:
        images: ``(n, c, h, w)``, normalized.
        chance: Five numbers in [0, 1) for each image: whether, how large, how wide, and where.
        share: Probability that an image loses a rectangle of 2 to 33% of its pixels.

    Returns:
        New images.

    Example:
        >>> chance = torch.tensor([[0.0, 0.5, 0.5, 0.0, 0.0]])
        >>> erase_boxes(torch.ones(1, 1, 4, 4), chance, share=1.0)[0, 0, 0]
        tensor([0., 0., 1., 1.])

    Reference:
        Zhong et al. (2020), Random Erasing Data Augmentation.

    Differs from the authors' code:
        Erased pixels get the mean color, not noise; rectangles too long for the image are cut to fit, not redrawn.
    """
    height, width = images.shape[-2:]
    happens, size, shape, down, right = chance.unbind(1)
    pixels = height * width * (_ERASED[0] + (_ERASED[1] - _ERASED[0]) * size)
    ratio = _LONGEST ** (2 * shape - 1)
    tall = (pixels * ratio).sqrt().round().clamp(1, height)
    wide = (pixels / ratio).sqrt().round().clamp(1, width)
    top, left = ((height - tall + 1) * down).floor(), ((width - wide + 1) * right).floor()
    rows, columns = _inside(top, tall, height), _inside(left, wide, width)
    box = rows[:, None, :, None] & columns[:, None, None, :] & (happens < share)[:, None, None, None]
    return images.masked_fill(box, 0.0)


def jitter_colors(images: Tensor, chance: Tensor, *, strength: float) -> Tensor:
    """Change brightness, then contrast, then saturation of each image.

    Args:
        images: uint8 ``(n, c, h, w)``; gray ones have no saturation to change.
        chance: Three numbers in [0, 1) for each image.
        strength: Factors are drawn evenly from within this of one.

    Returns:
        New uint8 images.

    Example:
        >>> gray = torch.full((1, 1, 1, 2), 100, dtype=torch.uint8)
        >>> jitter_colors(gray, torch.tensor([[1.0, 0.5, 0.5]]), strength=0.5)
        tensor([[[[150, 150]]]], dtype=torch.uint8)

    Differs from the authors' code:
        The usual code draws the order of the three for each image; here it is always the same.
    """
    brighter, sharper, fuller = (
        (1 + strength * (2 * chance - 1)).to(torch.float32)[..., None, None, None].unbind(1)
    )
    changed = (images.float() * brighter).clamp_(0, 255)
    changed = torch.lerp(_gray(changed).mean(dim=(2, 3), keepdim=True), changed, sharper).clamp_(0, 255)
    if images.shape[1] == len(_GRAY):
        changed = torch.lerp(_gray(changed), changed, fuller).clamp_(0, 255)
    return changed.round_().to(torch.uint8)


def _gray(images: Tensor) -> Tensor:
    if images.shape[1] != len(_GRAY):
        return images
    weights = torch.tensor(_GRAY, device=images.device).view(1, -1, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def mix_up(
    inputs: Tensor, labels: Tensor, partner: Tensor, *, weight: float, n_classes: int
) -> tuple[Tensor, Tensor]:
    """Mix each input with another, and the targets likewise.

    Args:
        inputs: ``(n, ...)`` floating point.
        labels: Class numbers ``(n,)``.
        partner: Which other row each row is mixed with.
        weight: The share of the row itself.
        n_classes: How many classes.

    Returns:
        Mixed inputs, and target probabilities ``(n, k)``.

    Example:
        >>> x, p = mix_up(torch.eye(2), torch.tensor([0, 1]), torch.tensor([1, 0]), weight=0.75, n_classes=2)
        >>> p
        tensor([[0.7500, 0.2500],
                [0.2500, 0.7500]])

    Reference:
        Zhang et al. (2018), mixup: Beyond Empirical Risk Minimization.
    """
    targets = one_hot(labels, n_classes).to(inputs.dtype)
    return inputs.lerp(inputs[partner], 1 - weight), targets.lerp(targets[partner], 1 - weight)


def cut_mix(
    images: Tensor,
    labels: Tensor,
    partner: Tensor,
    *,
    weight: float,
    center: tuple[float, float],
    n_classes: int,
) -> tuple[Tensor, Tensor]:
    """Replace a rectangle of each image by that of another, and mix the targets by the areas.

    Args:
        images: ``(n, c, h, w)`` floating point.
        labels: Class numbers ``(n,)``.
        partner: Which other image each image takes its rectangle from.
        weight: The share of the image itself, before the rectangle is cut off at the border.
        center: Place of the rectangle's center, in shares of height and width.
        n_classes: Number of classes.

    Returns:
        Mixed images, and target probabilities ``(n, k)``.

    Example:
        >>> images = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 1, 2, 2)
        >>> mixed, targets = cut_mix(
        ...     images, torch.tensor([0, 1]), torch.tensor([1, 0]), weight=0.75, center=(0.0, 0.0), n_classes=2
        ... )
        >>> mixed[0, 0], targets[0]
        (tensor([[0., 0.],
                [0., 0.]]), tensor([1., 0.]))

    Reference:
        Yun et al. (2019), CutMix: regularization strategy to train strong classifiers with localizable features.

    Differs from the authors' code:
        Every batch is mixed; on CIFAR they mix every second one by chance. As there, all images of a batch have one
        rectangle, and the part of it outside the image is lost.
    """
    height, width = images.shape[-2:]
    share = (1 - weight) ** 0.5
    spans = []
    for length, place in ((height, center[0]), (width, center[1])):
        side, middle = int(length * share), min(int(length * place), length - 1)
        spans.append(slice(max(middle - side // 2, 0), min(middle + side // 2, length)))
    rows, columns = spans
    mixed = images.clone()
    mixed[:, :, rows, columns] = images[partner][:, :, rows, columns]
    area = max(rows.stop - rows.start, 0) * max(columns.stop - columns.start, 0)
    targets = one_hot(labels, n_classes).to(images.dtype)
    return mixed, targets.lerp(targets[partner], area / (height * width))


def normalize(images: Tensor, mean: Tensor | None, std: Tensor | None) -> Tensor:
    """Turn uint8 images into float32, scale to [0, 1], subtract the mean and divide by the spread.

    Args:
        images: uint8 ``(n, c, h, w)``.
        mean: Per channel, of images scaled to [0, 1]; None subtracts nothing.
        std: Per channel; None divides by nothing.

    Returns:
        float32 images, stored channels-last.

    Example:
        >>> white = torch.full((1, 1, 1, 1), 255, dtype=torch.uint8)
        >>> normalize(white, torch.tensor([0.5]), torch.tensor([0.25]))
        tensor([[[[2.]]]])
    """
    n, channels, height, width = images.shape
    offset = torch.zeros(channels) if mean is None else mean
    spread = torch.ones(channels) if std is None else std
    # Repeated along a whole line, the factors meet long runs of memory; three at a time are seven times
    # slower.
    scale = (1 / (255 * spread)).to(images.device).repeat(width)
    shift = (-offset / spread).to(images.device).repeat(width)
    values = images.permute(0, 2, 3, 1).to(torch.float32, memory_format=torch.contiguous_format)
    values.view(n, height, width * channels).mul_(scale).add_(shift)
    return values.permute(0, 3, 1, 2)
