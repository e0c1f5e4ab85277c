"""Calibrators chosen and fitted on held-out predictions, scored on others."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from equipoise.calibrators import Calibrator, Choice, TemperatureScaling, choose
from equipoise.core.predictions import Predictions
from equipoise.evaluate.comparison import compare
from equipoise.evaluate.scoring import score
from equipoise.report.records import Advice, AfterCalibrator, Option

__all__ = ["advice_of", "remedies_of"]


def advice_of(choice: Choice) -> Advice:
    """Return the chosen calibrator as a report shows it.

    Args:
        choice: From :func:`equipoise.calibrators.choose`.

    Returns:
        The recommendation, what was tried, and lines to paste.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> logits = 2 * rng.normal(size=(500, 3))
        >>> labels = (logits + rng.gumbel(size=(500, 3))).argmax(1)
        >>> held_out = Predictions(logits=3 * logits, labels=labels, split="calib")
        >>> advice_of(choose(held_out, candidates=["temperature"])).code.splitlines()[-1]
        'calibrated = calibrator(test)'
    """
    words = choice.reason
    if isfinite(choice.improvement) and choice.calibrator.kind != "identity":
        low, high = choice.interval
        words += (
            f" On rows that it was not fitted on, it lowers the log-loss by {choice.improvement:.3f} "
            f"(95% interval {low:.3f} to {high:.3f})."
        )
    return Advice(
        recommendation=words,
        options=tuple(
            Option(
                name=trial.name,
                n_parameters=trial.n_parameters,
                log_loss=trial.log_loss,
                improvement=trial.improvement,
                ece=trial.ece,
                note=trial.note,
            )
            for trial in choice.trials
        ),
        code=_code(choice.calibrator),
        chosen="" if choice.calibrator.kind == "identity" else choice.calibrator.kind,
    )


def _code(calibrator: Calibrator) -> str:
    if calibrator.kind == "identity":
        return ""
    name = type(calibrator).__name__
    return (
        f"from equipoise.calibrators import {name}\n\n"
        f"calibrator = {name}().fit(calib)\ncalibrated = calibrator(test)"
    )


def remedies_of(
    tested: Predictions,
    held_out: Predictions,
    *,
    candidates: Sequence[str | Calibrator] | None = None,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    clusters: Any = None,
    target: str | None = None,
    positive: str | int | None = None,
) -> tuple[Advice, tuple[AfterCalibrator, ...], dict[str, Predictions]]:
    """Choose a calibrator on held-out predictions, and score it and temperature scaling on others.

    Args:
        tested: Predictions that are reported.
        held_out: Predictions of the same model on other rows.
        candidates: Calibrators to try; by default those of :func:`equipoise.calibrators.choose`.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        n_resamples: Bootstrap resamples behind them.
        seed: The same seed gives the same answer.
        clusters: Where the tested rows depend on each other: one value per row, or the name of a column of groups.
        target: The probability that is scored.
        positive: The positive class.

    Returns:
        The advice, the predictions' scores after each calibrator, and the predictions themselves after each.

    Raises:
        SplitError: If the held-out rows are from ``test``, or among the tested rows.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> logits = 2 * rng.normal(size=(800, 3))
        >>> labels = (logits + rng.gumbel(size=(800, 3))).argmax(1)
        >>> rows = Predictions(logits=3 * logits, labels=labels)
        >>> tested, held_out = (rows.take(slice(start, start + 400)) for start in (0, 400))
        >>> advice, after, _ = remedies_of(tested, held_out, candidates=["temperature"])
        >>> [one.name for one in after]
        ['temperature']
    """
    choice = choose(held_out, candidates=candidates, seed=seed)
    chosen = choice.calibrator
    fitted = {chosen.kind: chosen}
    if chosen.kind != "temperature" and held_out.has_scores:
        fitted = {"temperature": TemperatureScaling().fit(held_out), **fitted}
    settings: dict[str, Any] = {"n_bins": n_bins, "closed": closed, "level": level}
    settings |= {"n_resamples": n_resamples, "seed": seed, "clusters": clusters}
    settings |= {"target": target, "positive": positive}
    after, predictions = [], {}
    for name, calibrator in fitted.items():
        if name == "identity":
            continue
        mapped = predictions[name] = calibrator(tested)
        card, versus = score(mapped, **settings), compare(tested, mapped, **settings)
        value = calibrator.result.parameters.get("temperature")
        after.append(
            AfterCalibrator(
                name=name,
                scores=(card,),
                words="; ".join((calibrator.result.words, *calibrator.result.notes)),
                temperatures=() if value is None else (float(value),),
                versus=versus,
                warnings=calibrator.result.warnings,
            )
        )
    return advice_of(choice), tuple(after), predictions
