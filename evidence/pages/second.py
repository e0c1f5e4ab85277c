"""Pages of the second edition: one per benchmark, an overview with answers, and the leaderboard."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from pages.claims import second_claims
from pages.figures import margins
from pages.results import FOLDER, SPACE, letter, pick, rows, table, values

from equipoise.evaluate import Difference, StandardError
from equipoise.evaluate.differences import correct_family, difference_test
from equipoise.evaluate.standard_error import seed_error
from equipoise.metrics.facts import learn_facts

learn_facts("set_size_90", {"title": "set size", "low": 0.0})

SIGNS = {"better": "+", "worse": "−"}
#: Endpoints of decisions, and how many digits a table shows after the given factor.
DECISIONS = ("coverage_at_5", "set_size_90", "aurc", "augrc")
SHOWN = {
    "accuracy": ("accuracy %", 100, 2),
    "brier": ("Brier", 1, 4),
    "ece": ("ECE %", 100, 2),
    "aurc": ("AURC %", 100, 2),
    "augrc": ("AUGRC %", 100, 2),
    "coverage_at_5": ("certified coverage %", 100, 1),
    "error_at_5": ("realized error %", 100, 1),
    "set_size_90": ("set size", 1, 3),
    "set_coverage_90": ("set coverage %", 100, 1),
}
SETTINGS = {"tuned": "tuned", "decay": "tuned, weight decay", "papers": "of the paper"}
DECAYED = (
    "The recipe has no weight decay. Cross-entropy chose its weight decay on `tune`, and mostly the largest of four, "
    "0.002, while rivals chose hyperparameters of their own. The methods below do the same with a weight decay of "
    "0.002, so that a difference is not that of the weight decay. They were added after the design was written, and "
    "are exploratory and a family of their own."
)
BUDGETS = (1, 3, 10)
#: A method fits a budget if it costs at most this much more: clocks of a shared machine are not exact.
SLACK = 0.25
#: Margin of equivalence, in percent of the NLL of cross-entropy.
MARGIN = 1.0
READ = (
    "*Better* and *worse*: the simultaneous 95% interval excludes zero, and the difference may exceed the margin. "
    "*Equivalent*: the 90% interval lies within 1% of the NLL of cross-entropy (two one-sided tests at 5%, not "
    "corrected for the number of methods); (+) or (−) marks a significant difference that is smaller than the margin. "
    "*Undecided*: neither. *Detectable*: the smallest true difference that a comparison finds with 80% power."
)
COST = (
    "Cost is the time of one training by the clock in trainings of cross-entropy, the median over seeds. Small "
    "networks spend much of it between steps, so an ensemble of five may cost less than five. Every tuned method, "
    "cross-entropy included, was trained at four settings."
)


@cache
def titles() -> dict[str, str]:
    """Return the benchmarks of the second edition with their titles."""
    return tomllib.loads((FOLDER / "second.toml").read_text("utf-8"))


@cache
def board(benchmark: str) -> list[Mapping[str, Any]]:
    """Return the rows of the leaderboard of a benchmark; none if it was not run yet."""
    return pick(rows("leaderboard/board.csv"), benchmark=benchmark)


def done() -> list[str]:
    """Return the benchmarks that have all seeds of the design."""
    return [benchmark for benchmark in titles() if n_seeds(benchmark) >= designed_seeds(benchmark)]


def n_seeds(benchmark: str) -> int:
    """Return how many seeds of cross-entropy there are."""
    return int(base(benchmark)["n_seeds"]) if board(benchmark) else 0


@cache
def designed_seeds(benchmark: str) -> int:
    """Return how many seeds the design has."""
    spec = tomllib.loads((FOLDER / "specs" / f"{benchmark}-1-tuned.toml").read_text("utf-8"))
    return len(spec["seed"])


def state(benchmark: str) -> str:
    """Write how much of a benchmark that is not done was run."""
    found = n_seeds(benchmark)
    return f"{found} of {designed_seeds(benchmark)} seeds were run" if found else "not yet run"


def rivals(benchmark: str, family: str = "tuned") -> list[Mapping[str, Any]]:
    """Return the rows of a family other than the baseline, the lowest NLL first."""
    return [row for row in pick(board(benchmark), family=family) if row["conclusion"] != "baseline"]


def base(benchmark: str) -> Mapping[str, Any]:
    """Return the row of cross-entropy."""
    [row] = pick(board(benchmark), conclusion="baseline")
    return row


def share(row: Mapping[str, Any], key: str = "difference") -> float:
    """Return a difference in percent of the NLL of cross-entropy."""
    return 100 * float(row[key]) / (float(row["nll"]) - float(row["difference"]))


def effect(row: Mapping[str, Any]) -> str:
    """Write a difference in percent of the NLL of cross-entropy, with its interval."""
    if row["conclusion"] == "baseline":
        return "–"
    middle, low, high = (f"{share(row, key):+.2f}".replace("-", "−") for key in ("difference", "low", "high"))
    return f"{middle}{SPACE}[{low},{SPACE}{high}]"


def conclusion(row: Mapping[str, Any]) -> str:
    """Write the conclusion, with a sign where a difference is significant and smaller than the margin."""
    is_small = row["conclusion"] == "equivalent" and row["test"] in SIGNS
    return f"equivalent{SPACE}({SIGNS[row['test']]})" if is_small else str(row["conclusion"])


def number(row: Mapping[str, Any], metric: str, *, error: bool = True) -> str:
    """Write an endpoint, with its standard error over seeds."""
    _, factor, digits = SHOWN[metric]
    if row[metric] is None:
        return "–"
    text = f"{factor * row[metric]:.{digits}f}"
    return f"{text}{SPACE}±{SPACE}{factor * row[f'{metric}_error']:.{digits}f}" if error else text


def cost(row: Mapping[str, Any]) -> str:
    """Write the cost of a training."""
    return "–" if row["cost"] is None else f"{row['cost']:.1f}"


def decisions(benchmark: str, metric: str) -> dict[str, Difference]:
    """Compare the tuned methods with cross-entropy by an endpoint of decisions, paired by seed.

    Only the scatter over seeds is known, so the verdicts are about other trainings on these test rows.

    Args:
        benchmark: Its name.
        metric: The endpoint.
    """
    own = [row["method"] for row in rivals(benchmark)]
    folder = f"second/{benchmark}"
    known = {label: values(folder, label, "temperature", metric)[:, 0] for label in ("ce", *own)}
    found = {}
    for label in own:
        if len(known[label]) == len(known["ce"]) > 1:
            gaps = known[label] - known["ce"]
            error = StandardError(0.0, np.inf, seed_error(gaps), len(gaps) - 1.0)
            means = float(known["ce"].mean()), float(known[label].mean())
            found[label] = difference_test(metric, *means, error, n_seeds=len(gaps))
    return dict(zip(found, correct_family(list(found.values())), strict=True))


def second() -> str:
    """Write the overview of the second edition."""
    parts = [
        "# Second edition",
        "",
        "Sixteen methods with equal tuning budgets, 5 to 30 seeds, margins of equivalence fixed before the first run. "
        "The design is in `evidence/README.md`. The primary endpoint is the NLL after temperature scaling. "
        "[The leaderboard](leaderboard.md) has every method, and describes how to submit one.",
        "",
        *table(
            (
                "benchmark",
                "task",
                "seeds",
                "rows judged",
                "better / equivalent / undecided / worse",
                "detectable",
            ),
            map(_benchmark_line, titles()),
        ),
        "The verdicts are those of the tuned methods against cross-entropy; detectable is the median over them, in "
        f"percent of the NLL of cross-entropy. {READ}",
        "",
        "## Answers",
        "",
        *(f"- {sentence}" for sentence in answers()),
        "",
        *_claim_table(),
    ]
    return "\n".join(parts)


def _benchmark_line(benchmark: str) -> tuple[str, ...]:
    if benchmark not in done():
        return letter(benchmark), titles()[benchmark], "", "", state(benchmark), ""
    found = rivals(benchmark)
    return (
        f"[{letter(benchmark)}](second-{benchmark}.md)",
        titles()[benchmark],
        str(base(benchmark)["n_seeds"]),
        f"{base(benchmark)['n_rows']:,}",
        counted(found),
        f"{detectable(found):.2f}%",
    )


def counted(found: Sequence[Mapping[str, Any]]) -> str:
    """Count conclusions."""
    all_of = [row["conclusion"] for row in found]
    return " / ".join(str(all_of.count(one)) for one in ("better", "equivalent", "undecided", "worse"))


def detectable(found: Sequence[Mapping[str, Any]]) -> float:
    """Return the median of the detectable differences, in percent of the NLL of cross-entropy."""
    return float(np.median([share(row, "detectable") for row in found]))


def answers() -> Iterator[str]:
    """Yield the answers to the questions of the design, from the files."""
    if not done():
        yield "Not yet run."
        return
    for benchmark in done():
        yield _lower_nll(benchmark)
    for benchmark in done():
        if rivals(benchmark, "decay"):
            yield _decayed(benchmark)
    for benchmark in done():
        yield _better_decisions(benchmark)
    yield _under_shift()
    yield _claims()
    yield _auto()
    yield from (_budget(budget) for budget in BUDGETS)


def named(found: Sequence[Mapping[str, Any]]) -> str:
    """Write methods with their differences and costs."""
    return ", ".join(
        f"`{row['method']}` ({share(row):+.1f}%, cost {cost(row)})".replace("-", "−") for row in found
    )


def _lower_nll(benchmark: str) -> str:
    found = rivals(benchmark)
    lower, higher = ([row for row in found if row["test"] == verdict] for verdict in ("better", "worse"))
    return (
        f"**NLL after temperature scaling, {letter(benchmark)}.** Significantly lower than with cross-entropy: "
        f"{named(lower) or 'no method'}. Significantly higher: {len(higher)} of {len(found)}. "
        f"Within 1% of cross-entropy: {sum(row['conclusion'] == 'equivalent' for row in found)}. "
        f"Detectable difference: {detectable(found):.2f}%."
    )


def _decayed(benchmark: str) -> str:
    found = rivals(benchmark, "decay")
    lower = [row for row in found if row["test"] == "better"]
    return (
        f"**The same with cross-entropy's weight decay for all, {letter(benchmark)}** (exploratory, "
        f"{found[0]['n_seeds']} seeds). Better / equivalent / undecided / worse: {counted(found)}. Significantly "
        f"lower: {named(lower) or 'no method'}."
    )


def _better_decisions(benchmark: str) -> str:
    parts = []
    for metric in DECISIONS:
        found = decisions(benchmark, metric)
        better = [f"`{label}`" for label, one in found.items() if one.verdict == "better"]
        worse = sum(one.verdict == "worse" for one in found.values())
        title, factor, digits = SHOWN[metric]
        least = np.median([one.detectable() for one in found.values()]) if found else np.nan
        parts.append(
            f"{title.removesuffix(' %')}: better {', '.join(better) or 'none'}, worse {worse} of {len(found)} "
            f"(detectable {factor * least:.{digits + 1}f}{' points' if factor > 1 else ''})"
        )
    return (
        f"**Decisions, {letter(benchmark)}** (exploratory; scatter over seeds, on these test rows). "
        f"{'; '.join(parts)}. Cross-entropy accepts {number(base(benchmark), 'coverage_at_5', error=False)}% with a "
        f"certified error of 5%, and its sets of 90% hold "
        f"{number(base(benchmark), 'set_size_90', error=False)} classes."
    )


def _under_shift() -> str:
    parts = []
    for benchmark in done():
        found = [
            row
            for row in rows(f"second/{benchmark}/differences.csv")
            if row["question"] == "baseline"
            and row["split"] != "test"
            and (row["metric"], row["family"]) == ("nll", "tuned")
        ]
        for split in dict.fromkeys(row["split"] for row in found):
            verdicts = pick(found, split=split)
            better = [f"`{row['method']}`" for row in verdicts if row["verdict"] == "better"]
            parts.append(f"{letter(benchmark)} {split.removeprefix('test-')}: {', '.join(better) or 'none'}")
    known = "; ".join(parts) or "no benchmark with a shifted test set has been run yet"
    return f"**Shift.** Methods with a lower NLL than scaled cross-entropy, both scaled: {known}."


def _claims() -> str:
    verdicts = [found.verdict for found in second_claims(done())]
    counts = [sum(one.startswith(start) for one in verdicts) for start in ("**holds**", "**fails**")]
    return (
        f"**Claims of the papers.** Of {len(verdicts)} pairs of a claim and a benchmark, {counts[0]} hold and "
        f"{counts[1]} fail; {len(verdicts) - sum(counts)} are ties or not shown. The table is below."
    )


def _claim_table() -> list[str]:
    found = second_claims(done())
    if not found:
        return []
    lines = []
    for number, one in enumerate(found):
        is_new = number == 0 or found[number - 1].says != one.says
        about = (one.paper, one.says) if is_new else ("", "")
        lines.append((*about, letter(one.benchmark), one.effect, one.seeds, one.verdict))
    return [
        "## Claims of the papers",
        "",
        "The claims of [the first edition](index.md#claims-of-the-papers), judged with more seeds and tuned methods. "
        "Effects on ECE and accuracy are in points, before scaling unless the claim says otherwise. Settings were "
        "chosen by the NLL after temperature scaling, and not by the ECE before it, which the claims are about.",
        "",
        *table(("paper", "claim", "benchmark", "effect here", "seeds", "verdict"), lines),
    ]


def _auto() -> str:
    parts = []
    for benchmark in done():
        known = {row["method"]: row for row in board(benchmark)}
        if "auto" in known:
            shown = {label: effect(known[label]) for label in ("auto", "ensemble") if label in known}
            against = f"; always an ensemble of five: {shown['ensemble']}" if "ensemble" in shown else ""
            own = f"{shown['auto']}, {conclusion(known['auto'])}"
            parts.append(f"{letter(benchmark)}: {own} ({known['auto']['n_seeds']} seeds){against}")
    note = (
        " `auto` fits its calibrator on `tune` and `calib` together, the others on `calib`." if parts else ""
    )
    return f"**`auto` with four trainings, against cross-entropy, %.** {'. '.join(parts) or 'Not yet run'}.{note}"


@cache
def networks() -> dict[str, int]:
    """Return how many networks a tuned method trains, by its spec."""
    spec = tomllib.loads((FOLDER / "specs" / "e2-1-tuned.toml").read_text("utf-8"))
    return {one["title"]: one.get("options", {}).get("n_members", 1) for one in spec["method"]}


def best_within(budget: int) -> list[Mapping[str, Any]]:
    """Return the rows of the tuned method with the lowest mean NLL that a budget allows in all benchmarks."""
    known = [{row["method"]: row for row in rivals(benchmark)} for benchmark in done()]
    allowed = [
        [found[label] for found in known]
        for label in networks()
        if all(
            label in found and max(networks()[label], found[label]["cost"]) <= budget + SLACK
            for found in known
        )
    ]
    return min(allowed, key=lambda found: np.mean([share(row) for row in found]), default=[])


def _budget(budget: int) -> str:
    best = best_within(budget)
    many = f"{budget} training{'s' * (budget > 1)}"
    if not best:
        return f"**Budget of {many}.** Cross-entropy: every other method costs more."
    is_better = any(row["test"] == "better" for row in best)
    shown = ", ".join(
        f"{letter(row['benchmark'])} {share(row):+.1f}%, {conclusion(row)}".replace("-", "−") for row in best
    )
    advice = f"`{best[0]['method']}`" if is_better else "Cross-entropy"
    reason = "" if is_better else f"; no method within the budget is better. Closest: `{best[0]['method']}`"
    return f"**Budget of {many} per setting.** {advice}{reason} ({shown}). Calibrate either way."


def second_of(benchmark: str) -> str:
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
        f"describes the design. {READ}",
        "",
        "## Primary endpoint",
        "",
        f"NLL after temperature scaling: {len(found)} tuned methods against cross-entropy, which is the confirmatory "
        "family. Differences are in percent of the NLL of cross-entropy.",
        "",
        *_primary([base(benchmark), *found]),
        COST,
        "",
        "![Differences from cross-entropy with intervals; the band is the margin](figures/leaderboard.svg)",
        "",
        "## Secondary endpoints",
        "",
        "After temperature scaling, mean ± standard error over seeds; exploratory. A + is better and a − worse than "
        "cross-entropy, corrected for the number of methods in the column. Certified coverage is the share of rows "
        "that is accepted where at most 5% of the accepted may be wrong, with confidence 0.95. Its threshold and the "
        "sets of 90% coverage come from `tune`. Decisions are judged on `test`, and their marks count the scatter "
        "over seeds only.",
        "",
        *_secondary(benchmark, [base(benchmark), *found]),
    ]
    if decayed := rivals(benchmark, "decay"):
        parts += ["## With the weight decay of cross-entropy", "", DECAYED, "", *_primary(decayed)]
    if papers:
        parts += [
            "## Settings of papers",
            "",
            "The rest of the catalogue, at one setting each: exploratory, and a family of its own.",
            "",
            *_primary(papers),
        ]
    if more:
        parts += ["## Other entries", "", *_primary(more)]
    return "\n".join(parts)


def _primary(found: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        (
            f"`{row['method']}`",
            f"{row['nll']:.4f}{SPACE}[{row['nll_low']:.4f},{SPACE}{row['nll_high']:.4f}]",
            effect(row),
            conclusion(row),
            "–" if row["detectable"] is None else f"{share(row, 'detectable'):.2f}",
            cost(row),
        )
        for row in found
    ]
    known = [row for row in found if row["detectable"] is not None]
    lines.append(("*detectable*", "", "", "*median*", f"{detectable(known):.2f}", ""))
    heads = ("method", "NLL", "difference % [95% interval]", "conclusion", "detectable %", "cost")
    return table(heads, lines)


def _secondary(benchmark: str, found: Sequence[Mapping[str, Any]]) -> list[str]:
    marks: dict[tuple[str, str], str] = {
        (label, metric): SIGNS.get(one.verdict, "")
        for metric in DECISIONS
        for label, one in decisions(benchmark, metric).items()
    }
    folder = f"second/{benchmark}"
    fresh = rows(f"{folder}_fresh/differences.csv")
    for row in fresh or rows(f"{folder}/differences.csv"):
        where = (row["question"], row["split"], row["calibrator"], row["versus_calibrator"])
        if where == ("baseline", "test", "temperature", "temperature") and row["family"] == "tuned":
            marks[row["method"], row["metric"]] = SIGNS.get(row["verdict"], "")

    def cell(row: Mapping[str, Any], metric: str) -> str:
        mark = marks.get((row["method"], metric), "")
        return f"{number(row, metric)}{SPACE}{mark}" if mark else number(row, metric)

    lines = [[f"`{row['method']}`", *(cell(row, metric) for metric in SHOWN)] for row in found]
    return table(["method", *(title for title, _, _ in SHOWN.values())], lines)


def leaderboard() -> str:
    """Write the leaderboard."""
    found = [row for benchmark in done() for row in board(benchmark)]
    waiting = ", ".join(
        f"{letter(benchmark)} ({state(benchmark)})" for benchmark in titles() if benchmark not in done()
    )
    parts = [
        "# Leaderboard",
        "",
        "One row per method and benchmark of the [second edition](second.md). Methods are compared with cross-entropy, "
        "both after temperature scaling, by the same seeds on the same rows. NLLs of one benchmark are comparable "
        "where the number of rows is the same; differences always are. Click a heading to sort.",
        "",
    ]
    if found:
        parts += [
            '<div class="sortable" markdown="1">',
            "",
            *table(
                (
                    "benchmark",
                    "method",
                    "NLL",
                    "difference % [95% interval]",
                    "conclusion",
                    "ECE %",
                    "AURC %",
                    "certified coverage %",
                    "set size",
                    "cost",
                    "seeds",
                    "rows",
                    "settings",
                    "by",
                ),
                map(_board_line, found),
            ),
            "</div>",
            "",
            f"{READ} Endpoints other than the NLL are means over seeds; the page of each benchmark has their errors. "
            f"{COST}",
            "",
            "![Differences from cross-entropy with intervals; the band is the margin](figures/leaderboard.svg)",
            "",
            "Tuned and submitted methods, in percent of the NLL of cross-entropy. Lines are simultaneous 95% "
            "intervals, and the shaded band is the margin of equivalence.",
            "",
        ]
    if waiting:
        parts += [f"Left out until all seeds are there: {waiting}.", ""]
    return "\n".join([*parts, *_how_to_submit(), *_commands()])


def _board_line(row: Mapping[str, Any]) -> list[str]:
    by = f"[{row['submitted_by']}]({row['link']})" if row["link"] else row["submitted_by"]
    return [
        letter(row["benchmark"]),
        f"`{row['method']}`",
        f"{row['nll']:.4f}",
        effect(row),
        conclusion(row),
        *(number(row, metric, error=False) for metric in ("ece", "aurc", "coverage_at_5", "set_size_90")),
        cost(row),
        str(row["n_seeds"]),
        f"{row['n_rows']:,}",
        SETTINGS.get(row["family"], "own"),
        by,
    ]


def advice() -> Iterator[str]:
    """Yield what the second edition shows in one sentence; nothing if it was not run yet."""
    found = [row for benchmark in done() for row in rivals(benchmark)]
    if not found:
        return
    many = "; ".join(
        f"{letter(one)}: {titles()[one].partition(',')[0]}, {base(one)['n_seeds']} seeds" for one in done()
    )
    all_of = [row["conclusion"] for row in found]
    counts = {one: all_of.count(one) for one in ("better", "equivalent", "undecided", "worse")}
    best = best_within(BUDGETS[-1])
    gains = ", ".join(f"{share(row):+.1f}% in {letter(row['benchmark'])}".replace("-", "−") for row in best)
    decayed = [row["conclusion"] for benchmark in done() for row in rivals(benchmark, "decay")]
    same = (
        f" With the same weight decay as cross-entropy, {decayed.count('better')} of {len(decayed)} are better and "
        f"{decayed.count('worse')} worse."
    )
    yield (
        f"**Tune cross-entropy before you replace it** ({many}). Of {len(found)} tuned rivals, {counts['better']} have "
        f"a lower log-loss after temperature scaling than tuned cross-entropy, {counts['equivalent']} are equivalent "
        f"within 1%, {counts['undecided']} are undecided and {counts['worse']} are worse."
        f"{same if decayed else ''} Lowest on average: `{best[0]['method']}`, {gains}."
    )


def summary() -> list[str]:
    """Write the differences of the tuned methods in all benchmarks that were run, in one table."""
    if not done():
        return []
    known = {one: {row["method"]: row for row in rivals(one)} for one in done()}
    labels = dict.fromkeys(label for found in known.values() for label in found)
    lines = [
        [f"`{label}`", *(_summary_cell(found.get(label)) for found in known.values())] for label in labels
    ]
    lines.append(["*detectable*", *(f"{detectable(rivals(one)):.2f}" for one in done())])
    return [
        "Second edition: tuned methods, difference from cross-entropy in NLL after temperature scaling, in percent, "
        "with simultaneous 95% intervals. Equivalent is within 1%; a sign in parentheses marks a significant "
        "difference that is smaller. The last line is the smallest difference that is found with 80% power.",
        "",
        *table(("method", *(f"{letter(one)}, {titles()[one]}" for one in known)), lines),
    ]


def _summary_cell(row: Mapping[str, Any] | None) -> str:
    return f"{effect(row)}, {conclusion(row)}" if row else "–"


def advisor() -> str:
    """Write what the advisor's calibrator gains over temperature scaling, in sentences."""
    parts = []
    for benchmark in done():
        found = [
            row
            for row in rows(f"second/{benchmark}/differences.csv")
            if (row["question"], row["metric"], row["family"]) == ("advisor", "nll", "tuned")
        ]
        for own in pick(found, method="ce"):
            ends = [f"{100 * own[key] / own['versus_value']:+.2f}" for key in ("difference", "low", "high")]
            after = f"{ends[0]}% [{ends[1]}, {ends[2]}] after".replace("-", "−")
            least = f", detectable {100 * own['detectable'] / own['versus_value']:.2f}%"
            if own["difference"] == 0:
                after, least = "temperature scaling itself was taken after", ""
            verdicts = [row["verdict"] for row in found]
            parts.append(
                f"{letter(benchmark)} ({own['n_seeds']} seeds): {after} cross-entropy{least}; over {len(found)} tuned "
                f"methods {verdicts.count('better')} better, {verdicts.count('tie')} tied, "
                f"{verdicts.count('worse')} worse"
            )
    if not parts:
        return "The [second edition](evidence/second.md) has not been run yet.\n"
    return (
        "In the [second edition](evidence/second.md), NLL on `test` after the calibrator that `choose` takes, against "
        f"temperature scaling, both fitted on `calib`: {'. '.join(parts)}.\n"
    )


