"""Reports from predictions, or from audits of them."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias, TypedDict

from equipoise.calibrators import Calibrator
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.combine import align_all, order_classes
from equipoise.evaluate.audit_state import AuditState
from equipoise.evaluate.auditing import audit
from equipoise.evaluate.audits import Audit
from equipoise.evaluate.comparison import PairedDifferences, compare
from equipoise.evaluate.scorecard import Scorecard
from equipoise.evaluate.trend import Trend, find_trend
from equipoise.report.advisor import remedies_of
from equipoise.report.details import details_of, sets_of
from equipoise.report.records import AfterCalibrator, MethodResult, Provenance, Report, RunResult

__all__ = ["Reportable", "method_of_audit", "report_of"]

#: How to get advice in Python.
_HINT = "report_of(predictions, calib=held_out)"
#: The subject of a report: predictions, chunks of them that are read once, their sums, or an audit of them.
Reportable: TypeAlias = Predictions | Iterable[Predictions] | AuditState | Audit


def report_of(
    predictions: Reportable | Mapping[str, Reportable],
    *,
    title: str = "Calibration report",
    by: Sequence[str] = (),
    baseline: str | None = None,
    calib: Predictions | Mapping[str, Predictions] | None = None,
    candidates: Sequence[str | Calibrator] | None = None,
    versus: Mapping[str, PairedDifferences] | None = None,
    sources: Mapping[str, str] | None = None,
    command: str = "",
    over_time: bool = False,
    hint: str = _HINT,
    rows: Mapping[str, Predictions] | None = None,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    clusters: Any = None,
    target: str | None = None,
    positive: str | int | None = None,
) -> Report:
    """Score predictions and return the contents of a report on them.

    Args:
        predictions: Predictions of one model, chunks of them, or an audit of them, which is reported without reading
            the rows again; or those of several models by name, on the same rows in the same order.
        title: The title of the page.
        by: Columns of groups to report on one by one.
        baseline: The model the others are compared with; by default the first.
        calib: Predictions of the same models on held-out rows. If given, a calibrator is chosen and fitted on
            them, and the report shows its effect.
        candidates: Calibrators to try; by default those of :func:`equipoise.calibrators.choose`.
        versus: Paired comparisons with the baseline that were made already, by name. Without them, and without
            predictions that are held in memory, models stand side by side and are not compared.
        sources: Where the predictions come from, by name of the model.
        command: The command that makes the report again.
        over_time: Whether these are one model at several times, in order: predictions, chunks or states. The report
            then shows whether and since when it changed; see :func:`equipoise.evaluate.find_trend`.
        hint: What the report advises to run where calibration may help and no ``calib`` was given.
        rows: Predictions behind audits, by name of the model, for the parts of a report that need rows.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        n_resamples: Bootstrap resamples behind them.
        seed: The same seed gives the same report.
        clusters: Where rows depend on each other, such as pixels of one image or posts of one author: one value per
            row, or the name of a column of groups. Clusters are then resampled, not rows.
        target: Which probability is scored, as for :func:`equipoise.score`.
        positive: The positive class, by name or number; by default class 1. Naming one means ``target="positive"``.

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
    named: dict[str, Reportable] = (
        dict(predictions) if isinstance(predictions, Mapping) else {"model": predictions}
    )
    held_out = {next(iter(named), "model"): calib} if isinstance(calib, Predictions) else dict(calib or {})
    if not named:
        raise DataError("report_of: no predictions were given. Pass at least one.")
    for name in held_out:
        look_up(name, named, what="model with predictions")
    first = baseline or next(iter(named))
    if first not in named:
        raise DataError(f"report_of: the baseline must be one of {sorted(named)}, got {baseline!r}.")
    settings = _Settings(
        n_bins=n_bins,
        closed=closed,
        level=level,
        n_resamples=n_resamples,
        seed=seed,
        clusters=clusters,
        target=target,
        positive=positive,
    )
    trend = None
    if not over_time:
        named, held_out = _aligned(named, held_out, first)
    elif len(named) > 1:
        named, trend = _over_time(named, by, settings)
        # All states have the target of the whole.
        settings["target"], settings["positive"] = trend.card.target.kind, trend.card.target.positive
    pairs = dict(versus or {}) | _compared(named, first, set(versus or ()), settings)
    found = {
        name: part if isinstance(part, Audit) else _audited(part, by, settings)
        for name, part in named.items()
    }
    methods = {name: method_of_audit(name, one, versus=pairs.get(name)) for name, one in found.items()}
    known = {**(rows or {}), **{name: part for name, part in named.items() if isinstance(part, Predictions)}}
    methods = {name: _with_details(one, known.get(name)) for name, one in methods.items()}
    methods = _with_remedies(methods, named, held_out, first, candidates, settings)
    notes = [note for one in found.values() for note in (*(c.text for c in one.cautions), *one.card.notes)]
    return Report(
        title=title,
        methods=tuple(methods.values()),
        baseline=first,
        provenance=Provenance(
            facts=(*_origins(found, named, sources or {}), *_circumstances(found[first].card)),
            command=command,
        ),
        notes=tuple(dict.fromkeys(notes)),
        over_time=over_time,
        trend=trend,
        hint=hint,
    )


