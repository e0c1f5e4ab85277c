"""Temperature scaling: divide all logits by one number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.temperature_search import GRID, Optimum, ece_on_grid, fit_beta, fit_top_versus_all
from equipoise.core.array_functions import AnyArray
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions

__all__ = ["TemperatureScaling", "describe_temperature"]

_BOUNDS = {
    "sharp": "stopped on the way to T = 0: the logits separate the classes of the fit rows, so the NLL falls "
    "without end; use more or harder rows",
    "flat": "stopped on the way to an infinite T: the logits tell nothing about the labels; are rows and labels in "
    "the same order?",
}


@final
@dataclass(kw_only=True, eq=False)
class TemperatureScaling(Calibrator):
    r"""Divide the logits by a temperature, so that confidence shrinks or grows and no prediction changes.

    .. math:: p = \operatorname{softmax}(z / T)

    The likelihood is convex in 1/T, so the fit is exact and carries a certificate. The papers choose *T* by
    ECE on a grid instead, which is noisy; that is here to reproduce their tables.

    Args:
        criterion: ``"nll"``; ``"top_versus_all"``, the log-loss of the confidence as the probability of being right
            (Le Coz et al. 2024); or ``"ece"`` on the grid 0.1, 0.2, ... 10, where the first smallest wins.
        n_bins: Bins of the ECE.

    Example:
        >>> logits, labels = [[3.0, 0.0]] * 4, [0, 0, 0, 1]  # says 95%, is right in 3 of 4
        >>> calibrator = TemperatureScaling().fit(logits, labels)
        >>> round(calibrator.temperature, 4)
        2.7307
        >>> print(calibrator.result)
        overconfident: divide logits by 2.73 (NLL 0.798587 -> 0.562335)

    Reference:
        Guo et al. (2017), On calibration of modern neural networks.

    Differs from the authors' code:
        They take up to 50 steps of L-BFGS with rate 0.01 from T = 1.5 and may stop far from the optimum.
    """

    criterion: Literal["nll", "ece", "top_versus_all"] = "nll"
    n_bins: int = 15

    kind = "temperature"
    preserves_accuracy = True
    preserves_order = True

    def __post_init__(self) -> None:
        check_choice(
            self.criterion, ("nll", "ece", "top_versus_all"), where="TemperatureScaling", name="criterion"
        )

    @property
    def temperature(self) -> float:
        """The number that logits are divided by."""
        return 1.0 if self.result.identity else float(self.result.parameters["temperature"])

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: one."""
        return 1

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"temperature": ()}

    def _learn(self, predictions: Predictions) -> FitResult:
        data = predictions.logits, predictions.labels, predictions.weights
        if self.criterion == "nll":
            return _by_nll(fit_beta(*data))
        if self.criterion == "top_versus_all":
            beta, steps = fit_top_versus_all(*data)
            return FitResult(
                parameters={"temperature": np.array(1.0 / beta)},
                words=f"{describe_temperature(1.0 / beta)}, by top versus all",
                iterations=steps,
            )
        best, ece = ece_on_grid(*data, n_bins=self.n_bins)
        temperature = float(GRID[best])
        return FitResult(
            parameters={"temperature": np.array(temperature)},
            words=describe_temperature(temperature),
            certificate={"ece": float(ece[best])},
            warnings=("the best temperature is the end of the grid",) if best in (0, len(GRID) - 1) else (),
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return logits / parameters["temperature"]


def _by_nll(found: Optimum) -> FitResult:
    return FitResult(
        parameters={"temperature": np.array(1.0 / found.beta)},
        words=describe_temperature(1.0 / found.beta),
        converged=found.bound is None,
        iterations=found.iterations,
        certificate={"gradient": found.gradient, "gap": found.gap},
        warnings=() if found.bound is None else (_BOUNDS[found.bound],),
        nll_before=found.nll_before,
        nll_after=found.nll,
    )


def describe_temperature(temperature: float) -> str:
    """Say in words what a temperature means.

    Example:
        >>> describe_temperature(2.37), describe_temperature(0.5), describe_temperature(1.004)
        ('overconfident: divide logits by 2.37',
         'underconfident: multiply logits by 2', 'neither over- nor underconfident: T = 1.004')
    """
    if abs(temperature - 1) < 0.01:
        return f"neither over- nor underconfident: T = {temperature:.4g}"
    if temperature > 1:
        return f"overconfident: divide logits by {temperature:.3g}"
    return f"underconfident: multiply logits by {1 / temperature:.3g}"