def figure() -> str:
    """Draw the differences of tuned and submitted methods in every benchmark."""
    panels = {
        f"{letter(benchmark)}, {base(benchmark)['n_seeds']} seeds": [
            {"name": row["method"], **{key: share(row, key) for key in ("difference", "low", "high")}}
            for row in board(benchmark)
            if row["family"] in ("tuned", "submitted", "auto") and row["conclusion"] != "baseline"
        ]
        for benchmark in done()
    }
    return margins(panels, margin=MARGIN)


def _how_to_submit() -> list[str]:
    return [
        "## How to submit",
        "",
        "You hand in predictions, and the numbers are computed here. From a clone of the repository:",
        "",
        "1. Write the rows of a benchmark to a file. It holds `x_train`, `y_train` and `id_train`, and the same for "
        "`tune`, `calib` and `test`. E2 needs no data; for the others, [Data](../data.md) describes where files go.",
        "",
        "    ```console",
        "    $ python evidence/leaderboard.py splits e2 -o e2.npz",
        "    ```",
        "",
        "2. Train with every seed of the benchmark, on `train` only, with at most four settings per seed; choose the "
        "setting on `tune`. Do not calibrate: temperature scaling is fitted on your `calib` predictions.",
        "3. Write predictions as `predictions/<seed>/tune.npz`, `calib.npz` and `test.npz` (or `.csv`, `.parquet`), "
        "with `probs` or `logits`, `labels` and `id`. Seeds are numbered from 0.",
        "4. Check and score them. Wrong rows, labels, seeds or distributions are reported in one line; the exit code "
        "is then 2.",
        "",
        "    ```console",
        '    $ python evidence/leaderboard.py add e2 my_method predictions/ --name "A. Author" \\',
        '        --link https://example.org/my-method --command "python train.py --seed 0" --cost 1.2',
        "    ```",
        "",
        "5. Run `python tools/docs/generate.py` and open a pull request with the files in `evidence/leaderboard/`. "
        "Keep the predictions, because we may ask for them.",
        "",
        "Submissions to E2 are judged on its 10,000 test rows. Submissions are corrected together for their number, "
        "and are exploratory.",
        "",
    ]


def _commands() -> list[str]:
    parts = [
        "## Commands",
        "",
        "Each command repeats the trainings of one row. Then `python evidence/collect.py e2 --runs "
        "~/evidence-runs/runs` (with the name of the benchmark) and `python evidence/leaderboard.py` write the files.",
        "",
    ]
    for benchmark in done():
        lines = [(f"`{row['method']}`", f"`{row['command']}`") for row in board(benchmark)]
        parts += [f"### {letter(benchmark)}", "", *table(("method", "command"), lines)]
    return parts
