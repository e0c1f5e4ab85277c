"""The digits that come with scikit-learn: small, real, always there."""

from __future__ import annotations

import numpy as np

from equipoise.core.errors import require
from equipoise.core.seeds import numpy_generator
from equipoise.data.arrays import as_images, from_arrays
from equipoise.data.dataset import Dataset
from equipoise.data.readers.class_names import DIGITS

__all__ = ["digits"]


def digits(
    *, seed: int = 0, tune: float = 0.1, calib: float = 0.1, test: float = 0.2, noise: float = 0.0
) -> Dataset:
    """Read 1,797 gray images of handwritten digits, 8 x 8 pixels each.

    Args:
        seed: Of the splits.
        tune: Size of ``tune``: an int counts rows, a float is a share.
        calib: Size of ``calib``.
        test: Size of ``test``.
        noise: Standard deviation of Gaussian noise, as a share of the range from black to white. The digits are
            easy, so that methods tie; with noise of 0.3 or more classes overlap and networks grow overconfident.

    Returns:
        Images whose 17 gray levels are spread over 0 to 255.

    Example:
        >>> data = digits()
        >>> {split: len(rows) for split, rows in data.splits.items()}
        {'train': 1078, 'tune': 180, 'calib': 180, 'test': 359}

    Reference:
        Alpaydin and Kaynak (1998), Optical Recognition of Handwritten Digits.
    """
    stored = require("sklearn.datasets", extra="data", purpose="read the digits").load_digits()
    if not 0 <= noise <= 1:
        raise ValueError(f"digits: `noise` must lie in [0, 1], got {noise}. 0 leaves the images as they are.")
    levels = stored.images * (255 / 16)
    if noise:
        # The same noise whatever the seed of the splits: it is part of the data.
        levels = levels + 255 * noise * numpy_generator(0, "digits", "noise").standard_normal(levels.shape)
    pixels = np.rint(np.clip(levels, 0, 255)).astype(np.uint8)
    return from_arrays(
        as_images(pixels),
        stored.target,
        name="digits",
        class_names=DIGITS,
        seed=seed,
        tune=tune,
        calib=calib,
        test=test,
        mean=(0.3053,),
        std=(0.3760,),
    )