def _over_time(
    named: Mapping[str, Reportable], by: Sequence[str], settings: _Settings
) -> tuple[dict[str, Reportable], Trend]:
    """Return the sums of one model at several times, and how it changed."""
    binning = {"n_bins": settings["n_bins"], "closed": settings["closed"], "positive": settings["positive"]}
    summed = {name: _sums_of(name, part, by, **binning) for name, part in named.items()}
    trend = find_trend(
        summed,
        level=settings["level"],
        n_resamples=settings["n_resamples"],
        seed=settings["seed"],
        target=settings["target"],
        positive=settings["positive"],
    )
    return dict(summed), trend


def _sums_of(name: str, part: Reportable, by: Sequence[str], **settings: Any) -> AuditState:
    if isinstance(part, Audit):
        raise DataError(
            f"report_of: a trend needs the sums of {name!r}, got an audit. Pass its AuditState or its Predictions."
        )
    return part if isinstance(part, AuditState) else AuditState.of(part, by=tuple(by), **settings)


def _audited(
    part: Predictions | Iterable[Predictions] | AuditState, by: Sequence[str], settings: _Settings
) -> Audit:
    # A state has its own groups; all of them are reported if none is named.
    columns = None if isinstance(part, AuditState) and not by else tuple(by)
    return audit(part, by=columns, **settings)


def method_of_audit(name: str, found: Audit, *, versus: PairedDifferences | None = None) -> MethodResult:
    """Return an audit as the result of one method.

    Example:
        >>> found = audit(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0]), n_resamples=20)
        >>> method_of_audit("mine", found).first is found.card
        True
    """
    return MethodResult(
        name=name,
        runs=(RunResult(scores=found.card),),
        classes=found.classes,
        groups=found.groups,
        risk=found.risk,
        versus=versus,
    )


def _slice_names(method: MethodResult) -> dict[str, list[str]]:
    named = {"class": method.classes, **method.groups}
    return {column: [part.name for part in slices] for column, slices in named.items() if len(slices) > 1}


def _with_details(method: MethodResult, rows: Predictions | None) -> MethodResult:
    """Add the details that need rows, if they are in memory."""
    if rows is None:
        return method
    return replace(method, details=details_of(rows, method.first, slices=_slice_names(method)))


class _Settings(TypedDict):
    n_bins: int
    closed: str
    level: float
    n_resamples: int
    seed: int
    clusters: Any
    target: str | None
    positive: str | int | None


