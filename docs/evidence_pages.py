"""The pages of evidence, written from the files in ``evidence/`` and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from evidence_claims import claim_table
from evidence_data import (
    SPACE,
    arenas,
    costs,
    counts,
    is_run,
    knows_truth,
    letter,
    marked,
    mean,
    methods,
    pick,
    rows,
    seeds_of,
    sign,
    table,
    written,
)
from evidence_defaults import defaults
from evidence_files import language_models, outputs
from evidence_pictures import dots, front, shift_lines, undominated
from evidence_shift import FAMILIES, is_shifted, shift

HOME = Path(__file__).resolve().parent / "evidence"
NOTE = "<!-- Written by docs/generate.py from the files in evidence/; edit those. -->"
MARKS = (
    "A + is better and a − worse than cross-entropy after the same calibrator, by a paired test on the same rows "
    "over shared seeds "
    "(p < 0.05 after Holm's correction for the number of methods); neither is a tie."
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
    parts = [
        "# Evidence",
        "",
        "Calibration losses side by side on real data, with seeds, intervals and ties. Every number on these "
        "pages comes from a file in "
        "the folder `evidence/` of the repository, whose README says how each was made and how to repeat it. "
        "A tie is called a tie, and a "
        "claim that does not hold here is written down as such: at this scale, with these networks.",
        "",
        "## In short",
        "",
        *(f"- {sentence}" for sentence in short()),
        "",
        "## What was run",
        "",
        *table(
            ("arena", "data", "network", "methods", "seeds", "runs", "hours, on a shared machine"),
            map(_arena_line, arenas()),
        ),
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
        "comparisons (Holm) and for how little two or three seeds say about the scatter over seeds. With one seed "
        "that scatter is not known, and the verdict is about those two networks alone.",
        "",
        *claim_table(),
    ]
    return "\n".join(parts)


def _arena_line(arena: str) -> tuple[str, ...]:
    about = arenas()[arena]
    found = {row["run"]: row for row in rows(f"{arena}/runs.csv")}
    if not found:
        cost = f"not yet run; about {about['seconds']} s a run" if "seconds" in about else "not yet run"
        return letter(arena), about["title"], about["network"], "", "", "", cost
    return (
        letter(arena),
        about["title"],
        about["network"],
        str(len(methods(arena))),
        _seeds(arena).partition(" seed")[0],
        str(len(found)),
        f"{sum(row['seconds'] for row in found.values()) / 3600:.1f}",
    )


def _seeds(arena: str) -> str:
    """Write how many seeds the methods of an arena have."""
    counted = [len(seeds_of(arena)[label]) for label in methods(arena)]
    few, many = min(counted), max(counted)
    if few != many:
        return f"{few} to {many} seeds"
    return f"{many} seeds" if many > 1 else "1 seed"


def short() -> Iterator[str]:
    """Say what the files show, in sentences."""
    for arena in arenas():
        if not is_run(arena):
            continue
        labels = [label for label in methods(arena) if label != "ce"]
        before = counts(arena, "ece", labels)
        after = counts(arena, "ece", labels, calibrator="temperature")
        nll = counts(arena, "nll", labels, calibrator="temperature")
        accuracy = counts(arena, "accuracy", labels)
        temperature = np.mean([row["temperature"] for row in pick(rows(f"{arena}/runs.csv"), method="ce")])
        beaten = counts(arena, "ece", labels, versus_calibrator="temperature")
        yield (
            f"**{arenas()[arena]['title']}** ({arenas()[arena]['regime']}; {_seeds(arena)}; cross-entropy asks for "
            f"T = {temperature:.2f}). Of {len(labels)} "
            f"methods {before['better']} have a lower ECE than cross-entropy before scaling, {before['tie']} tie, "
            f"{before['worse']} are worse. After a temperature {after['better']} are better, {after['tie']} "
            f"tie, {after['worse']} are worse; "
            f"in NLL after a temperature {nll['better']}, {nll['tie']} and {nll['worse']}; in accuracy "
            f"{accuracy['better']}, "
            f"{accuracy['tie']} and {accuracy['worse']}. Without scaling, {beaten['better']} of them beat "
            "cross-entropy with a "
            f"temperature in ECE, {beaten['tie']} tie with it."
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
    seeds = seeds_of(arena)
    lines = []
    for label in sorted(methods(arena), key=lambda one: mean(arena, one, "temperature", "nll")):
        cells = [f"`{label}`", str(len(seeds[label]))]
        for calibrator, metrics in (
            ("identity", ("accuracy", "nll", "ece")),
            ("temperature", ("nll", "ece")),
        ):
            cells += [
                marked(
                    written(arena, label, calibrator, metric),
                    sign(arena, label, metric, calibrator=calibrator),
                )
                for metric in metrics
            ]
        cells.append(
            marked(written(arena, label, "advised", "nll"), sign(arena, label, "nll", calibrator="advised"))
        )
        if knows_truth(arena):
            cells += [written(arena, label, one, "true_error") for one in ("identity", "temperature")]
        if costs(arena):
            found = costs(arena).get(label)
            cells.append(
                f"{found['step']:.2f}{SPACE}({found['low']:.2f}–{found['high']:.2f})" if found else "–"
            )
        lines.append(cells)
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
        "NLL, advisor's map",
        *truth,
        *price,
    ]
    parts = [
        f"## {about['title']}",
        "",
        f"{about['network'][0].upper()}{about['network'][1:]}; {about['regime']}. Mean ± standard error over "
        "seeds, ordered by NLL after a temperature."
        + (" " + about["truth"] if knows_truth(arena) else "")
        + (" " + _price_words(arena) if costs(arena) else ""),
        "",
        *table(heads, lines),
    ]
    return [
        *parts,
        f"![ECE of every method before and after a temperature](pictures/{arena}-ece.svg)",
        "",
        f"![NLL after a temperature against accuracy](pictures/{arena}-front.svg)",
        "",
        *_front_words(arena),
        *_ranks(arena),
    ]


def _price_words(arena: str) -> str:
    turns = costs(arena)["ce"]["turns"]
    return (
        "Cost is the processor's time for a training step, in steps of cross-entropy: the median and the middle half "
        f"of {turns} turns in which all methods trained one after the other. Other settings of a method cost the same."
    )


def _front_words(arena: str) -> list[str]:
    names = ", ".join(f"`{label}`" for label in undominated(arena))
    return [
        f"No method is at once more accurate and lower in NLL after a temperature than these: {names}. All "
        "others are dominated in the mean; "
        "whether by more than chance, the signs in the table say.",
        "",
    ]


def _ranks(arena: str) -> list[str]:
    found = [row for row in rows(f"{arena}/ranks.csv") if row["n_seeds"] > 1]
    if not found:
        return []
    lines = [
        (
            f"`{row['method']}`",
            f"{row['rank']:.1f} [{row['rank_low']:.1f}, {row['rank_high']:.1f}]",
            f"{100 * row['wins']:.0f} % [{100 * row['wins_low']:.0f}, {100 * row['wins_high']:.0f}]",
        )
        for row in found
        if row["metric"] == "nll" and row["calibrator"] == "temperature"
    ]
    return [
        "Ranks by NLL after a temperature, and the share of rivals that a method beats, over seeds, with 95 "
        "% intervals from resampling the "
        "seeds. Intervals that overlap are no order.",
        "",
        *table(("method", "mean rank", "rivals beaten"), lines),
    ]
