"""The pages of evidence, written from the files in ``evidence/`` and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from evidence_claims import claim_table
from evidence_data import (
    SPACE,
    arenas,
    costs,
    difference,
    effect,
    entrants,
    is_run,
    knows_truth,
    letter,
    mark_of,
    marked,
    mean,
    methods,
    rows,
    seeds_of,
    sign,
    split_sizes,
    table,
    values,
    written,
)
from evidence_defaults import defaults
from evidence_files import language_models, outputs
from evidence_pictures import dots, front, shift_lines, undominated
from evidence_sentences import in_short, seeds_words, verdicts
from evidence_shift import FAMILIES, is_shifted, shift
from scipy.stats import studentized_range

HOME = Path(__file__).resolve().parent / "evidence"
NOTE = "<!-- Written by docs/generate.py from the files in evidence/; edit those. -->"
#: Methods that cost less, in steps of cross-entropy, are compared on their own.
CHEAP = 1.3
MARKS = (
    "A + is better and a − worse than cross-entropy after the same calibrator, by a paired test on the same rows "
    "over shared seeds "
    "(p < 0.05 after Holm's correction for the number of methods); neither is a tie. In brackets, (+) or (−): one "
    "seed, so about these two networks and not about the methods."
)


def evidence_pages() -> Iterator[tuple[Path, str]]:
    """Give every file with its content."""
    for name, text in (
        ("index.md", index()),
        ("losses.md", losses()),
        ("shift.md", shift()),
        ("defaults.md", defaults()),
        ("outputs.md", outputs()),
        ("language-models.md", language_models()),
    ):
        yield HOME / name, f"{NOTE}\n{text}"
    for arena in arenas():
        if is_run(arena):
            yield HOME / "pictures" / f"{arena}-ece.svg", dots(arena)
            yield HOME / "pictures" / f"{arena}-front.svg", front(arena)
    for arena in filter(is_shifted, arenas()):
        for family in FAMILIES:
            yield HOME / "pictures" / f"{arena}-{family}.svg", shift_lines(arena, family)


def index() -> str:
    """Write the first page: what was run, what came out, which claims hold."""
    alone = any(seeds_words(arena).startswith("1 ") for arena in filter(is_run, arenas()))
    brackets = " In brackets: one seed, so about these networks." if alone else ""
    parts = [
        "# Evidence",
        "",
        "Calibration losses side by side, on real data and on a mixture whose truth is known, with seeds, intervals "
        "and ties. Every number on these "
        "pages comes from a file in "
        "the folder `evidence/` of the repository, whose README says how each was made and how to repeat it. "
        "A tie is called a tie, and a "
        "claim that does not hold here is written down as such: at this scale, with these networks.",
        "",
        "## In short",
        "",
        *(f"- {sentence}" for sentence in in_short()),
        "",
        "Methods against cross-entropy, *better / tied / worse*; T is the temperature that cross-entropy asks for, "
        f"above 1 where it is over-confident.{brackets}",
        "",
        *verdicts(),
        "## What was run",
        "",
        *table(
            (
                "arena",
                "data",
                "rows",
                "network",
                "methods",
                "runs",
                "hours",
            ),
            map(_arena_line, arenas()),
        ),
        "Rows are those of train, tune, calib and test; hours are of a machine shared with others. "
        "Methods are as their papers set them, and on top of that in settings that were chosen on tune and with other "
        "epochs kept, which [Our defaults](defaults.md) compares. Post-hoc maps are fitted on calib, whose labels no "
        "network sees; AdaFocal, CALS, gamma-net and meta label smoothing learn from tune while training, too.",
        "",
        *over_tasks(),
        "[Losses](losses.md) · [Shift](shift.md) · [Our defaults](defaults.md) · [Outputs of other people's "
        "networks](outputs.md) · "
        "[Language models](language-models.md)",
        "",
        "## Claims of the papers",
        "",
        "Published numbers are of the papers' data and networks, ours of the arenas above; they are not to "
        "be compared with each other, "
        "only their direction is. Effects are paired differences with 95 % intervals, ECE and accuracy in "
        "percentage points. A verdict asks for more than an interval without zero: it allows for the number of "
        "comparisons (Holm). Intervals and verdicts allow for how little two or three seeds say about the scatter over "
        "seeds. With one seed "
        "that scatter is not known, and the verdict is about those two networks alone. Where a claim is that nothing "
        "is lost, it holds if a loss of half a point is ruled out, and is not shown otherwise.",
        "",
        *claim_table(),
    ]
    return "\n".join(parts)


def _arena_line(arena: str) -> tuple[str, ...]:
    about = arenas()[arena]
    found = {row["run"]: row for row in rows(f"{arena}/runs.csv")}
    if not found:
        return letter(arena), about["title"], "", about["network"], "", "", "not yet run"
    return (
        letter(arena),
        about["title"],
        ", ".join(f"{count:,}" for count in split_sizes(arena)),
        about["network"],
        f"{len(entrants(arena))} + {len(methods(arena)) - len(entrants(arena))}",
        str(len(found)),
        f"{sum(row['seconds'] for row in found.values()) / 3600:.1f}",
    )


def over_tasks() -> list[str]:
    """Write who beats whom over all tasks."""
    found = rows("wins.csv")
    if not found:
        return []
    questions = [("ece", "identity"), ("ece", "temperature"), ("nll", "temperature")]
    cells = {(row["metric"], row["calibrator"], row["method"]): row for row in found}
    labels = [row["method"] for row in found if (row["metric"], row["calibrator"]) == questions[-1]]
    lines = [
        [
            f"`{label}`",
            *(
                f"{100 * row['wins']:.0f} % [{100 * row['wins_low']:.0f}, {100 * row['wins_high']:.0f}]"
                for row in (cells[*question, label] for question in questions)
            ),
        ]
        for label in labels
    ]
    tasks = ", ".join(letter(arena) for arena in found[0]["tasks"].split())
    return [
        f"How many of its rivals a method beats, over the tasks {tasks} and their seeds, for the methods that all of "
        "these have; 95 % intervals from resampling tasks and the seeds within each. Half is what chance gives; "
        "intervals that overlap are no order, and so few tasks leave them wide.",
        "",
        *table(("method", "ECE", "ECE, scaled", "NLL, scaled"), lines),
    ]


def losses() -> str:
    """Write the tables of methods."""
    parts = ["# Losses, side by side", "", MARKS, ""]
    for arena in filter(is_run, arenas()):
        parts += _losses_of(arena)
    return "\n".join(parts)


def _losses_of(arena: str) -> list[str]:
    about = arenas()[arena]
    ordered = sorted(entrants(arena), key=lambda one: mean(arena, one, "temperature", "nll"))
    lines = [_method_line(arena, label) for label in ordered]
    truth = ["true error %", "true error %, scaled"] if knows_truth(arena) else []
    price = ["cost"] if costs(arena) else []
    heads = [
        "method",
        "seeds",
        "accuracy %",
        "NLL",
        "ECE %",
        "NLL, scaled",
        "ECE %, scaled",
        f"NLL, advisor's map{_advised_seeds(arena)}",
        *truth,
        *price,
    ]
    parts = [
        f"## {letter(arena)}: {about['title']}",
        "",
        f"{about['network'][0].upper()}{about['network'][1:]}; {about['regime']}. Mean ± standard error over "
        "seeds, ordered by NLL after a temperature. ECE in 15 bins."
        + (" " + about["truth"] if knows_truth(arena) else "")
        + (" " + _price_words(arena) if costs(arena) else ""),
        "",
        *table(heads, lines),
        "Differences from cross-entropy with 95 % intervals, ECE and accuracy in points:",
        "",
        *table(
            ("method", "accuracy", "ECE", "NLL, scaled", "ECE, scaled"),
            (_effect_line(arena, label) for label in ordered if label != "ce"),
        ),
    ]
    return [
        *parts,
        f"![ECE of every method before and after a temperature](pictures/{arena}-ece.svg)",
        "",
        f"Lines are 95 % intervals, from test rows {_and_seeds(arena)}.",
        "",
        f"![NLL after a temperature against accuracy](pictures/{arena}-front.svg)",
        "",
        *_front_words(arena),
        *_ranks(arena),
    ]


def _and_seeds(arena: str) -> str:
    return "alone: there is one seed" if seeds_words(arena) == "1 seed" else "and seeds together"


def _method_line(arena: str, label: str) -> list[str]:
    def cell(calibrator: str, metric: str) -> str:
        mark = sign(arena, label, metric, calibrator=calibrator)
        return marked(written(arena, label, calibrator, metric), mark)

    cells = [
        f"`{label}`",
        str(len(seeds_of(arena)[label])),
        cell("identity", "accuracy"),
        cell("identity", "nll"),
        cell("identity", "ece"),
        cell("temperature", "nll"),
        cell("temperature", "ece"),
        cell("advised", "nll"),
    ]
    if knows_truth(arena):
        cells += [written(arena, label, one, "true_error") for one in ("identity", "temperature")]
    if costs(arena):
        found = costs(arena).get(label)
        cells.append(f"{found['step']:.2f}{SPACE}({found['low']:.2f}–{found['high']:.2f})" if found else "–")
    return cells


def _effect_line(arena: str, label: str) -> list[str]:
    def against(calibrator: str, metric: str) -> str:
        found = difference(arena, label, metric, calibrator=calibrator)
        return marked(effect(found), mark_of(found)) if found else "–"

    return [
        f"`{label}`",
        *(against("identity", metric) for metric in ("accuracy", "ece")),
        *(against("temperature", metric) for metric in ("nll", "ece")),
    ]


def _advised_seeds(arena: str) -> str:
    """Write of how many seeds the advisor was asked, where it was not of all."""
    asked, there = len(values(arena, "ce", "advised", "nll")), len(seeds_of(arena)["ce"])
    return f" ({asked} of {there} seeds)" if asked < there else ""


def _price_words(arena: str) -> str:
    turns = costs(arena)["ce"]["turns"]
    return (
        "Cost is the processor's time for a training step, in steps of cross-entropy: the median and the middle half "
        f"of {turns} turns in which all methods trained one after the other. What some do between epochs (AdaFocal and "
        "CALS look at tune) is not in it, and a setting that is chosen costs a training for each that is tried."
    )


def _front_words(arena: str) -> list[str]:
    def names(labels: Sequence[str]) -> str:
        return ", ".join(f"`{label}`" for label in labels)

    parts = [
        "In the mean no method is at once more accurate and lower in NLL after a temperature than "
        f"{names(undominated(arena, entrants(arena)))}; seeds order them otherwise here and there."
    ]
    price = costs(arena)
    cheap = [label for label in entrants(arena) if label in price and price[label]["step"] < CHEAP]
    if len(cheap) < len(entrants(arena)) and cheap:
        parts.append(
            f"Among those that cost less than {CHEAP} steps of cross-entropy: {names(undominated(arena, cheap))}."
        )
    return [" ".join(parts), ""]


def _ranks(arena: str) -> list[str]:
    found = [row for row in rows(f"{arena}/ranks.csv") if row["n_seeds"] > 1]
    asked = [row for row in found if row["metric"] == "nll" and row["calibrator"] == "temperature"]
    if not asked:
        return []
    lines = [
        (
            f"`{row['method']}`",
            f"{row['rank']:.1f} ({row['rank_low']:g} to {row['rank_high']:g})",
            f"{100 * row['wins']:.0f} %",
        )
        for row in asked
    ]
    apart = critical_difference(len(asked), asked[0]["n_seeds"])
    group = [row["method"] for row in asked if row["rank"] - asked[0]["rank"] <= apart]
    return [
        "Mean ranks by NLL after a temperature with the range over seeds, and the share of rivals that a method beats. "
        f"With {asked[0]['n_seeds']} seeds as blocks, mean ranks that are less than {apart:.1f} apart are no order "
        "(Nemenyi's critical difference, 5 %): "
        f"{len(group)} of {len(asked)} methods are not told from the first.",
        "",
        *table(("method", "mean rank", "rivals beaten"), lines),
    ]


def critical_difference(n_methods: int, n_seeds: int) -> float:
    """Return how far mean ranks must be apart to be an order, by Nemenyi's test at 5 %."""
    spread = studentized_range.ppf(0.95, n_methods, 1e6) / np.sqrt(2)
    return float(spread * np.sqrt(n_methods * (n_methods + 1) / (6 * n_seeds)))
