"""From run folders to the records of a report."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from equipoise.core.predictions import Predictions
from equipoise.evaluate import Difference, PairedDifferences, compare, score
from equipoise.evaluate.slices import score_by_class
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.methods import method_entry, split_method
from equipoise.experiments.places import Place, check_baseline, find_places
from equipoise.experiments.results import Contrast, contrast
from equipoise.experiments.scoring import calibrated_predictions
from equipoise.experiments.soundness import is_whole
from equipoise.experiments.spec import MethodSpec
from equipoise.metrics.area_under_risk_coverage import risk_coverage
from equipoise.metrics.facts import metric_facts
from equipoise.report import AfterCalibrator, MethodCard, MethodResult, Provenance, Report, RunScores

__all__ = ["report_of_runs"]


def report_of_runs(
    runs: Sequence[RunFolder],
    *,
    baseline: str | None = None,
    title: str | None = None,
    n_resamples: int = 1000,
) -> dict[str, Report]:
    """Return one report per dataset, network and recipe, by a short name.

    Args:
        runs: Finished runs.
        baseline: Label of the method others are compared with; the first by default.
        title: What stands on top.
        n_resamples: Resamples behind intervals.

    Returns:
        Reports by ``data-model``.

    Example:
        >>> report_of_runs([])
        {}
    """
    places = find_places(runs)
    check_baseline(baseline, places)
    return {place.slug: _report(place, baseline, title, n_resamples) for place in places}


def _report(place: Place, baseline: str | None, title: str | None, n_resamples: int) -> Report:
    methods, base = place.methods, place.baseline(baseline)
    return Report(
        title=title or f"Calibration of {len(methods)} methods: {place.title}, {place.model}",
        methods=tuple(
            _result(label, group, methods[base] if label != base else None, n_resamples)
            for label, group in methods.items()
        ),
        baseline=base,
        provenance=_provenance(place.runs),
    )


def _result(
    label: str, group: Sequence[RunFolder], base: Sequence[RunFolder] | None, n_resamples: int
) -> MethodResult:
    first = group[0].predictions("test")
    return MethodResult(
        name=label,
        runs=tuple(
            RunScores(
                scores=score(folder.predictions("test"), n_resamples=n_resamples),
                seed=folder.spec().seed,
                history=folder.history(),
            )
            for folder in group
        ),
        calibrated=tuple(
            _calibrated(name, group, base, n_resamples)
            for name in group[0].calibrators()
            if name != "identity" and all(folder.scores_file(name).exists() for folder in group)
        ),
        classes=score_by_class(first),
        risk=risk_coverage(first),
        versus=None if base is None else _versus(base, group),
        card=_card(group[0].spec().objective),
    )


def _calibrated(
    name: str, group: Sequence[RunFolder], base: Sequence[RunFolder] | None, n_resamples: int
) -> AfterCalibrator:
    after = [calibrated_predictions(folder, name, "test") for folder in group]
    raw: Predictions = group[0].predictions("test")
    whole = base is not None and all(folder.scores_file(name).exists() for folder in base)
    return AfterCalibrator(
        name=name,
        scores=tuple(score(one.predictions, n_resamples=n_resamples) for one in after),
        words=after[0].words,
        temperatures=tuple(one.temperature for one in after if one.temperature is not None),
        versus=compare(raw, after[0].predictions, n_resamples=n_resamples),
        versus_base=_versus(base, group, name) if base is not None and whole else None,
    )


def _versus(
    base: Sequence[RunFolder], group: Sequence[RunFolder], calibrator: str = "identity"
) -> PairedDifferences | None:
    """Return the paired differences over seeds, if both methods have the same seeds."""
    if [folder.spec().seed for folder in base] != [folder.spec().seed for folder in group]:
        return None
    means = [_means(folders, calibrator) for folders in (base, group)]
    return PairedDifferences(
        _difference(metric, means[0][metric], means[1][metric], found)
        for metric, found in contrast(base, group, calibrator=calibrator).items()
    )


def _means(folders: Sequence[RunFolder], calibrator: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for folder in folders:
        for row in folder.scores():
            if row["split"] == "test" and row["calibrator"] == calibrator:
                values.setdefault(row["metric"], []).append(row["value"])
    return {metric: sum(found) / len(found) for metric, found in values.items()}


def _difference(metric: str, first: float, second: float, found: Contrast) -> Difference:
    verdict = "tie"
    if found.is_clear():
        is_better = metric_facts(metric).is_better(second, than=first)
        verdict = "second better" if is_better else "first better"
    half = 1.96 * found.error
    return Difference(
        metric,
        first,
        second,
        found.difference,
        found.difference - half,
        found.difference + half,
        found.p_value,
        verdict,
    )


def _card(method: MethodSpec) -> MethodCard:
    entry = method_entry(method)
    objective, loss = split_method(method)
    chosen = loss if loss is not None and loss.entry is entry else objective
    return MethodCard(
        title=entry.title,
        summary=entry.summary,
        formula=entry.formula,
        paper=entry.paper,
        fidelity=entry.fidelity,
        parameters={**entry.parameters, **chosen.parameters},
        use_when=entry.use_when,
        avoid_when=entry.avoid_when,
    )


def _provenance(folders: Sequence[RunFolder]) -> Provenance:
    first = folders[0]
    spec = first.spec()
    seeds = sorted({folder.spec().seed for folder in folders})
    facts = [
        (
            "data",
            f"{spec.data.name}, split seed {spec.data.seed}, options {dict(spec.data.options) or 'none'}",
        ),
        ("network", f"{spec.model.name} {dict(spec.model.options) or ''}".strip()),
        ("recipe", ", ".join(f"{key} {value}" for key, value in spec.to_table()["recipe"].items())),
        ("seeds", ", ".join(map(str, seeds))),
        ("runs", ", ".join(folder.name for folder in folders)),
        *_circumstances(first),
    ]
    return Provenance(
        facts=tuple(facts), command=shlex.join(["equipoise", "report", str(Path(first.path).parent)])
    )


def _circumstances(folder: RunFolder) -> list[tuple[str, str]]:
    """Return rows, versions and machine as the run wrote them down; nothing if that record is lost."""
    file = folder.path / "environment.json"
    if not is_whole(file):
        return [("machine", "not recorded")]
    environment = json.loads(file.read_text(encoding="utf-8"))
    data = environment["data"]
    return [
        ("rows", ", ".join(f"{name} {count:,}" for name, count in data["rows"].items())),
        ("fingerprints", ", ".join(f"{name} {mark[:12]}" for name, mark in data["fingerprints"].items())),
        ("versions", ", ".join(f"{name} {version}" for name, version in environment["packages"].items())),
        (
            "machine",
            f"{environment['system']}, {environment['cores']} cores, {environment['threads']} threads per run",
        ),
    ]
