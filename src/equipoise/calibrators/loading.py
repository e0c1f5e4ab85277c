"""Saved calibrators, back from disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise.calibrators import artifact
from equipoise.calibrators.artifact_checks import check_content, check_parameters, check_settings
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.bbq import BayesianBinning
from equipoise.calibrators.beta import BetaCalibration
from equipoise.calibrators.by_group import CalibrationByGroup
from equipoise.calibrators.dirichlet import DirichletCalibration
from equipoise.calibrators.ensemble_temperature import EnsembleTemperatureScaling
from equipoise.calibrators.focal_recovery import FocalRecovery
from equipoise.calibrators.focal_temperature import FocalTemperatureScaling
from equipoise.calibrators.forms import ONE_CONFIDENCE
from equipoise.calibrators.histogram import HistogramBinning
from equipoise.calibrators.identity import Identity
from equipoise.calibrators.isotonic import IsotonicCalibration
from equipoise.calibrators.matrix import MatrixScaling
from equipoise.calibrators.own import OwnCalibrator, as_calibrator
from equipoise.calibrators.platt import PlattScaling
from equipoise.calibrators.prior_shift import PriorShift
from equipoise.calibrators.quadratic import QuadraticScaling
from equipoise.calibrators.scaling_binning import ScalingBinning
from equipoise.calibrators.spline import SplineCalibration
from equipoise.calibrators.structured import StructuredMatrixScaling, StructuredVectorScaling
from equipoise.calibrators.temperature import TemperatureScaling
from equipoise.calibrators.vector import VectorScaling
from equipoise.calibrators.venn_abers import VennAbers
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.rows import Rows

__all__ = ["KINDS", "from_artifact", "load"]

#: Every calibrator by the name it has in files and in the catalogue.
KINDS: Mapping[str, type[Calibrator]] = {
    "identity": Identity,
    "temperature": TemperatureScaling,
    "ets": EnsembleTemperatureScaling,
    "svs": StructuredVectorScaling,
    "sms": StructuredMatrixScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "dirichlet": DirichletCalibration,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
    "scaling_binning": ScalingBinning,
    "bbq": BayesianBinning,
    "spline": SplineCalibration,
    "focal_recovery": FocalRecovery,
    "focal_temperature": FocalTemperatureScaling,
    "quadratic": QuadraticScaling,
    "venn_abers": VennAbers,
}


def load(path: str | os.PathLike[str], *, own: Any = None) -> Calibrator:
    """Read a saved calibrator, ``.json`` or ``.safetensors``.

    Args:
        path: What :meth:`Calibrator.save` wrote.
        own: The calibrator, if it is someone's own: a file holds what it learned and never its code.

    Returns:
        The fitted calibrator. It remembers the rows it was fitted on by their hashes.

    Raises:
        DataError: If the file is no calibrator, is from a newer version, or was changed.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibrator.json"
        >>> TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1]).save(path)
        >>> load(path).result.words
        'overconfident: divide logits by 2.73'
    """
    return _rebuilt(artifact.read(path), where=f"load: {path}", own=own)


def from_artifact(content: Mapping[str, Any]) -> Calibrator:
    """Rebuild a calibrator from what :meth:`Calibrator.to_artifact` gave.

    Raises:
        DataError: If a part of it is missing, or cannot be.

    Example:
        >>> fitted = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> from_artifact(fitted.to_artifact())
        TemperatureScaling(criterion='nll', n_bins=15)
    """
    return _rebuilt(content, where="from_artifact: the artifact")


def _rebuilt(content: Mapping[str, Any], *, where: str, own: Any = None) -> Calibrator:
    check_content(content, where=where)
    made = _made(content, where) if own is None else as_calibrator(own, name=_name(content))
    if made.kind != content["kind"]:
        raise DataError(
            f"{where}: was saved by {content['kind']!r}, and {made.kind!r} is given. Give that one."
        )
    result, n_classes = artifact.unpack_result(content), content["n_classes"]
    if n_classes is None and (made.needs_fit or result.parameters):
        raise DataError(
            f"{where} is damaged: `n_classes` must be a number. Fit and save the calibrator again."
        )
    if own is None:
        axes = made._claim_axes() if n_classes == ONE_CONFIDENCE else made._axes(n_classes or 0)
        check_parameters(result.parameters, axes, where=where)
    rows, frequencies = content.get("rows"), content.get("frequencies")  # early files have neither
    restored = made._restored(
        result,
        n_classes,
        content["fitted_on"],
        rows and Rows.unpacked(rows),
        None if frequencies is None else np.array(frequencies, np.float64),
    )
    if isinstance(restored, CalibrationByGroup):
        restored._check_restored(where)
    return restored


def _made(content: Mapping[str, Any], where: str) -> Calibrator:
    """Return the calibrator of ours that a file names, not yet fitted."""
    if content["kind"] == OwnCalibrator.kind:
        raise DataError(
            f"{where} holds what {_name(content)!r} learned, a user's own calibrator; its code is not in the file. "
            "In Python, pass the calibrator: load(path, own=...)."
        )
    if content["kind"] == PriorShift.kind:
        return _prior_shift(content["settings"], where)
    if content["kind"] == CalibrationByGroup.kind:
        return _by_group(content["settings"], where)
    try:
        kind = look_up(content["kind"], KINDS, what="calibrator")
        check_settings(kind, content["settings"], where=where)
        return kind(**content["settings"])
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{where} is damaged: {error}") from error


def _prior_shift(settings: Mapping[str, Any], where: str) -> PriorShift:
    """Return the adaptation that a file holds, with the calibrator that it follows."""
    if set(settings) != {"before", "trained_priors"}:
        raise DataError(f"{where} is damaged: `settings` must be before and trained_priors. Adapt it again.")
    before = None if settings["before"] is None else _rebuilt(settings["before"], where=where)
    try:
        return PriorShift(before=before, trained_priors=settings["trained_priors"])
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} is damaged: {error}") from error


def _by_group(settings: Mapping[str, Any], where: str) -> CalibrationByGroup:
    """Return the calibrator by group that a file holds, not yet fitted."""
    base = settings.get("base")
    if (
        set(settings) != {"base", "by"}
        or not isinstance(settings["by"], str)
        or not isinstance(base, Mapping)
    ):
        raise DataError(
            f"{where} is damaged: `settings` must be base and by. Fit and save the calibrator again."
        )
    if (
        set(base) != {"kind", "settings"}
        or base["kind"] not in KINDS
        or not isinstance(base["settings"], Mapping)
    ):
        raise DataError(f"{where} is damaged: `settings.base` must be a calibrator. Fit and save it again.")
    try:
        return CalibrationByGroup(base=_made(base, where), by=settings["by"])
    except ValueError as error:
        raise DataError(f"{where} is damaged: {error}") from error


def _name(content: Mapping[str, Any]) -> str:
    return str(content["settings"].get("name", content["kind"]))
