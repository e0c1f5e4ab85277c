"""The pages of evidence, written from the files in ``evidence/`` and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pages.calibrators import calibrators
from pages.claims import claim_table
from pages.defaults import defaults
from pages.figures import dots, front, shift_lines, undominated
from pages.files import language_models, outputs
from pages.results import (
    SPACE,
    amount,
    benchmarks,
    costs,
    count_words,
    counts,
    detectable,
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
    rivals,
    rows,
    seeds_of,
    sign,
    signed,
    split_sizes,
    table,
    values,
    written,
)
from pages.second import benchmark as second_benchmark
from pages.second import leaderboard, overview
from pages.second.data import done
from pages.sentences import SCALED, in_short, ranking_pairs, seeds_words, verdicts
from pages.shift import FAMILIES, is_shifted, shift
from scipy.stats import studentized_range, t

HOME = Path(__file__).resolve().parents[2] / "docs" / "evidence"
NOTE = "<!-- Written by tools/docs/generate.py from the files in evidence/; edit those. -->"
#: Methods that cost less, in steps of cross-entropy, are compared on their own.
CHEAP = 1.3
MARKS = (
    "A + is better and a − worse than cross-entropy after the same calibrator, by a test that is paired by seed and by "
    "row. No mark: no significant difference. In parentheses, (+) or (−): one seed, so the mark is about these two "
    "networks and not about the methods. Marks are corrected for the number of comparisons in their column: if nothing "
    "differed, 5% of columns would show any mark, and at most 5% of marks are false on average (Benjamini and "
    "Hochberg). An interval of a difference excludes zero exactly where there is a mark."
)
UPPER = (
    "The error of a difference has two parts: the scatter over seeds, with one degree of freedom less than there "
    "are seeds, and the test rows, which all seeds share. For E the second part comes from resamples that all seeds "
    "share. For the other benchmarks only the row error of a single seed is known. It is an upper bound, so their "
    "verdicts are on the cautious side."
)


def evidence_pages() -> Iterator[tuple[Path, str]]:
    """Give every file with its content."""
    for name, text in (
        ("index.md", index()),
        ("losses.md", losses()),
        *((f"losses-{benchmark}.md", losses_of(benchmark)) for benchmark in filter(is_run, benchmarks())),
        ("calibrators.md", calibrators()),
        ("shift.md", shift()),
        ("defaults.md", defaults()),
        ("outputs.md", outputs()),
        ("language-models.md", language_models()),
        ("second.md", overview.overview()),
        *((f"second-{benchmark}.md", second_benchmark.page(benchmark)) for benchmark in done()),
        ("leaderboard.md", leaderboard.page()),
    ):
        yield HOME / name, f"{NOTE}\n{text}"
    for benchmark in benchmarks():
        if is_run(benchmark):
            yield HOME / "figures" / f"{benchmark}-ece.svg", dots(benchmark)
            yield HOME / "figures" / f"{benchmark}-front.svg", front(benchmark)
    if done():
        yield HOME / "figures" / "leaderboard.svg", leaderboard.figure()
    for benchmark in filter(is_shifted, benchmarks()):
        for family in FAMILIES:
            yield HOME / "figures" / f"{benchmark}-{family}.svg", shift_lines(benchmark, family)


def index() -> str:
    """Write the first page: what was run, what came out, which claims hold."""
    parts = [
        "# Evidence",
        "",
        "Calibration losses and calibrators side by side, on real data and on a mixture whose truth is known, with "
        "seeds and intervals. Every number on these pages comes from a file in the folder `evidence/` of the "
        "repository. Its README describes how each file was made and how to repeat it. All results are for networks of "
        "this size on these data.",
        "",
        "## In short",
        "",
        *(f"- {sentence}" for sentence in in_short()),
        "",
        "Methods against cross-entropy, *better / tied / worse*. In parentheses: the smallest true difference that "
        "such a comparison finds with 80% power (the median over its ties; points, or NLL). A tie does not "
        "exclude a difference of that size. T is the temperature of cross-entropy, above 1 where it is overconfident.",
        "",
        *verdicts(),
        "![NLL after temperature scaling against accuracy, benchmark A](figures/a-front.svg)",
        "",
        *_power_words(),
        "## What was run",
        "",
        *table(
            (
                "benchmark",
                "data",
                "rows",
                "network",
                "methods",
                "runs",
                "hours",
            ),
            map(_benchmark_line, benchmarks()),
        ),
        "Rows are those of `train`, `tune`, `calib` and `test`; hours are of a shared machine. `tune` is the "
        "validation split, and post-hoc calibrators are fitted on `calib`. Methods have their papers' settings. "
        "Settings that were chosen on `tune` and other kept epochs come on top, and [Our defaults](defaults.md) "
        "compares them. AdaFocal, CALS, gamma-net and meta label smoothing also learn from `tune` while training.",
        "",
        *over_tasks(),
        "[Second edition](second.md) · [Leaderboard](leaderboard.md) · [Losses](losses.md) · "
        "[Calibrators](calibrators.md) · [Shift](shift.md) · [Our defaults](defaults.md) · "
        "[Outputs of other people's networks](outputs.md) · [Language models](language-models.md)",
        "",
        "## Claims of the papers",
        "",
        "Published numbers are of the papers' data and networks, ours of the benchmarks above. Compare their "
        "direction, not their size. Effects are paired differences with simultaneous 95% intervals, ECE and "
        "accuracy in percentage points. A claim holds or fails where the interval excludes zero. A tie is not "
        "evidence against a claim: the interval shows which differences remain possible. With one seed, the verdict "
        "is about those two networks alone. Where a claim is that nothing is lost, it holds if a loss of half a "
        "point is ruled out, and is not shown otherwise.",
        "",
        *claim_table(),
    ]
    return "\n".join(parts)


def _power_words() -> list[str]:
    """State why few seeds with many comparisons find little."""
    parts = []
    for benchmark in filter(is_run, benchmarks()):
        found = [row for row in rows(f"{benchmark}/differences.csv") if _is_scaled_nll(row)]
        if found and found[0]["n_seeds"] > 1:
            seeds, many = found[0]["n_seeds"], found[0]["comparisons"]
            critical = t.ppf(1 - 0.025 / many, seeds - 1)
            parts.append(f"{critical:.0f} in {letter(benchmark)} ({seeds} seeds, {many} comparisons)")
    return [
        "Few seeds and many comparisons find only large differences. Where the scatter over seeds dominates, a "
        f"difference must exceed this many of its standard errors: {', '.join(parts)}. {UPPER}",
        "",
    ]


def _is_scaled_nll(row: Mapping[str, Any]) -> bool:
    return (row["question"], row["split"], row["calibrator"], row["metric"]) == (
        "baseline", "test", "temperature", "nll"
    )  # fmt: skip


def _benchmark_line(benchmark: str) -> tuple[str, ...]:
    about = benchmarks()[benchmark]
    found = {row["run"]: row for row in rows(f"{benchmark}/runs.csv")}
    if not found:
        return letter(benchmark), about["title"], "", about["network"], "", "", "not yet run"
    hours = sum(row["seconds"] for row in found.values()) / 3600
    return (
        letter(benchmark),
        about["title"],
        ", ".join(f"{count:,}" for count in split_sizes(benchmark)),
        about["network"],
        f"{len(entrants(benchmark))} + {len(methods(benchmark)) - len(entrants(benchmark))}",
        str(len(found)),
        f"{hours:.1f}" if hours >= 0.05 else "under 0.1",
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
                f"{100 * row['wins']:.0f}% [{100 * row['wins_low']:.0f}, {100 * row['wins_high']:.0f}]"
                for row in (cells[*question, label] for question in questions)
            ),
        ]
        for label in labels
    ]
    tasks = ", ".join(letter(benchmark) for benchmark in found[0]["tasks"].split())
    return [
        f"The share of its rivals that a method beats, over the benchmarks {tasks} and their seeds, for the methods "
        "that all of these have. 95% intervals come from resampling benchmarks, and the seeds within each. Chance "
        "gives 50%. Methods whose intervals overlap are not ordered, and so few benchmarks leave the intervals wide.",
        "",
        *table(("method", "ECE", "ECE, scaled", "NLL, scaled"), lines),
    ]


def losses() -> str:
    """Write what holds for the tables of all benchmarks, with a link to each."""
    parts = ["# Losses, side by side", "", "One page per benchmark:", ""]
    parts += table(
        ("benchmark", "network", "training"),
        (
            (
                f"[{letter(benchmark)}: {about['title']}](losses-{benchmark}.md)",
                about["network"],
                about["regime"],
            )
            for benchmark, about in benchmarks().items()
            if is_run(benchmark)
        ),
    )
    first = next(filter(is_run, benchmarks()))
    parts += [
        f"![ECE of every method before and after temperature scaling, {letter(first)}](figures/{first}-ece.svg)",
        "",
        "## How to read the tables",
        "",
        MARKS,
        "",
        UPPER,
        "",
    ]
    return "\n".join([*parts, *ranking()])


def losses_of(benchmark: str) -> str:
    """Write the tables of methods of one benchmark."""
    about = benchmarks()[benchmark]
    ordered = sorted(entrants(benchmark), key=lambda one: mean(benchmark, one, "temperature", "nll"))
    lines = [_method_line(benchmark, label) for label in ordered]
    truth = ["true error %", "true error %, scaled"] if knows_truth(benchmark) else []
    price = ["cost"] if costs(benchmark) else []
    heads = [
        "method",
        "seeds",
        "accuracy %",
        "NLL",
        "ECE %",
        "NLL, scaled",
        "ECE %, scaled",
        f"NLL, advisor's calibrator{_advised_seeds(benchmark)}",
        *truth,
        *price,
    ]
    parts = [
        f"# {letter(benchmark)}: {about['title']}",
        "",
        f"{about['network'][0].upper()}{about['network'][1:]}; {about['regime']}. Mean ± standard error over "
        "seeds, ordered by NLL after temperature scaling. ECE in 15 bins."
        + (" " + about["truth"] if knows_truth(benchmark) else "")
        + (" " + _price_words(benchmark) if costs(benchmark) else "")
        + " [How to read the marks](losses.md#how-to-read-the-tables).",
        "",
        *table(heads, lines),
        "Differences from cross-entropy with simultaneous 95% intervals, ECE and accuracy in points. The last line is "
        "the smallest true difference that a tied comparison could have found with 80% power (median over the ties):",
        "",
        *table(
            ("method", "accuracy", "ECE", "NLL, scaled", "ECE, scaled"),
            [
                *(_effect_line(benchmark, label) for label in ordered if label != "ce"),
                _detectable_line(benchmark),
            ],
        ),
    ]
    parts += [
        f"![ECE of every method before and after temperature scaling](figures/{benchmark}-ece.svg)",
        "",
        f"Lines are 95% intervals, from test rows {_and_seeds(benchmark)}.",
        "",
        f"![NLL after temperature scaling against accuracy](figures/{benchmark}-front.svg)",
        "",
        *_front_words(benchmark),
        *_ranks(benchmark),
        *_fresh(benchmark),
    ]
    return "\n".join(parts)


def _and_seeds(benchmark: str) -> str:
    return "alone: there is one seed" if seeds_words(benchmark) == "1 seed" else "and seeds together"


def _method_line(benchmark: str, label: str) -> list[str]:
    def cell(calibrator: str, metric: str) -> str:
        mark = sign(benchmark, label, metric, calibrator=calibrator)
        return marked(written(benchmark, label, calibrator, metric), mark)

    cells = [
        f"`{label}`",
        str(len(seeds_of(benchmark)[label])),
        cell("identity", "accuracy"),
        cell("identity", "nll"),
        cell("identity", "ece"),
        cell("temperature", "nll"),
        cell("temperature", "ece"),
        cell("advised", "nll"),
    ]
    if knows_truth(benchmark):
        cells += [written(benchmark, label, one, "true_error") for one in ("identity", "temperature")]
    if costs(benchmark):
        found = costs(benchmark).get(label)
        cells.append(f"{found['step']:.2f}{SPACE}({found['low']:.2f}–{found['high']:.2f})" if found else "–")
    return cells


def _effect_line(benchmark: str, label: str) -> list[str]:
    def against(calibrator: str, metric: str) -> str:
        found = difference(benchmark, label, metric, calibrator=calibrator)
        return marked(effect(found), mark_of(found)) if found else "–"

    return [
        f"`{label}`",
        *(against("identity", metric) for metric in ("accuracy", "ece")),
        *(against("temperature", metric) for metric in ("nll", "ece")),
    ]


def _detectable_line(benchmark: str) -> list[str]:
    cells = []
    for calibrator, metric in (
        ("identity", "accuracy"), ("identity", "ece"), ("temperature", "nll"), ("temperature", "ece")
    ):  # fmt: skip
        tied = detectable(benchmark, metric, rivals(benchmark), calibrator=calibrator)
        cells.append(amount(metric, float(np.median(tied))) if tied else "–")
    return ["*detectable*", *cells]


def _fresh(benchmark: str) -> list[str]:
    """Write what the same networks show on many more rows than ``test`` has."""
    name = f"{benchmark}_fresh"
    if not rows(f"{name}/differences.csv"):
        return []
    columns = [("temperature", "nll"), ("temperature", "ece"), ("identity", "ece")]
    ordered = sorted(entrants(benchmark), key=lambda one: mean(name, one, "temperature", "nll"))
    lines = []
    for label in ordered:
        found = [difference(name, label, metric, calibrator=one) for one, metric in columns]
        effects = [marked(effect(row), mark_of(row)) if row else "–" for row in found]
        cells = [written(name, label, one, metric) for one, metric in columns[:2]]
        truth = [written(name, label, "temperature", "true_error")] if _is_true(name) else []
        lines.append([f"`{label}`", *cells, *truth, *effects])
    tied = [
        detectable(name, metric, rivals(benchmark), calibrator=calibrator) for calibrator, metric in columns
    ]
    least = [
        amount(metric, float(np.median(one))) if one else "–"
        for (_, metric), one in zip(columns, tied, strict=True)
    ]
    head = ["NLL, scaled", "ECE %, scaled", *(["true error %, scaled"] if _is_true(name) else [])]
    lines.append(["*detectable*", *(len(head) * [""]), *least])
    n_rows = rows(f"{name}/scores.csv")[0]["n"]
    before, after = (
        [counts(one, metric, rivals(benchmark), **SCALED) for metric in ("nll", "ece")]
        for one in (benchmark, name)
    )
    return [
        f"## {letter(benchmark)} on {n_rows:,} fresh rows",
        "",
        f"{benchmarks()[benchmark].get('fresh', 'The same networks and calibrators')}, judged on {n_rows:,} rows that "
        "no split used instead of "
        f"{split_sizes(benchmark)[-1]:,}. Both scaled, against cross-entropy: {count_words(after[0])} in NLL (on "
        f"`test`: {count_words(before[0])}), {count_words(after[1])} in ECE (on `test`: {count_words(before[1])}). "
        f"{_chance_words(name)}Mean ± standard error over seeds, and differences from cross-entropy with simultaneous "
        "95% intervals:",
        "",
        *table(
            [
                "method",
                *head,
                "NLL, scaled: difference",
                "ECE, scaled: difference",
                "ECE, unscaled: difference",
            ],
            lines,
        ),
    ]


def _is_true(name: str) -> bool:
    return bool(len(values(name, "ce", "temperature", "true_error")))


def _chance_words(name: str) -> str:
    found = {row["n"]: row for row in rows(f"{name}/perfect.csv")}
    if not found:
        return ""
    return (
        "A perfect model has an ECE of "
        + " and ".join(f"{100 * row['mean_ece']:.2f}% on {n:,} rows" for n, row in found.items())
        + " by chance. "
    )


def ranking() -> list[str]:
    """Write whose confidence ranks mistakes worse than that of cross-entropy."""
    known = list(filter(is_run, benchmarks()))
    labels = [
        label
        for label in dict.fromkeys(one for benchmark in known for one in rivals(benchmark))
        if sum(label in entrants(benchmark) for benchmark in known) > 2
    ]
    lines = []
    for label in labels:
        gaps = {
            benchmark: ranking_pairs(benchmark, label) for benchmark in known if label in entrants(benchmark)
        }
        joined = np.concatenate(list(gaps.values()))
        cells = [signed(100 * gaps[benchmark].mean(), 2) if benchmark in gaps else "–" for benchmark in known]
        worse = [sum(int((sign * ranking_pairs(benchmark, label, metric) > 0).sum()) for benchmark in gaps)
                 for metric, sign in (("aurc", 1), ("auroc", -1), ("accuracy", -1))]  # fmt: skip
        lines.append(
            (
                float((joined > 0).mean()),
                [f"`{label}`", *cells, *(f"{one} of {len(joined)}" for one in worse)],
            )
        )
    lines.sort(key=lambda line: -line[0])
    return [
        "## Ranking of mistakes",
        "",
        "A confidence that is used to refuse or to review predictions must rank mistakes below correct answers. "
        "AURC is the mean error rate over all coverages, so lower is better; AUROC is the probability that a "
        "correct answer has a higher confidence than a mistake. Mean difference in AURC from cross-entropy without "
        "scaling, in points, and the pairs of networks with the same seed in which the method is worse. Pairs of "
        "one benchmark share their rows, so the counts are not a test; a method that is worse in every pair of "
        "every benchmark needs none. Losses that at least three benchmarks have:",
        "",
        *table(
            [
                "method",
                *(f"AURC, {letter(benchmark)}" for benchmark in known),
                "worse AURC",
                "worse AUROC",
                "worse accuracy",
            ],
            [line for _, line in lines],
        ),
    ]


def _advised_seeds(benchmark: str) -> str:
    """Write of how many seeds the advisor was asked, where it was not of all."""
    asked, there = len(values(benchmark, "ce", "advised", "nll")), len(seeds_of(benchmark)["ce"])
    return f" ({asked} of {there} seeds)" if asked < there else ""


def _price_words(benchmark: str) -> str:
    turns = costs(benchmark)["ce"]["turns"]
    return (
        "Cost is the processor's time for a training step, in steps of cross-entropy: the median and the middle half "
        f"of {turns} turns in which all methods trained one after the other. It excludes work between epochs (AdaFocal "
        "and CALS read `tune`). A chosen setting costs one training for each setting that is tried."
    )


def _front_words(benchmark: str) -> list[str]:
    def names(labels: Sequence[str]) -> str:
        return ", ".join(f"`{label}`" for label in labels)

    parts = [
        "In the mean no method is at once more accurate and lower in NLL after temperature scaling than "
        f"{names(undominated(benchmark, entrants(benchmark)))}. Single seeds may order them otherwise."
    ]
    price = costs(benchmark)
    cheap = [label for label in entrants(benchmark) if label in price and price[label]["step"] < CHEAP]
    if len(cheap) < len(entrants(benchmark)) and cheap:
        parts.append(
            f"Among those that cost less than {CHEAP} steps of cross-entropy: {names(undominated(benchmark, cheap))}."
        )
    return [" ".join(parts), ""]


def _ranks(benchmark: str) -> list[str]:
    found = [row for row in rows(f"{benchmark}/ranks.csv") if row["n_seeds"] > 1]
    asked = [row for row in found if row["metric"] == "nll" and row["calibrator"] == "temperature"]
    if not asked:
        return []
    lines = [
        (
            f"`{row['method']}`",
            f"{row['rank']:.1f} ({row['rank_low']:g} to {row['rank_high']:g})",
            f"{100 * row['wins']:.0f}%",
        )
        for row in asked
    ]
    apart = critical_difference(len(asked), asked[0]["n_seeds"])
    group = [row["method"] for row in asked if row["rank"] - asked[0]["rank"] <= apart]
    return [
        "Mean ranks by NLL after temperature scaling with the range over seeds, and the share of rivals that a method "
        f"beats. With {asked[0]['n_seeds']} seeds as blocks, mean ranks that are less than {apart:.1f} apart are not "
        "significantly different (Nemenyi's critical difference at 5%): "
        f"{len(group)} of {len(asked)} methods are not distinguishable from the first.",
        "",
        *table(("method", "mean rank", "rivals beaten"), lines),
    ]


def critical_difference(n_methods: int, n_seeds: int) -> float:
    """Return how far mean ranks must be apart to be an order, by Nemenyi's test at 5%."""
    spread = studentized_range.ppf(0.95, n_methods, 1e6) / np.sqrt(2)
    return float(spread * np.sqrt(n_methods * (n_methods + 1) / (6 * n_seeds)))
