"""What the evidence shows in sentences, for its first page and for those that quote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pages.calibrators import ENSEMBLE, best_after, chosen_words, lower_words
from pages.results import (
    amount,
    benchmarks,
    count_words,
    counts,
    detectable,
    difference,
    entrants,
    is_run,
    letter,
    mean,
    pick,
    rivals,
    rows,
    seeds_of,
    seeds_text,
    summed,
    table,
    values,
)
from pages.second import quotes as second_quotes

SCALED = {"calibrator": "temperature"}
#: The loss as its paper sets it that ranks mistakes worst.
RANKED = "focal"


def seeds_words(benchmark: str) -> str:
    """Write how many seeds the methods of a benchmark have."""
    return seeds_text(*(len(seeds_of(benchmark)[label]) for label in entrants(benchmark)))


def in_short() -> Iterator[str]:
    """Yield what the files show over all benchmarks, in sentences."""
    known = list(filter(is_run, benchmarks()))
    sharp, raw = _summed("nll", known, **SCALED), _summed("ece", known)
    unscaled = _summed("ece", known, versus_calibrator="temperature")
    shown = (
        "On `test`, no method was" if sharp["better"] == 0 else f"On `test`, {sharp['better']} methods were"
    )
    title = f"{shown} shown to beat cross-entropy with temperature scaling"
    yield (
        f"**{title}.** {sum(sharp.values())} comparisons with cross-entropy over {len(known)} benchmarks, both after "
        f"temperature scaling: {count_words(sharp)} in NLL. Ties are not equality: the smallest difference in NLL that "
        f"these comparisons find with 80% power is {_least('nll', known)}. Without scaling, against scaled "
        f"cross-entropy: {count_words(unscaled)} in ECE."
    )
    yield _ties(known)
    yield from _fresh(known)
    yield _calibrators(known)
    yield (
        "**Without scaling, it depends on the network.** Most losses lower the ECE where cross-entropy ends "
        f"overconfident and raise it where it does not: {count_words(raw)}. The temperature of cross-entropy shows "
        "which case it is."
    )
    yield _ranking(known)


def advice(link: str) -> Iterator[str]:
    """Yield what to do, one numbered point per line, with the numbers that support it.

    Args:
        link: The address of the evidence.
    """
    known = list(filter(is_run, benchmarks()))
    calibrator = (
        f"**Choose the calibrator by log-loss, not by ECE.** {second_quotes.chosen_gains()}Structured matrix scaling "
        f"has a lower log-loss than temperature scaling in {lower_words(known)} of the first edition. ECE is too noisy "
        "to rank methods."
    )
    for number, point in enumerate([*second_quotes.advice(), calibrator], 1):
        yield f"{number}. {point}"
    yield f"[Second edition]({link}/second.md) · [all results]({link}/index.md)"


def _least(metric: str, known: Sequence[str]) -> str:
    """Write the smallest difference that ties after scaling could have found, by benchmark."""
    found = {benchmark: detectable(benchmark, metric, rivals(benchmark), **SCALED) for benchmark in known}
    return ", ".join(
        f"{amount(metric, float(np.median(tied)))} in {letter(benchmark)}"
        for benchmark, tied in found.items()
        if tied
    )


def _ties(known: Sequence[str]) -> str:
    """State what the ties in ECE after scaling could have shown."""
    both = _summed("ece", known, **SCALED)
    whole = {benchmark: mean(benchmark, "ce", "temperature", "ece") for benchmark in known}
    blind = [
        letter(benchmark)
        for benchmark in known
        if (tied := detectable(benchmark, "ece", rivals(benchmark), **SCALED))
        and np.median(tied) > whole[benchmark]
    ]
    where = "in every benchmark" if len(blind) == len(known) else f"in {', '.join(blind)}"
    scaled = ", ".join(f"{amount('ece', value)} in {letter(benchmark)}" for benchmark, value in whole.items())
    perfect = pick(rows("e_fresh/perfect.csv"), n=10_000)
    chance = (
        f" (a perfect model has {100 * perfect[0]['mean_ece']:.2f} by chance on the 10,000 test rows of E)"
        if perfect
        else ""
    )
    return (
        f"**A lower scaled ECE could not have been found.** The same comparisons give {count_words(both)} in ECE. The "
        f"smallest difference that they find is {_least('ece', known)}, in points. That is more than the whole ECE of "
        f"scaled cross-entropy {where}: {scaled}{chance}. So compare methods by NLL after scaling."
    )


def _fresh(known: Sequence[str]) -> Iterator[str]:
    """State what many more test rows show."""
    for benchmark in known:
        name = f"{benchmark}_fresh"
        if not rows(f"{name}/differences.csv"):
            continue
        n_rows = rows(f"{name}/scores.csv")[0]["n"]
        nll, ece = (counts(name, metric, rivals(benchmark), **SCALED) for metric in ("nll", "ece"))
        better = [
            f"`{label}`"
            for label in rivals(benchmark)
            if (found := difference(name, label, "nll", **SCALED)) and found["verdict"] == "better"
        ]
        which = f" ({', '.join(better)})" if better else ""
        least = " and ".join(
            f"{_median(name, benchmark, metric)} {unit} ({_median(benchmark, benchmark, metric)} on `test`)"
            for metric, unit in (("ece", "points of ECE"), ("nll", "NLL"))
        )
        words = count_words(nll).replace("better", f"better{which}")
        yield (
            f"**{n_rows:,} fresh rows find more differences between the networks of {letter(benchmark)}.** Both "
            f"scaled: {words} in NLL, {count_words(ece)} in ECE. The smallest detectable difference is now {least}. "
            "More rows would not help further: what is left is the scatter over seeds."
        )


def _median(name: str, benchmark: str, metric: str) -> str:
    found = detectable(name, metric, rivals(benchmark), **SCALED)
    return amount(metric, float(np.median(found))) if found else "–"


def _calibrators(known: Sequence[str]) -> str:
    """State what calibrators other than temperature scaling reach."""
    parts = [text for benchmark in known if (text := best_after(benchmark, "ce"))]
    ensemble = best_after("a", ENSEMBLE)
    of_it = f" After an ensemble of three networks in A: {ensemble.partition(': ')[2]}." if ensemble else ""
    return (
        "**Calibrators: temperature scaling is not hard to beat.** Structured matrix scaling (`sms`) against "
        f"temperature scaling after cross-entropy, NLL on `test`: {'; '.join(parts)}.{of_it} "
        f"Over all methods and seeds its NLL is lower in {lower_words(known)}. {chosen_words(known)}"
    )


def ranking_pairs(benchmark: str, label: str, metric: str = "aurc") -> np.ndarray:
    """Return the differences of a method from cross-entropy by seed, for seeds that both have."""
    own, base = (
        dict(
            zip(
                seeds_of(benchmark).get(one, []),
                values(benchmark, one, "identity", metric)[:, 0],
                strict=True,
            )
        )
        for one in (label, "ce")
    )
    return np.array([own[seed] - base[seed] for seed in own if seed in base])


def _ranking(known: Sequence[str]) -> str:
    gaps = [ranking_pairs(benchmark, RANKED) for benchmark in known if RANKED in entrants(benchmark)]
    worse, pairs = sum(int((gap > 0).sum()) for gap in gaps), sum(map(len, gaps))
    return (
        "**Focal loss ranks its mistakes worse.** At the paper's setting its AURC is higher than that of "
        f"cross-entropy in {worse} of {pairs} pairs of networks with the same seed, over {len(gaps)} benchmarks."
    )


def verdicts() -> list[str]:
    """Write a table of verdicts against cross-entropy: how many methods are better, tied and worse by benchmark."""
    lines = []
    for benchmark in filter(is_run, benchmarks()):
        scale = np.mean([row["temperature"] for row in pick(rows(f"{benchmark}/runs.csv"), method="ce")])
        lines.append(
            (
                f"{letter(benchmark)}, {benchmarks()[benchmark]['title']}",
                seeds_words(benchmark).partition(" seed")[0],
                f"{scale:.2f}",
                _count(benchmark, "nll", **SCALED),
                _count(benchmark, "ece", **SCALED),
                amount("ece", mean(benchmark, "ce", "temperature", "ece")),
                _count(benchmark, "ece", versus_calibrator="temperature"),
                _count(benchmark, "ece"),
                _count(benchmark, "accuracy"),
            )
        )
    heads = (
        "benchmark",
        "seeds",
        "T of ce",
        "NLL, both scaled",
        "ECE, both scaled",
        "ECE % of scaled ce",
        "ECE, unscaled against scaled ce",
        "ECE, unscaled",
        "accuracy",
    )
    return table(heads, lines)


def _count(benchmark: str, metric: str, **where: str) -> str:
    """Write the verdicts of a family, and the smallest difference that its ties could have found."""
    found = counts(benchmark, metric, rivals(benchmark), **where)
    text = " / ".join(str(found[name]) for name in ("better", "tie", "worse"))
    pairs = [difference(benchmark, label, metric, **where) for label in rivals(benchmark)]
    if any(pair and pair["n_seeds"] == 1 for pair in pairs):
        text += ", one seed"
    tied = detectable(benchmark, metric, rivals(benchmark), **where)
    return f"{text} ({amount(metric, float(np.median(tied)))})" if tied else text


def _summed(metric: str, known: Sequence[str], **where: str) -> dict[str, int]:
    return summed(counts(benchmark, metric, rivals(benchmark), **where) for benchmark in known)
