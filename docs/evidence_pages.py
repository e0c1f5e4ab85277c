"""The pages of evidence, written from the files in ``evidence/`` and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from evidence_claims import claim_table
from evidence_data import (
    arenas,
    counts,
    difference,
    effect,
    is_run,
    mean,
    methods,
    pick,
    rows,
    seeds_of,
    sign,
    table,
    written,
)
from evidence_files import language_models, outputs
from evidence_pictures import dots, front, shift_lines, undominated

from equipoise.metrics.facts import metric_facts

HOME = Path(__file__).resolve().parent / "evidence"
NOTE = "<!-- Written by docs/generate.py from the files in evidence/; edit those. -->"
MARKS = (
    "+ is better and − worse than cross-entropy after the same calibrator, by a paired test on the same rows "
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
    if is_run("a"):
        for family in ("gaussian_noise", "gaussian_blur"):
            yield HOME / "pictures" / f"a-{family}.svg", shift_lines("a", family)


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
        return arena.upper().replace("P", "′"), about["title"], about["network"], "", "", "", cost
    seeds = [len(seeds_of(arena)[label]) for label in methods(arena)]
    few, many = min(seeds), max(seeds)
    return (
        arena.upper().replace("P", "′"),
        about["title"],
        about["network"],
        str(len(methods(arena))),
        f"{many}" if few == many else f"{few} to {many}",
        str(len(found)),
        f"{sum(row['seconds'] for row in found.values()) / 3600:.1f}",
    )


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
            f"**{arenas()[arena]['title']}** ({arenas()[arena]['regime']}; cross-entropy asks for T = "
            f"{temperature:.2f}). Of {len(labels)} "
            f"methods {before['better']} have a lower ECE than cross-entropy before scaling, {before['tie']} tie, "
            f"{before['worse']} are worse. After a temperature {after['better']} are better, {after['tie']} "
            f"tie, {after['worse']} are worse; "
            f"in NLL after a temperature {nll['better']}, {nll['tie']} and {nll['worse']}; in accuracy "
            f"{accuracy['better']}, "
            f"{accuracy['tie']} and {accuracy['worse']}. Without scaling, {beaten['better']} of them beat "
            "cross-entropy with a "
            f"temperature in ECE, {beaten['tie']} tie with it."
        )


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
                written(arena, label, calibrator, metric)
                + " "
                + sign(arena, label, metric, calibrator=calibrator)
                for metric in metrics
            ]
        cells.append(
            written(arena, label, "advised", "nll") + " " + sign(arena, label, "nll", calibrator="advised")
        )
        if arena == "e":
            cells += [written(arena, label, one, "true_error") for one in ("identity", "temperature")]
        lines.append([cell.strip() for cell in cells])
    truth = ["true error %", "true error %, scaled"] if arena == "e" else []
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
    ]
    parts = [
        f"## {about['title']}",
        "",
        f"{about['network'][0].upper()}{about['network'][1:]}; {about['regime']}. Mean ± standard error over "
        "seeds, ordered by NLL after a "
        "temperature. What a step of each method costs is not told here: the machine was shared.",
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


def shift() -> str:
    """Write whether calibration made in training survives shift better than scaling afterwards."""
    parts = [
        "# Under shift",
        "",
        "Does calibration at training time survive a shift of the data better than scaling afterwards? Each "
        "method without any scaling "
        "against cross-entropy with a temperature that was fitted on clean rows, by ECE on corrupted test "
        "images (+ the loss is better, "
        "− scaling is).",
        "",
    ]
    if not is_run("a"):
        return "\n".join([*parts, "Not yet run.", ""])
    splits = list(dict.fromkeys(row["split"] for row in rows("a/differences.csv") if row["split"] != "test"))
    labels = methods("a")
    lines = []
    for label in sorted(
        labels, key=lambda one: np.mean([mean("a", one, "identity", "ece", split) for split in splits])
    ):
        cells = [
            (
                written("a", label, "identity", "ece", split).partition(" ±")[0]
                + " "
                + sign("a", label, "ece", versus_calibrator="temperature", split=split)
            ).strip()
            for split in ("test", *splits)
        ]
        lines.append([f"`{label}`", *cells])
    scaled = [
        "ce + temperature",
        *(written("a", "ce", "temperature", "ece", s).partition(" ±")[0] for s in ("test", *splits)),
    ]
    heads = ["method", "clean", *(split.removeprefix("test-").replace("_", " ") for split in splits)]
    won = {
        split: counts(
            "a", "ece", [one for one in labels if one != "ce"], versus_calibrator="temperature", split=split
        )
        for split in splits
    }
    parts += [
        "Mean ECE % over seeds:",
        "",
        *table(heads, [scaled, *lines]),
        "Over all methods but cross-entropy: "
        + "; ".join(
            f"{split.removeprefix('test-').replace('_', ' ')}: {n['better']} better than scaled "
            f"cross-entropy, {n['tie']} tied, {n['worse']} worse"
            for split, n in won.items()
        )
        + ".",
        "",
        "![ECE under Gaussian noise](pictures/a-gaussian_noise.svg)",
        "",
        "![ECE under blur](pictures/a-gaussian_blur.svg)",
        "",
        *_foreign(labels),
    ]
    return "\n".join(parts)


def _foreign(labels: list[str]) -> list[str]:
    lines = []
    key = "ood_auroc_{}"
    for label in sorted(
        labels, key=lambda one: -mean("a", one, "identity", key.format("confidence"), "test-mnist")
    ):
        numbers = [
            100 * mean("a", label, "identity", key.format(by), "test-mnist")
            for by in ("confidence", "energy")
        ]
        lines.append((f"`{label}`", *(f"{number:.1f}" for number in numbers)))
    return [
        "## Foreign images",
        "",
        "Fashion-MNIST told from MNIST by how sure the network is: AUROC %, mean over seeds.",
        "",
        *table(("method", "by confidence", "by energy"), lines),
    ]


def defaults() -> str:
    """Write how good our own defaults are."""
    parts = [
        "# Our own defaults",
        "",
        "## Does `choose` beat the settings of the papers?",
        "",
        "Differences of the chosen setting from the paper's, on test rows that took no part in the choice.",
        "",
    ]
    lines = [line for arena in ("a", "ap") if is_run(arena) for line in _variant_lines(arena, chosen=True)]
    heads = ("arena", "method", "seeds", "chosen", "ECE, points", "", "NLL", "", "NLL, scaled", "")
    parts += table(heads, lines) if lines else ["Not yet run.", ""]
    parts += [
        "## Which epoch to keep?",
        "",
        "The best epoch on tune by NLL, or by NLL after scaling, against the last.",
        "",
    ]
    lines = [line for arena in ("a",) if is_run(arena) for line in _variant_lines(arena, chosen=False)]
    parts += table(heads, lines) if lines else ["Not yet run.", ""]
    return "\n".join([*parts, *_advisor(), *_coverage()])


def _variant_lines(arena: str, *, chosen: bool) -> Iterator[list[str]]:
    for label in methods(arena):
        base = label.partition("(")[0]
        if ("(" not in label) or ((" by " in label) != chosen) or (not chosen and "keep" not in label):
            continue
        cells = [arena.upper().replace("P", "′"), f"`{label}`", str(len(seeds_of(arena)[label]))]
        picked = [row["chosen"] or "–" for row in pick(rows(f"{arena}/runs.csv"), method=label)]
        cells.append(", ".join(str(one) for one in picked) if chosen else "–")
        for metric, calibrator in (("ece", "identity"), ("nll", "identity"), ("nll", "temperature")):
            found = difference(arena, label, metric, calibrator=calibrator, versus=base)
            cells += [effect(found), found["verdict"]] if found else ["–", ""]
        yield cells


def _advisor() -> list[str]:
    parts = ["## Is the advisor's map right?", ""]
    lines = []
    for arena in arenas():
        groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in rows(f"{arena}/advisor.csv"):
            groups.setdefault((row["method"], row["seed"]), []).append(row)
        if groups:
            lines.append(_advisor_line(arena, list(groups.values())))
    if not lines:
        return [*parts, "Not yet run.", ""]
    heads = (
        "arena",
        "runs",
        "chosen",
        "best on test",
        "NLL lost by it",
        "by always a temperature",
        "by no map",
    )
    return [
        *parts,
        "For every run the advisor chose a map on calib. All its candidates were fitted on the same rows and "
        "judged on test; regret is the "
        "NLL above the best of them, mean over runs.",
        "",
        *table(heads, lines),
    ]


def _advisor_line(arena: str, runs: list[list[dict[str, Any]]]) -> list[str]:
    best = [min(run, key=lambda row: row["test_nll"]) for run in runs]
    taken = [next(row for row in run if row["chosen"] in (True, "True")) for run in runs]

    def regret(rivals: list[dict[str, Any]]) -> str:
        lost = [rival["test_nll"] - top["test_nll"] for rival, top in zip(rivals, best, strict=True)]
        return f"{np.mean(lost):.4f}"

    def named(found: list[dict[str, Any]]) -> str:
        names = [row["candidate"] for row in found]
        ordered = sorted(set(names), key=lambda one: (-names.count(one), one))
        return ", ".join(f"`{one}` {names.count(one)}" for one in ordered)

    fixed = [
        [row for run in runs for row in run if row["candidate"] == name]
        for name in ("temperature", "identity")
    ]
    return [
        arena.upper().replace("P", "′"),
        str(len(runs)),
        named(taken),
        named(best),
        regret(taken),
        *map(regret, fixed),
    ]


def _coverage() -> list[str]:
    found = rows("e/coverage.csv")
    if not found:
        return ["## Does the interval of the ECE hold the truth?", "", "Not yet run.", ""]
    percent = metric_facts("ece")
    lines = [
        (
            row["predictor"],
            f"{row['n']:,}",
            percent.number(row["true_ece"]),
            percent.number(row["mean_ece"]),
            percent.number(row["mean_debiased_ece"]),
            percent.number(row["mean_width"]),
            f"{100 * row['covers_ece']:.1f} %",
            f"{100 * row['below']:.1f} % / {100 * row['above']:.1f} %",
        )
        for row in found
    ]
    heads = (
        "predictor",
        "rows",
        "true ECE %",
        "mean estimate",
        "debiased",
        "mean width",
        "intervals that hold it",
        "too low / too high",
    )
    first = found[0]
    return [
        "## Does the interval of the ECE hold the truth?",
        "",
        f"Predictors on a mixture whose posterior is known; {first['repeats']} samples of each size, "
        f"{first['resamples']} resamples each. A 95 % "
        "interval should hold the truth in 95 % of them, with a standard error of "
        f"{100 * np.sqrt(0.05 * 0.95 / first['repeats']):.1f} points here.",
        "",
        *table(heads, lines),
    ]
