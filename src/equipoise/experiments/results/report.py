"""From run folders to the records of a report."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from equipoise.evaluate import PairedDifferences
from equipoise.experiments.results.groups import RunGroup, ScoredGroup, group_runs
from equipoise.experiments.results.means import chosen_kinds, compare_methods, fit_warnings
from equipoise.experiments.results.shift import shift_scores
from equipoise.experiments.results.tables import ResultTable, tables_of_groups
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import check_content, read_json
from equipoise.experiments.runs.scores import is_auto
from equipoise.experiments.specs.methods import method_entry
from equipoise.experiments.specs.run import MethodSpec
from equipoise.experiments.tuning.choices import sweep_of
from equipoise.report import AfterCalibrator, MethodCard, MethodResult, Provenance, Report, RunResult

__all__ = ["methods_of", "report_of_runs", "title_of"]

#: What a report reads of the record of the machine.
_ENVIRONMENT = {
    "data": {"rows": {str: int}, "fingerprints": {str: str}},
    "packages": {str: str},
    "system": str,
    "cores": (int, type(None)),
    "threads": int,
}


def report_of_runs(
    runs: Sequence[RunFolder],
    *,
    baseline: str | None = None,
    title: str | None = None,
    tables: Sequence[ResultTable] | None = None,
    n_bins: int | None = None,
) -> dict[str, Report]:
    """Return one report per dataset, network and recipe, by a short name.

    Args:
        runs: Finished runs.
        baseline: Label of the method others are compared with; the first by default.
        title: What stands on top.
        tables: The tables of the same runs with the same baseline, if they are made already; their tests are used.
        n_bins: Score the runs anew with so many bins; by default their scores are read.

    Returns:
        Reports by ``data-model``.

    Example:
        >>> report_of_runs([])
        {}
    """
    groups = [group for group in group_runs(runs, n_bins=n_bins) if group.methods]
    made = tables_of_groups(groups, baseline=baseline) if tables is None else tables
    return {group.slug: _report(group, table, title) for group, table in zip(groups, made, strict=True)}


def _report(group: RunGroup, table: ResultTable, title: str | None) -> Report:
    cards = {label: _card(group.spec(label).method) for label in group.methods}
    methods = methods_of(group, table, cards)
    return Report(
        title=title or title_of(group.methods, f"{group.title}, {group.model}"),
        methods=methods,
        baseline=table.baseline,
        provenance=_provenance(group),
        shifts=tuple(shift_scores(group)),
        sweeps=tuple(filter(None, map(sweep_of, group.choices.values()))),
        notes=tuple(_notes(methods)),
    )


def _notes(methods: Sequence[MethodResult]) -> Iterator[str]:
    """Say which methods show signs of failing, and that scores on ``test`` over training chose nothing."""
    if any("test_ece" in row for method in methods for run in method.runs for row in run.history):
        yield (
            "Scores on test were written down after every epoch, for curves. No epoch, setting or end of training was "
            "chosen by them."
        )
    from equipoise.training.diagnosis import watch  # loads torch, which tables do without

    for method in methods:
        for run in method.runs:
            for sentence in watch(run.history):
                yield f"{method.name}, seed {run.seed}: {sentence}"


def title_of(labels: Collection[str], about: str) -> str:
    """Return what stands on top of a report if nobody says otherwise.

    Example:
        >>> title_of(["ce", "focal"], "digits, mlp"), title_of(["ce"], "digits, mlp")
        ('Calibration of 2 methods: digits, mlp', 'Calibration of ce: digits, mlp')
    """
    return f"Calibration of {f'{len(labels)} methods' if len(labels) > 1 else next(iter(labels))}: {about}"


def methods_of(
    group: ScoredGroup, table: ResultTable, cards: Mapping[str, MethodCard]
) -> tuple[MethodResult, ...]:
    """Return what a report tells about each method of a group.

    Args:
        group: Seeds of the methods, and what they scored.
        table: Their table, whose tests are used.
        cards: What each method is.
    """
    return tuple(_result(group, table, label, cards[label]) for label in group.methods)


def _result(group: ScoredGroup, table: ResultTable, label: str, card: MethodCard) -> MethodResult:
    seeds = group.seeds(label, "identity")
    first = next(iter(seeds.values()))
    return MethodResult(
        name=label,
        runs=tuple(
            RunResult(scores=one.test, seed=seed, history=group.history(label, seed), draws=one.draws)
            for seed, one in seeds.items()
        ),
        calibrated=tuple(
            _calibrated(group, table, label, name)
            for name in group.calibrators
            if name != "identity" and len(group.seeds(label, name)) == len(seeds)
        ),
        classes=first.classes,
        risk=first.risk,
        versus=_versus(table, label, "identity"),
        card=card,
    )


def _calibrated(group: ScoredGroup, table: ResultTable, label: str, name: str) -> AfterCalibrator:
    before, after = group.seeds(label, "identity"), group.seeds(label, name)
    scores = list(after.values())
    gains = [compare_methods(key, before, after, level=scores[0].test.level) for key in scores[0].compared]
    chosen = f"the advisor chose {', '.join(chosen_kinds(after))}" if is_auto(name) else ""
    return AfterCalibrator(
        name=name,
        scores=tuple(one.test for one in scores),
        words=chosen or scores[0].words,
        temperatures=tuple(one.temperature for one in scores if one.temperature is not None and not chosen),
        versus=PairedDifferences(one for one in gains if one is not None) or None,
        draws=tuple(one.draws for one in scores),
        versus_base=_versus(table, label, name),
        warnings=fit_warnings(after),
    )


def _versus(table: ResultTable, label: str, calibrator: str) -> PairedDifferences | None:
    """Return the paired differences from the baseline after a calibrator, if there are any."""
    found = [row.differences for row in table.rows if (row.method, row.calibrator) == (label, calibrator)]
    return PairedDifferences(found[0].values()) if found and found[0] else None


def _card(method: MethodSpec) -> MethodCard:
    entry = method_entry(method)
    return MethodCard(
        title=entry.title,
        summary=entry.summary,
        formula=entry.formula,
        paper=entry.paper,
        fidelity=entry.fidelity,
        parameters={**entry.options, **method.options},
        use_when=entry.use_when,
        avoid_when=entry.avoid_when,
    )


def _provenance(group: RunGroup) -> Provenance:
    folders = group.runs
    first = folders[0]
    spec = group.specs[first.name]
    seeds = sorted({group.specs[folder.name].seed for folder in folders})
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
    if not folder.has("environment.json"):
        return [("machine", "not recorded")]
    file = folder.intact_file("environment.json")
    environment = read_json(file)
    check_content(environment, _ENVIRONMENT, where=str(file))
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
