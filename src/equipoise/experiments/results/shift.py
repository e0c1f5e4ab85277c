"""What methods scored on additional test sets, over seeds, and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equipoise.core.tables import Table, format_tables
from equipoise.evaluate import DETECTION, Score, ShiftScores, mean_over_seeds
from equipoise.evaluate.shift import describe_missing_scores
from equipoise.experiments.results.groups import RunGroup
from equipoise.experiments.results.papers import printed_for
from equipoise.experiments.runs.scores import RunScores, set_name
from equipoise.metrics.facts import metric_facts, metrics_where

__all__ = ["format_shifts", "shift_scores"]

#: What papers print about out-of-distribution data, and the score of the network that their code takes it from.
_PRINTED_METRIC, _PRINTED_SCORE = "ood_auroc", "entropy"


def shift_scores(group: RunGroup) -> list[ShiftScores]:
    """Return what each method scored on the additional test sets that all its seeds have; nothing if there are none.

    Args:
        group: Runs of the same data, network and recipe.
    """
    found = []
    for calibrator in group.calibrators:
        for label in group.methods:
            runs = list(group.runs_by_seed(label, calibrator).values())
            if runs and (sets := runs[0].shifts()):
                scores = list(group.seeds(label, calibrator).values())
                curves: dict[str, dict[int, dict[str, Score]]] = {}
                ood: dict[str, dict[str, dict[str, Score]]] = {}
                for name, shift in sets.items():
                    if shift.kind == "ood":
                        if all(name in one.detection for one in scores):
                            ood[name] = _detection([one.detection[name] for one in scores], scores)
                    elif all(set_name(name) in one.cards for one in scores):
                        curve = curves.setdefault(
                            _family(name, shift.corruption), {0: _means(scores, "test")}
                        )
                        curve[shift.severity or 1] = _means(scores, set_name(name))
                found.append(ShiftScores(label, calibrator, curves, ood))
    return [one for one in found if one.curves or one.ood]


def _family(name: str, corruption: str) -> str:
    return name.rpartition("_")[0] if corruption else name


def _means(scores: Sequence[RunScores], split: str) -> dict[str, Score]:
    cards = [one.cards[split] for one in scores]
    return {
        key: mean_over_seeds(key, [card[key] for card in cards], level=cards[0].level)
        for key in metrics_where(is_main=True)
    }


def _detection(
    runs: Sequence[Mapping[str, Mapping[str, Score]]], scores: Sequence[RunScores]
) -> dict[str, dict[str, Score]]:
    level = scores[0].test.level
    return {
        name: {key: mean_over_seeds(key, [run[name][key] for run in runs], level=level) for key in DETECTION}
        for name in runs[0]
        if all(name in run for run in runs)
    }


def format_shifts(groups: Sequence[RunGroup], style: str, *, width: int | None = None) -> str:
    """Return the tables of additional test sets as ``text``, ``markdown``, ``latex`` or ``html``; empty if none.

    Args:
        groups: From :func:`group_runs`.
        style: How.
        width: Of text; None is without limit.

    Example:
        >>> format_shifts([], "text")
        ''
    """
    return format_tables([table for group in groups for table in _tables(group)], style, width=width)


def _tables(group: RunGroup) -> list[Table]:
    found = shift_scores(group)
    place = f"{group.title}, {group.model}"
    tables = []
    for family in dict.fromkeys(name for one in found for name in one.curves):
        levels = sorted({level for one in found for level in one.curves.get(family, {})})
        head = ["method", "metric", *("clean" if level == 0 else f"{level}" for level in levels)]
        rows = [
            [one.name, metric_facts(key).head]
            + [
                _cell(key, one.curves[family][level][key]) if level in one.curves[family] else "–"
                for level in levels
            ]
            for key in metrics_where(is_main=True)
            for one in found
            if family in one.curves
        ]
        caption = (
            f"{place}, under {family} by severity; calibrators are fitted on clean rows. Intervals in []."
        )
        tables.append(_table(caption, head, rows, f"{place}, {family}"))
    for name in dict.fromkeys(name for one in found for name in one.ood):
        printed = {one.name: _printed(group, one, name) for one in found}
        head = ["method", "score", *(facts.head for facts in DETECTION.values())]
        head += ["printed"] if any(printed.values()) else []
        rows = [
            [one.name, score, *(_cell(key, numbers[key]) for key in DETECTION)]
            + ([printed[one.name] if score == _PRINTED_SCORE else ""] if any(printed.values()) else [])
            for one in found
            for score, numbers in one.ood.get(name, {}).items()
        ]
        caption = (
            f"{place} against {name}: test rows against out-of-distribution rows, by the score of the network. AUPR "
            "takes test rows for positive. Intervals in square brackets."
        )
        missing = describe_missing_scores(found, name)
        tables.append(_table(" ".join(filter(None, (caption, missing))), head, rows, f"{place}, {name}"))
    return tables


def _table(caption: str, head: list[str], rows: list[list[str]], label: str) -> Table:
    align = "ll" + "r" * (len(head) - 2)
    return Table.of(head, rows, align=align, caption=caption, label=label, n_names=2)


def _printed(group: RunGroup, one: ShiftScores, name: str) -> str:
    """Return the area under the ROC curve that a paper printed for a method, with its source; empty if none did."""
    shift = group.methods[one.method][0].shifts()[name]
    found = printed_for(
        group.spec(one.method),
        one.calibrator,
        [_PRINTED_METRIC],
        tuned=group.tuned(one.method),
        ood={"data": shift.data, **shift.options},
    )
    return found.get(_PRINTED_METRIC, "")


def _cell(key: str, score: Score) -> str:
    facts = metric_facts(key)
    return f"{facts.number(score.value)} [{facts.number(score.low)}, {facts.number(score.high)}]"
