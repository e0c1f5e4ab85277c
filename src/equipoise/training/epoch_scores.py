"""The numbers a run is followed by."""

from __future__ import annotations

from equipoise.calibrators import TemperatureScaling
from equipoise.core.predictions import Predictions
from equipoise.metrics import CalibrationState, negative_log_likelihood
from equipoise.metrics.facts import metrics_where
from equipoise.metrics.values import state_metrics

__all__ = ["scores_on_test", "tune_scores"]


def tune_scores(predictions: Predictions) -> dict[str, float]:
    """Return accuracy, negative log-likelihood, calibration error, and what the best temperature would make of it.

    Example:
        >>> tune_scores(Predictions(probs=[[0.75, 0.25], [0.25, 0.75]], labels=[0, 0]))
        {'tune_accuracy': 0.5, 'tune_nll': 0.8369..., 'tune_ece': 0.25,
         'tune_nll_scaled': 0.6931..., 'tune_temperature': ...}
    """
    scaled = TemperatureScaling().fit(predictions)
    return {
        **_main_scores(predictions, "tune"),
        "tune_nll_scaled": scaled.result.nll_after,
        "tune_temperature": scaled.temperature,
    }


def scores_on_test(predictions: Predictions, *, temperature: float | None = None) -> dict[str, float]:
    """Return what curves over training show of ``test``; nothing is fitted on it.

    Args:
        predictions: What the network says about ``test`` after an epoch.
        temperature: The one that ``tune`` gave, for the negative log-likelihood after it.

    Example:
        >>> scores_on_test(Predictions(probs=[[0.75, 0.25], [0.25, 0.75]], labels=[0, 0]))
        {'test_accuracy': 0.5, 'test_nll': 0.8369..., 'test_ece': 0.25}
    """
    scores = _main_scores(predictions, "test")
    if temperature is None:
        return scores
    cooled = predictions.with_scores(logits=predictions.logits / temperature)
    return {**scores, "test_nll_scaled": negative_log_likelihood(cooled)}


def _main_scores(predictions: Predictions, split: str) -> dict[str, float]:
    """Return what is read from one pass over the rows."""
    values = state_metrics(CalibrationState.of(predictions))
    return {f"{split}_{key}": values[key] for key in metrics_where(is_main=True)}
