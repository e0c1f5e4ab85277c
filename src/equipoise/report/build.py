"""From predictions to the records of a report."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TypedDict

from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.evaluate.compare import compare
from equipoise.evaluate.scorecard import score
from equipoise.evaluate.slices import score_by_class, score_by_group
from equipoise.metrics.area_under_risk_coverage import risk_coverage
from equipoise.report.advisor import CANDIDATES, remedies_of
from equipoise.report.records import MethodResult, Provenance, Report, Run

__all__ = ["report_of"]


def report_of(
    predictions: Predictions | Mapping[str, Predictions],
    *,
    title: str = "Calibration report",
    by: Sequence[str] = (),
    baseline: str | None = None,
    calib: Predictions | Mapping[str, Predictions] | None = None,
    candidates: Sequence[str] = CANDIDATES,
    sources: Mapping[str, str] | None = None,
    command: str = "",
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Report:
    """Score predictions and gather what a report tells about them.

    Args:
        predictions: Predictions of one model; or of several, by name, on the same rows in the same order.
        title: What stands on top.
        by: Columns of groups to look at one by one.
        baseline: The model the others are compared with; by default the first.
        calib: Predictions of the same models on held-out rows. If given, the advisor says which calibrator to fit on
            them, and the report shows what that adds.
        candidates: Calibrators that the advisor tries.
        sources: Where the predictions come from, by name of the model.
        command: What makes the report again.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        n_resamples: Bootstrap resamples behind them.
        seed: The same seed gives the same report.

    Returns:
        The records; :func:`write_report` makes a file of them.

    Raises:
        DataError: If several models were given other rows.
        SplitError: If rows were used to fit the calibrator that made the predictions, or stand in ``calib`` too.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> report = report_of({"before": rows, "after": rows.with_scores(probs=[[0.5, 0.5]] * 3)})
        >>> [method.name for method in report.methods]
        ['before', 'after']
    """
    named = {"model": predictions} if isinstance(predictions, Predictions) else dict(predictions)
    held_out = {next(iter(named), "model"): calib} if isinstance(calib, Predictions) else dict(calib or {})
    if not named:
        raise DataError("report_of: nothing to report, no predictions were given.")
    for name in held_out:
        look_up(name, named, what="model with predictions to judge")
    first = baseline or next(iter(named))
    if first not in named:
        raise DataError(f"report_of: the baseline must be one of {sorted(named)}, got {baseline!r}.")
    settings = _Settings(n_bins=n_bins, closed=closed, level=level, n_resamples=n_resamples, seed=seed)
    methods = tuple(
        _with_remedies(
            _result(name, part, None if name == first else named[first], by, settings),
            part,
            held_out.get(name),
            candidates,
            settings,
        )
        for name, part in named.items()
    )
    origins: dict[str, list[str]] = {}
    for name, part in named.items():
        origins.setdefault(_origin(part, (sources or {}).get(name)), []).append(name)
    facts = [(", ".join(names), origin) for origin, names in origins.items()]
    return Report(
        title=title,
        methods=methods,
        baseline=first,
        provenance=Provenance(facts=(*facts, *_circumstances(settings)), command=command),
        notes=tuple(dict.fromkeys(note for method in methods for note in method.first.notes)),
    )


class _Settings(TypedDict):
    n_bins: int
    closed: str
    level: float
    n_resamples: int
    seed: int


def _result(
    name: str,
    part: Predictions,
    base: Predictions | None,
    by: Sequence[str],
    settings: _Settings,
) -> MethodResult:
    n_bins, closed, level = settings["n_bins"], settings["closed"], settings["level"]
    return MethodResult(
        name=name,
        runs=(Run(scores=score(part, **settings)),),
        classes=score_by_class(part, n_bins=n_bins, closed=closed, level=level),
        groups={
            column: score_by_group(part, column, n_bins=n_bins, closed=closed, level=level) for column in by
        },
        risk=risk_coverage(part),
        versus=None if base is None else compare(base, part, **settings),
    )


def _with_remedies(
    result: MethodResult,
    judged: Predictions,
    held_out: Predictions | None,
    candidates: Sequence[str],
    settings: _Settings,
) -> MethodResult:
    if held_out is not None:
        advice, calibrated = remedies_of(judged, held_out, candidates=candidates, **settings)
        return replace(result, advice=advice, calibrated=calibrated)
    return result


def _origin(part: Predictions, source: str | None) -> str:
    """Say what a set of predictions is, and how to know it again."""
    facts = [f"{len(part):,} rows of {part.kind}"]
    if part.n_classes:
        facts.append(f"{part.n_classes} classes")
    facts.append(f"split {part.split}" if part.split else "split not said")
    facts.append(f"fingerprint {part.fingerprint}")
    return (f"{source}; " if source else "") + ", ".join(facts)


def _circumstances(settings: _Settings) -> list[tuple[str, str]]:
    versions = [f"{name} {_version(name)}" for name in ("equipoise", "numpy", "torch")]
    return [
        ("bins", f"{settings['n_bins']} of equal width, {settings['closed']}-closed"),
        (
            "intervals",
            f"{100 * settings['level']:g} %, from {settings['n_resamples']:,} resamples, seed {settings['seed']}",
        ),
        ("versions", ", ".join([*versions, f"Python {platform.python_version()}"])),
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
