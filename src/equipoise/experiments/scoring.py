"""Predictions of a run, after a calibrator, as tidy rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.evaluate import score
from equipoise.experiments.catalogue import CATALOGUE
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.spec import Spec

if TYPE_CHECKING:
    from equipoise.experiments.run import RunOptions

__all__ = ["Calibrated", "calibrated_predictions", "score_rows"]

_KEPT = ("metric", "value", "low", "high", "p_value", "n_samples", "n_bins", "level")
# Maps of more numbers are kept as binary files.
_LARGE = 10_000


def score_rows(spec: Spec, target: RunFolder, calibrator: str, options: RunOptions) -> list[dict[str, Any]]:
    """Return one row per split and metric; without calibration ``tune`` and ``calib`` are scored too."""
    splits = target.splits() if calibrator == "identity" else ["test"]
    about = {
        "run": target.name,
        "data": spec.data.name,
        "model": spec.model.name,
        "method": spec.objective.label,
        "seed": spec.seed,
        "calibrator": calibrator,
    }
    rows: list[dict[str, Any]] = []
    for split in splits:
        after = calibrated_predictions(target, calibrator, split, keep=True)
        card = score(after.predictions, n_bins=options.n_bins, n_resamples=options.n_resamples)
        fit = {"split": split, "temperature": after.temperature, "words": after.words}
        rows += [{**about, **fit, **{key: row[key] for key in _KEPT}} for row in card.rows()]
    return rows


class Calibrated(NamedTuple):
    """Predictions after a calibrator.

    Attributes:
        predictions: What it made of them.
        words: What it found, as a sentence.
        temperature: The number logits are divided by, for maps that have one.
    """

    predictions: Predictions
    words: str = ""
    temperature: float | None = None


def calibrated_predictions(
    target: RunFolder, calibrator: str, split: str, *, keep: bool = False
) -> Calibrated:
    """Return a run's predictions on a split after a calibrator, which is fitted on ``calib``.

    Args:
        target: The run.
        calibrator: Key of the post-hoc map.
        split: What to map.
        keep: Whether to write the fitted map into the folder, which reading alone must not need.

    Returns:
        The predictions, and what the map found.
    """
    predictions = target.predictions(split)
    if calibrator == "identity":
        return Calibrated(predictions)
    if not target.predictions_file("calib").exists():
        raise SpecError(
            f"{target.path}: the data have no 'calib' split to fit {calibrator!r} on. Use 'identity'."
        )
    entry = look_up(calibrator, CATALOGUE["calibrators"], what="calibrator")
    fitted = entry.make().fit(target.predictions("calib"))
    if keep:
        folder = target.path / "calibrators"
        folder.mkdir(exist_ok=True)
        large = fitted.n_parameters(predictions.n_classes) > _LARGE
        fitted.save(folder / f"{calibrator}{'.safetensors' if large else '.json'}")
    value = fitted.result.parameters.get("temperature")
    return Calibrated(fitted(predictions), fitted.result.words, None if value is None else float(value))
