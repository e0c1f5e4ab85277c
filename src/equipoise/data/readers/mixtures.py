"""Gaussian mixtures: data whose true posterior is known, so that calibration can be judged without noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.core.seeds import numpy_generator
from equipoise.data.arrays import from_arrays
from equipoise.data.dataset import Dataset

__all__ = ["GaussianMixture", "gaussian_mixture", "mixture", "top_label_error"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianMixture:
    """One spherical Gaussian per class, all of one spread.

    Attributes:
        means: Centers ``(k, d)``, float64.
        priors: Share of each class ``(k,)``, float64.
        spread: Standard deviation in every direction.

    Example:
        >>> model = gaussian_mixture(n_classes=3, n_features=2)
        >>> model.posterior(torch.zeros(1, 2)).sum().item()
        1.0
    """

    means: Tensor
    priors: Tensor
    spread: float

    def sample(self, n: int, *, seed: int) -> tuple[Tensor, Tensor]:
        """Draw inputs and labels.

        Args:
            n: How many.
            seed: Another seed gives others.

        Returns:
            Features ``(n, d)`` as float32, and labels ``(n,)``.
        """
        random = numpy_generator(seed, "mixture", "sample")
        labels = torch.from_numpy(random.choice(len(self.priors), size=n, p=self.priors.numpy()))
        noise = torch.from_numpy(random.standard_normal((n, self.means.shape[1])))
        return (self.means[labels] + self.spread * noise).float(), labels.long()

    def posterior(self, inputs: Tensor) -> Tensor:
        r"""Return the true probability of each class.

        .. math:: P(y = k \mid x) \propto \pi_k \exp(-\|x - \mu_k\|^2 / 2 \sigma^2)

        Args:
            inputs: Features ``(n, d)``.

        Returns:
            Probabilities ``(n, k)``, float64.
        """
        x = inputs.double()
        # The square of x is the same for all classes and cancels.
        score = (x @ self.means.T - 0.5 * (self.means**2).sum(1)) / self.spread**2
        return torch.softmax(score + self.priors.log(), dim=1)

    def true_calibration_error(self, inputs: Tensor, probs: Tensor, *, n_groups: int | None = None) -> float:
        r"""Return the top-label calibration error of predictions, with the posterior in place of labels.

        .. math:: E\,\bigl|\, \max_k p_k - P(y = \hat y \mid \max_k p_k) \,\bigr|

        Labels do not enter, so nothing of the error is label noise. What is left of the conditioning is done
        in many groups of nearly equal confidence.

        Args:
            inputs: Features ``(n, d)``.
            probs: What was predicted for them, ``(n, k)``.
            n_groups: Groups of equal size; by default the square root of n.

        Returns:
            A number in [0, 1]. Zero for the posterior itself.

        Raises:
            DataError: If shapes do not fit together.
        """
        if probs.shape != (len(inputs), len(self.priors)):
            raise DataError(
                f"true_calibration_error: `probs` must have shape ({len(inputs)}, {len(self.priors)}), got "
                f"{tuple(probs.shape)}. Pass one row per input."
            )
        return top_label_error(probs, self.posterior(inputs), n_groups=n_groups)


def top_label_error(probs: Tensor, posterior: Tensor, *, n_groups: int | None = None) -> float:
    """Return the top-label calibration error of predictions where true probabilities are known.

    Args:
        probs: What was predicted ``(n, k)``.
        posterior: What is true ``(n, k)``.
        n_groups: Groups of nearly equal confidence, of equal size; by default the square root of n.

    Example:
        >>> truth = torch.tensor([[0.8, 0.2], [0.4, 0.6]])
        >>> round(top_label_error(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), truth), 3)
        0.1
    """
    confidence, predicted = probs.double().max(dim=1)
    truth = posterior.double().gather(1, predicted[:, None])[:, 0]
    gap = (confidence - truth)[confidence.argsort(stable=True)]
    groups = gap.tensor_split(n_groups or max(math.isqrt(len(gap)), 1))
    return sum(abs(float(group.sum())) for group in groups) / len(gap)


def gaussian_mixture(
    *, n_classes: int = 4, n_features: int = 2, separation: float = 2.0, imbalance: float = 1.0, seed: int = 0
) -> GaussianMixture:
    """Make a mixture with centers in random directions.

    Args:
        n_classes: How many classes.
        n_features: How many columns.
        separation: Distance of each center from the origin, in spreads. Smaller means harder.
        imbalance: How many times as frequent the first class is as the last.
        seed: Of the directions.

    Returns:
        The mixture; its spread is one.

    Example:
        >>> gaussian_mixture(n_classes=2, imbalance=3.0).priors
        tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    if n_classes < 2 or n_features < 1 or imbalance < 1:
        raise ValueError(
            f"gaussian_mixture: two classes, one column and an imbalance of 1 are the least, got "
            f"{n_classes}, "
            f"{n_features} and {imbalance}."
        )
    direction = torch.from_numpy(numpy_generator(seed, "mixture").standard_normal((n_classes, n_features)))
    means = separation * direction / direction.norm(dim=1, keepdim=True)
    weight = torch.logspace(0, -1, n_classes, base=imbalance, dtype=torch.float64)
    return GaussianMixture(means=means, priors=weight / weight.sum(), spread=1.0)


def mixture(
    *,
    n: int = 10_000,
    n_classes: int = 4,
    n_features: int = 2,
    separation: float = 2.0,
    imbalance: float = 1.0,
    seed: int = 0,
    tune: float = 0.1,
    calib: float = 0.1,
    test: float = 0.2,
) -> Dataset:
    """Draw a dataset from a Gaussian mixture; its ``soft_labels`` are the true posterior.

    Args:
        n: How many samples.
        n_classes: How many classes.
        n_features: How many columns.
        separation: Distance of each center from the origin, in spreads.
        imbalance: How many times as frequent the first class is as the last.
        seed: Of centers, samples and splits. ``gaussian_mixture`` with the same arguments is the
            distribution.
        tune: Size of ``tune``: an int counts rows, a float is a share.
        calib: Size of ``calib``.
        test: Size of ``test``.

    Returns:
        Features with labels and posterior.

    Example:
        >>> data = mixture(n=100)
        >>> tuple(data.soft_labels.shape)
        (100, 4)
    """
    model = gaussian_mixture(
        n_classes=n_classes, n_features=n_features, separation=separation, imbalance=imbalance, seed=seed
    )
    inputs, labels = model.sample(n, seed=seed)
    return from_arrays(
        inputs,
        labels,
        name="mixture",
        class_names=[str(number) for number in range(n_classes)],
        seed=seed,
        tune=tune,
        calib=calib,
        test=test,
        soft_labels=model.posterior(inputs).float(),
    )
