"""The page of one benchmark of the second edition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pages.results import SIGNS, letter, marked, mean, pick, rows, signed, table, with_interval
from pages.second.data import (
    DECISIONS,
    base,
    choose_decay,
    chosen_decay,
    compared,
    decisions,
    needs_decay,
    rivals,
    shifts,
    spec,
    titles,
)
from pages.second.leaderboard import figure_with_caption
from pages.second.words import (
    COST,
    READ,
    SHOWN,
    conclusion,
    count_conclusions,
    names,
    number,
    primary_table,
    shift_name,
)

UNDER_SHIFT = (
    "The same networks on shifted test sets; exploratory. Temperatures, thresholds and sets are those of clean rows, "
    "so error and coverage may miss their targets of 5% and 90%."
)


def page(benchmark: str) -> str:
    """Write the page of one benchmark."""
    found = rivals(benchmark)
    papers = rivals(benchmark, "papers")
    more = [
        row
        for family in ("boosting", "seeds", "auto", "submitted")
        for row in rivals(benchmark, family)
    ]  # fmt: skip
    parts = [
        f"# {letter(benchmark)}: {titles()[benchmark]}",
        "",
        f"{base(benchmark)['n_seeds']} seeds, {base(benchmark)['n_rows']:,} rows judged. [Second edition](second.md) "
        "describes the design.",
        "",
        *_warning(benchmark),
        "## Primary endpoint",
        "",
        f"NLL after temperature scaling: {len(found)} tuned methods against cross-entropy, as designed. This is the "
        "confirmatory family. Differences are in percent of the NLL of cross-entropy.",
        "",
        *primary_table([base(benchmark), *found]),
        f"{READ} {COST}",
        "",
        *figure_with_caption(),
        "## Secondary endpoints",
        "",
        "After temperature scaling, mean ± standard error over seeds; exploratory. A + is better and a − worse than "
        "cross-entropy, corrected for the number of methods in the column. Certified coverage is the share of rows "
        "that is accepted where at most 5% of the accepted may be wrong, with confidence 0.95. Its threshold and the "
        "sets of 90% coverage come from `tune`. Decisions are judged on `test`, and their marks count the scatter "
        f"over seeds only.{' The warning above applies here too.' * needs_decay(benchmark)}",
        "",
        *_secondary(benchmark, [base(benchmark), *found]),
    ]
    if decayed := rivals(benchmark, "decay"):
        parts += ["## With the same weight decay", "", _supplement(benchmark, decayed[0]), ""]
        parts += primary_table(decayed)
    if shifts(benchmark):
        parts += ["## Under shift", "", UNDER_SHIFT, ""]
    for split in shifts(benchmark):
        parts += _shifted_table(benchmark, split)
    if papers:
        parts += [
            "## Settings of papers",
            "",
            "The rest of the catalogue, at one setting each: exploratory, and a family of its own.",
            "",
            *primary_table(papers),
        ]
    if more:
        parts += ["## Other entries", "", *primary_table(more)]
    return "\n".join(parts)


def _warning(benchmark: str) -> list[str]:
    """Warn of the weight decay that rivals do not have, above the first table."""
    if not needs_decay(benchmark):
        return []
    value, often, seeds = chosen_decay(benchmark)
    found, decayed = rivals(benchmark), rivals(benchmark, "decay")
    if decayed:
        fair = (
            "[The table with the same weight decay for all](#with-the-same-weight-decay) separates the two: there, "
            f"{count_conclusions(decayed)}; here, {count_conclusions(found)}."
        )
    else:
        fair = "The comparison with the same weight decay is not complete yet."
    return [
        "> **The next table mixes the effect of a method with that of weight decay.** Only "
        f"{names(choose_decay())} choose a weight decay there; the other methods train without one. Cross-entropy "
        f"chose {value} in {often} of {seeds} seeds. So a method may be worse only because it lacks weight decay. "
        f"{fair}",
        "",
    ]


def _shifted_table(benchmark: str, split: str) -> list[str]:
    """Write the endpoints on a shifted test set."""
    folder, shown = f"second/{benchmark}", ("accuracy", "ece", "error_at_5", "set_size_90", "set_coverage_90")

    def means(label: str) -> Iterator[str]:
        for metric in shown:
            _, factor, digits = SHOWN[metric]
            yield f"{factor * mean(folder, label, 'temperature', metric, split):.{digits}f}"

    found = [
        row
        for family in ("tuned", "decay")
        for row in pick(compared(benchmark, "baseline", "nll", family), split=split)
    ]
    lines = [["`ce`", f"{found[0]['versus_value']:.4f}", "–", "baseline", *means("ce")]]
    for row in sorted(found, key=lambda row: row["difference"] / row["versus_value"]):
        ends = (100 * row[key] / row["versus_value"] for key in ("difference", "low", "high"))
        percent = with_interval(*(signed(end, 2) for end in ends))
        both = {"test": row["verdict"], "conclusion": row["conclusion"]}
        lines.append(
            [f"`{row['method']}`", f"{row['value']:.4f}", percent, conclusion(both), *means(row["method"])]
        )
    heads = (
        "method",
        "NLL",
        "difference % [95% interval]",
        "conclusion",
        *(SHOWN[metric][0] for metric in shown),
    )
    return [
        f"{shift_name(split).capitalize()}:",
        "",
        *table(heads, lines),
    ]


def _supplement(benchmark: str, row: Mapping[str, Any]) -> str:
    """Describe the supplement by one of its rows."""
    value = next(
        one["recipe"]["weight_decay"] for one in spec(f"{benchmark}-3-decay")["method"] if "recipe" in one
    )
    return (
        f"All methods of this table train with a weight decay of {value} and choose hyperparameters of their own as "
        f"above. Cross-entropy chooses its weight decay as above. {row['n_seeds']} seeds, {row['n_rows']:,} rows "
        f"judged, on which the NLL of cross-entropy is {row['nll'] - row['difference']:.4f}. This supplement was added "
        "after the design was written. It is exploratory and a family of its own."
    )


def _secondary(benchmark: str, found: Sequence[Mapping[str, Any]]) -> list[str]:
    marks: dict[tuple[str, str], str] = {
        (label, metric): SIGNS[one.verdict]
        for metric in DECISIONS
        for label, one in decisions(benchmark, metric).items()
    }
    folder = f"second/{benchmark}"
    fresh = rows(f"{folder}_fresh/differences.csv")
    for row in fresh or rows(f"{folder}/differences.csv"):
        where = (row["question"], row["split"], row["calibrator"], row["versus_calibrator"])
        if where == ("baseline", "test", "temperature", "temperature") and row["family"] == "tuned":
            marks[row["method"], row["metric"]] = SIGNS[row["verdict"]]

    def cell(row: Mapping[str, Any], metric: str) -> str:
        return marked(number(row, metric), marks.get((row["method"], metric), ""))

    lines = [[f"`{row['method']}`", *(cell(row, metric) for metric in SHOWN)] for row in found]
    return table(["method", *(title for title, _, _ in SHOWN.values())], lines)
