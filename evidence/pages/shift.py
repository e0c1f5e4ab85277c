"""The page on shift: corrupted and out-of-distribution images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pages.figures import SHOWN
from pages.results import (
    SPACE,
    amount,
    benchmarks,
    count_words,
    counts,
    detectable,
    difference,
    effect,
    entrants,
    letter,
    mark_of,
    marked,
    mean,
    rivals,
    rows,
    sign,
    summed,
    table,
    values,
    written,
)

#: Corruptions whose severities are drawn as curves.
FAMILIES = ("gaussian_noise", "gaussian_blur")
_KEY = "ood_auroc_{}"


def shift() -> str:
    """Write whether calibration made in training survives shift better than scaling afterwards."""
    known = list(filter(is_shifted, benchmarks()))
    parts = [
        "# Under shift",
        "",
        "Does calibration at training time survive a shift of the data better than temperature scaling? Each method "
        "without scaling is compared with cross-entropy whose temperature was fitted on clean rows, by ECE on "
        "corrupted test images. A + means that the loss is better, a − that scaling is, no mark that there is no "
        "significant difference.",
        "",
        *(f"- {sentence}" for sentence in map(_answer, known)),
        "",
        "Ties under strong corruption are mostly lack of evidence: networks of one method differ there from seed to "
        "seed as much as methods do. The detectable difference shows how much would have been found.",
        "",
    ]
    if not known:
        parts += ["Not yet run.", ""]
    return "\n".join([*parts, *(line for benchmark in known for line in _shift_of(benchmark))])


def _answer(benchmark: str) -> str:
    """Write what a benchmark answers, over all its corrupted test sets."""
    splits = _splits(benchmark)
    alone = {split: _count(benchmark, split, versus_calibrator="temperature") for split in splits}
    both = {split: _count(benchmark, split, calibrator="temperature") for split in splits}
    where = [_short(split) for split in splits if alone[split]["better"]]
    found = "in some cases" if where else "not shown"
    of_them = f" (under {', '.join(where)})" if where else ""
    tied = [
        value
        for split in splits
        for value in detectable(
            benchmark, "ece", rivals(benchmark), split=split, versus_calibrator="temperature"
        )
    ]
    least = (
        f" Detectable: {amount('ece', float(np.median(tied)))} points (median over the ties)." if tied else ""
    )
    return (
        f"**{letter(benchmark)}, {benchmarks()[benchmark]['title']}: {found}.** Over {len(splits)} corrupted test sets "
        f"and {len(rivals(benchmark))} methods: {count_words(summed(alone.values()))} than scaled "
        f"cross-entropy{of_them}.{least} With temperature scaling on both sides: {count_words(summed(both.values()))}."
    )


def _count(benchmark: str, split: str, **where: str) -> dict[str, int]:
    versus = {"versus_calibrator": "temperature", **where}
    return counts(benchmark, "ece", rivals(benchmark), split=split, **versus)


def is_shifted(benchmark: str) -> bool:
    """Whether a benchmark has corrupted test sets."""
    return bool(_splits(benchmark))


def _splits(benchmark: str) -> list[str]:
    return list(
        dict.fromkeys(row["split"] for row in rows(f"{benchmark}/differences.csv") if row["split"] != "test")
    )


def _short(split: str) -> str:
    return split.removeprefix("test-").replace("_", " ")


def _ece(benchmark: str, label: str, calibrator: str, split: str) -> str:
    return written(benchmark, label, calibrator, "ece", split).partition(f"{SPACE}±")[0]


def _shift_of(benchmark: str) -> list[str]:
    splits, labels = _splits(benchmark), entrants(benchmark)
    everywhere = ("test", *splits)
    ordered = sorted(
        labels, key=lambda one: np.mean([mean(benchmark, one, "identity", "ece", split) for split in splits])
    )
    versus = {"versus_calibrator": "temperature"}
    lines = [["ce + temperature", *(_ece(benchmark, "ce", "temperature", split) for split in everywhere)]]
    for label in ordered:
        marks = [sign(benchmark, label, "ece", split=split, **versus) for split in everywhere]
        numbers = [_ece(benchmark, label, "identity", split) for split in everywhere]
        lines.append([f"`{label}`", *map(marked, numbers, marks)])
    return [
        f"## {letter(benchmark)}: {benchmarks()[benchmark]['title']}",
        "",
        "Mean ECE % over seeds:",
        "",
        *table(["method", "clean", *map(_short, splits)], lines),
        *_effects(benchmark, splits),
        *(
            f"![ECE under {family.replace('_', ' ')}](figures/{benchmark}-{family}.svg)\n"
            for family in FAMILIES
        ),
        "Bands are 95% intervals, from test rows and seeds together.",
        "",
        *_foreign(benchmark, labels),
    ]


def _effects(benchmark: str, splits: Sequence[str]) -> list[str]:
    """Write differences of some methods from scaled cross-entropy, with intervals."""

    def cell(label: str, split: str) -> str:
        found = difference(benchmark, label, "ece", split=split, versus_calibrator="temperature")
        return marked(effect(found), mark_of(found)) if found else "–"

    shown = [label for label in SHOWN if label in entrants(benchmark)]
    lines = [[f"`{label}`", *(cell(label, split) for split in splits)] for label in shown]
    return [
        "Differences of some methods from scaled cross-entropy, in points, with simultaneous 95% intervals:",
        "",
        *table(["method", *map(_short, splits)], lines),
    ]


def _foreign(benchmark: str, labels: list[str]) -> list[str]:
    metric = _KEY.format("confidence")
    found = [row["split"] for row in rows(f"{benchmark}/scores.csv") if row["metric"] == metric]
    if not found:
        return []
    ordered = sorted(labels, key=lambda one: -mean(benchmark, one, "identity", metric, found[0]))
    lines = [
        (
            f"`{label}`",
            *(_spread(benchmark, label, _KEY.format(by), found[0]) for by in ("confidence", "energy")),
        )
        for label in ordered
    ]
    return [
        f"Detection of out-of-distribution images ({_short(found[0])}) by the confidence of the network: AUROC %, "
        "mean ± standard deviation over seeds. 50 is chance; below it the network is more confident about these "
        "images than about its own test images. Nothing was tested here: compare differences with the deviations.",
        "",
        *table(("method", "by confidence", "by energy"), lines),
    ]


def _spread(benchmark: str, label: str, metric: str, split: str) -> str:
    found = 100 * values(benchmark, label, "identity", metric, split)[:, 0]
    return f"{found.mean():.1f}" + (f"{SPACE}±{SPACE}{found.std(ddof=1):.1f}" if len(found) > 1 else "")