def _aligned(
    named: Mapping[str, Reportable], held_out: Mapping[str, Predictions], first: str
) -> tuple[dict[str, Reportable], dict[str, Predictions]]:
    """Return predictions with rows in the order of the baseline, if they have ids, and classes in its order."""
    order = [first, *(name for name in named if name != first)]
    rows = {name: part for name in order if isinstance(part := named[name], Predictions)}
    if first not in rows:
        return dict(named), dict(held_out)
    aligned = dict(zip(rows, align_all(list(rows.values()), where="report_of"), strict=True))
    calib = {
        name: order_classes(aligned[name], part, where="report_of")[1] if name in aligned else part
        for name, part in held_out.items()
    }
    return {name: aligned.get(name, part) for name, part in named.items()}, calib


def _compared(
    named: Mapping[str, Reportable], first: str, known: set[str], settings: _Settings
) -> dict[str, PairedDifferences]:
    """Compare those with the baseline that are held in memory and are not compared yet."""
    base = named[first]
    if not isinstance(base, Predictions):
        return {}
    return {
        name: compare(base, part, **settings)
        for name, part in named.items()
        if name != first and name not in known and isinstance(part, Predictions)
    }


def _with_remedies(
    methods: Mapping[str, MethodResult],
    named: Mapping[str, Reportable],
    held_out: Mapping[str, Predictions],
    first: str,
    candidates: Sequence[str | Calibrator] | None,
    settings: _Settings,
) -> dict[str, MethodResult]:
    """Add results after calibrators for methods with held-out rows, and compare methods after each calibrator."""
    result = dict(methods)
    mapped: dict[str, dict[str, Predictions]] = {}
    for name, calib in held_out.items():
        tested = named[name]
        if not isinstance(tested, Predictions):
            raise DataError(
                f"report_of: to calibrate {name!r} its rows must be held in memory, got a stream or an audit. "
                "Pass its Predictions."
            )
        advice, after, mapped[name] = remedies_of(tested, calib, candidates=candidates, **settings)
        slices = _slice_names(result[name])
        after = tuple(
            replace(one, details=details_of(mapped[name][one.name], one.scores[0], slices=slices))
            for one in after
        )
        result[name] = replace(result[name], advice=advice, calibrated=after, sets=sets_of(tested, calib))
    for name in (name for name in mapped if name != first and first in mapped):
        after = tuple(
            _compared_with_base(one, mapped[first].get(one.name), mapped[name][one.name], settings)
            for one in result[name].calibrated
        )
        result[name] = replace(result[name], calibrated=after)
    return result


def _compared_with_base(
    one: AfterCalibrator, base: Predictions | None, own: Predictions, settings: _Settings
) -> AfterCalibrator:
    return one if base is None else replace(one, versus_base=compare(base, own, **settings))


def _origins(
    found: Mapping[str, Audit], named: Mapping[str, Reportable], sources: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Describe the predictions of each model; models with the same description share a line."""
    names: dict[str, list[str]] = {}
    for name, one in found.items():
        names.setdefault(_origin(one.card, named[name], sources.get(name)), []).append(name)
    return [(", ".join(models), origin) for origin, models in names.items()]


def _origin(card: Scorecard, part: Reportable, source: str | None) -> str:
    """Describe a set of predictions."""
    kind = f" of {part.kind}" if isinstance(part, Predictions) else ""
    facts = [f"{card.n_samples:,} rows{kind}"]
    if card.n_classes:
        facts.append(f"{card.n_classes} classes")
    facts.append(f"split {card.split}" if card.split else "split unknown")
    if card.fingerprint:
        facts.append(f"fingerprint {card.fingerprint}")
    return (f"{source}; " if source else "") + ", ".join(facts)


def _circumstances(card: Scorecard) -> list[tuple[str, str]]:
    versions = [f"{name} {_version(name)}" for name in ("equipoise", "numpy", "torch")]
    return [
        ("bins", f"{card.n_bins} of equal width, {card.closed}-closed"),
        (
            "intervals",
            f"{100 * card.level:g}%, from {card.n_resamples:,} resamples, seed {card.seed}",
        ),
        *([] if card.clusters is None else [("clusters", card.clusters.sentence(card.n_samples))]),
        ("versions", ", ".join([*versions, f"Python {platform.python_version()}"])),
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
