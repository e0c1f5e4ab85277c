"""What the README and the guides quote from the second edition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pages.results import letter, pick, seeds_of, seeds_text, signed, table, values, with_interval
from pages.second.data import (
    BUDGETS,
    base,
    best_within,
    board,
    compared,
    done,
    n_seeds,
    needs_decay,
    plain_name,
    rivals,
    same_decay,
    share,
    spec,
    titles,
)
from pages.second.words import count_conclusions, decay_note, letters, listed, methods_table

#: What methods are, for readers who do not know their names.
NAMES = {
    "ema": "averaged weights",
    "ensemble": "five networks",
    "ema_ensemble": "five networks with averaged weights",
    "diff_dml": "two networks that teach each other",
}


def advice() -> Iterator[str]:
    """Yield what the second edition shows, in short paragraphs; nothing if it was not run yet."""
    if not done():
        return
    many = "; ".join(
        f"{letter(one)}, {titles()[one][0].lower()}{titles()[one][1:].partition(',')[0]}, {base(one)['n_seeds']} seeds"
        for one in done()
    )
    yield (
        "**Tune cross-entropy before you replace its loss.** Tuned methods were compared with tuned cross-entropy by "
        f"log-loss after temperature scaling ({many}). {_counts()}"
    )
    yield from _by_budget()
    lowered = []
    for benchmark in done():
        gaps = _scaling_gaps(benchmark)
        models = " trained models" * (not lowered)
        lowered.append(f"{sum(gap < 0 for gap in gaps):,} of {len(gaps):,}{models} in {letter(benchmark)}")
    yield f"**Calibrate whatever you train.** Temperature scaling lowers the log-loss of {listed(lowered)}."
    if boosted := [row for one in done() for row in pick(board(one), method="boosting")]:
        yield (
            "**On tables, try gradient boosting too.** Its log-loss differs from that of cross-entropy networks "
            f"by {_gains(boosted)}."
        )


def _gains(found: Sequence[Mapping[str, Any]]) -> str:
    """Write the differences of one method in several benchmarks."""
    return listed([f"{signed(share(row), 1)}% in {letter(row['benchmark'])}" for row in found])


def _counts() -> str:
    """Count conclusions over all benchmarks, with the same weight decay and as designed."""
    designed = count_conclusions([row for one in done() for row in rivals(one)])
    if not any(map(needs_decay, done())):
        return f"{designed}."
    lacking = f"As designed, most rivals train without weight decay: {designed}."
    have = [one for one in done() if rivals(one, "decay")]
    if not have:
        return lacking
    decayed = count_conclusions([row for one in have for row in rivals(one, "decay")])
    return f"With the same weight decay for all ({letters(have)}), {decayed}. {lacking}"


def _by_budget() -> Iterator[str]:
    """State which methods have the lowest log-loss for the smallest and for the largest budget."""
    families = [found for one in done() if needs_decay(one) and (found := same_decay(one))]
    parts = []
    for budget in (BUDGETS[0], BUDGETS[-1]):
        best = best_within(budget, families)
        if any(row["test"] == "better" for row in best):
            label = plain_name(best[0])
            about = f" ({NAMES[label]})" if label in NAMES else ""
            within = f"{budget} training{'s' * (budget > 1)}"
            parts.append(
                f"Within {within}, `{label}`{about} has the lowest mean log-loss: {_gains(best)} against cross-entropy."
            )
    if parts:
        yield f"**Then use your budget** (same weight decay for all). {' '.join(parts)}"


def _scaling_gaps(benchmark: str) -> list[float]:
    """Return how temperature scaling changes the NLL of every trained model."""
    folder = f"second/{benchmark}"
    raw, scaled = (
        {label: values(folder, label, one, "nll")[:, 0] for label in seeds_of(folder)}
        for one in ("identity", "temperature")
    )
    return [gap for label in raw for gap in (scaled[label] - raw[label]).tolist()]


def summary() -> list[str]:
    """Write the differences of the tuned methods in all benchmarks that were run, in one table."""
    if not done():
        return []
    return [
        "Second edition: differences of tuned methods from cross-entropy in NLL after temperature scaling, in percent, "
        "with simultaneous 95% intervals. Equivalent is within 1%; a sign in parentheses marks a significant "
        "difference that is smaller. The last line is the smallest difference that is found with 80% power. "
        f"{decay_note()}".rstrip(),
        "",
        *methods_table(),
    ]


def progress() -> str:
    """Write how many seeds of each part of the second edition there are."""
    heads = ("benchmark", "tuned", "same weight decay", "settings of papers", "`auto`", "boosting")
    lines = []
    for benchmark in titles():
        cells = [_of_design(n_seeds(benchmark), f"{benchmark}-1-tuned")]
        for family, part in (("decay", "3-decay"), ("papers", "2-papers")):
            found = [row["n_seeds"] for row in rivals(benchmark, family)]
            cells.append(_of_design(min(found, default=0), f"{benchmark}-{part}"))
        others = ([row["n_seeds"] for row in rivals(benchmark, family)] for family in ("auto", "boosting"))
        lines.append((f"`{benchmark}`", *cells, *(str(min(found, default="–")) for found in others)))
    return "\n".join(table(heads, lines))


def _of_design(found: int, name: str) -> str:
    return f"{found} of {len(spec(name)['seed'])}" if spec(name) else "–"


def chosen_gains() -> str:
    """Write what the advisor's calibrator gains over temperature scaling after cross-entropy; nothing if unknown."""
    gains = [
        f"{signed(100 * own['difference'] / own['versus_value'], 1)}% in {letter(benchmark)}"
        for benchmark in done()
        for own in pick(compared(benchmark, "advisor", "nll"), method="ce", split="test")
    ]
    text = "After cross-entropy, the calibrator that `choose` takes changes the log-loss of temperature scaling by "
    return f"{text}{listed(gains)}. " if gains else ""


def advisor() -> str:
    """Write what the advisor's calibrator gains over temperature scaling, in sentences."""
    parts = [
        _advised(benchmark, own, compared(benchmark, "advisor", "nll"))
        for benchmark in done()
        for own in pick(compared(benchmark, "advisor", "nll"), method="ce", split="test")
    ]
    if not parts:
        return "The [second edition](evidence/second.md) has not been run yet.\n"
    return (
        "The [second edition](evidence/second.md) compares the calibrator that `choose` takes with temperature "
        f"scaling, both fitted on `calib`, by NLL on `test`. {' '.join(parts)}\n"
    )


def _advised(benchmark: str, own: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> str:
    about = f"{letter(benchmark)}, {seeds_text(own['n_seeds'])}"
    verdicts = [row["verdict"] for row in found]
    over = (
        f"Over {len(found)} tuned methods, the chosen calibrator is better for {verdicts.count('better')}, tied for "
        f"{verdicts.count('tie')} and worse for {verdicts.count('worse')}."
    )
    if own["difference"] == 0:
        return f"{about}: after cross-entropy, `choose` takes temperature scaling itself. {over}"
    ends = [signed(100 * own[key] / own["versus_value"], 2) for key in ("difference", "low", "high")]
    least = 100 * own["detectable"] / own["versus_value"]
    return f"{about}: {with_interval(f'{ends[0]}%', *ends[1:])} after cross-entropy, detectable {least:.2f}%. {over}"
