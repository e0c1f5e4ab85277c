"""Calibrators applied to files: the user's table comes back, with other scores."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.by_group import CalibrationByGroup
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.reading.columns import Columns, check_columns, takes_columns
from equipoise.core.reading.files import AnyPath, SourceLike, ending_of
from equipoise.core.reading.rewriting import RewrittenTable, ScoreKind, ScoreTable

__all__ = ["calibrate_file"]


@takes_columns
def calibrate_file(
    calibrator: Calibrator,
    path: SourceLike,
    output: AnyPath,
    *,
    scores: ScoreKind | None = None,
    suffix: str = "",
    force: bool = False,
    **columns: Unpack[Columns],
) -> RewrittenTable:
    r"""Write a table of predictions again, with calibrated scores in place of the raw ones.

    Every other column, the order of columns and rows, names and types stay as they are. Notes on the calibrator go to
    the file's metadata, for CSV files to ``NAME.csv.equipoise.json`` beside them: :func:`equipoise.read_predictions`
    reads them, so that rows which the calibrator was fitted on are not scored. Tables in CSV and Parquet are read and
    written chunk by chunk, in memory that does not grow with them.

    Args:
        calibrator: A fitted calibrator.
        path: What :func:`equipoise.read_predictions` takes.
        output: The new file; its ending names the format.
        scores: ``"logits"`` or ``"probs"``; by default what the scores of the table are.
        suffix: If given, the raw scores stay, and the calibrated ones stand in further columns of their names with
            this suffix.
        force: Whether scores that went through a calibrator before are calibrated again.
        **columns: As in :func:`equipoise.read_predictions`.

    Returns:
        The new file, the file of its notes, and what is in it.

    Raises:
        DataError: If the scores were calibrated before, the calibrator does not fit them, or the format cannot keep
            the table.

    Example:
        >>> import tempfile
        >>> from equipoise.calibrators import TemperatureScaling
        >>> halved = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.csv").write_text("day,logit_cat,logit_dog\n2026-03-01,3,0\n")
        >>> calibrate_file(halved, folder / "a.csv", folder / "b.csv").columns
        ('logit_cat', 'logit_dog')
        >>> (folder / "b.csv").read_text().splitlines()[0]
        'day,logit_cat,logit_dog'
    """
    target = Path(output)
    if ending_of(target) == ".npy":
        raise DataError(f"{target.name}: a .npy file holds one array and no notes. Write .npz.")
    checked = check_columns(columns, where="calibrate_file")
    if isinstance(calibrator, CalibrationByGroup):
        checked["groups"] = [calibrator.by]
    table = ScoreTable(path, checked)
    if table.is_calibrated and not force:
        raise DataError(
            f"{table.where}: a calibrator was applied to these predictions already; twice makes them worse. "
            "Take the raw ones, or apply it all the same with force=True (--force)."
        )

    without_own: Counter[str] = Counter()

    def change(predictions: Predictions) -> Predictions:
        mapped: Predictions = calibrator(predictions)
        if isinstance(calibrator, CalibrationByGroup):
            without_own.update(calibrator.groups_without_own(predictions))
        return mapped

    words = calibrator.result.words if calibrator.needs_fit else ""
    written = table.write(
        target,
        change,
        fitted_on=calibrator.fitted_on(table.rows()),
        calibrator=f"{calibrator.kind}: {words}" if words else calibrator.kind,
        kind=scores,
        suffix=suffix,
    )
    return replace(written, n_without_group=without_own)
