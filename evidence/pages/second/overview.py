"""The overview of the second edition: which method to train, what was run, decisions, shift, claims of papers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pages.claims import second_claims
from pages.results import letter, pick, signed, table
from pages.second.data import (
    BUDGETS,
    DECAY,
    DECISIONS,
    base,
    best_within,
    board,
    compared,
    decisions,
    detectable,
    done,
    has_supplement,
    needs_decay,
    plain_name,
    rivals,
    same_decay,
    share,
    shifts,
    titles,
)
from pages.second.quotes import advice
from pages.second.words import (
    READ,
    SHOWN,
    conclusion,
    counted,
    decay_note,
    effect,
    methods_table,
    number,
    shift_name,
    state,
)

from equipoise.evaluate import Difference


def overview() -> str:
    """Write the overview of the second edition."""
    parts = [
        "# Second edition",
        "",
        "Sixteen methods with equal tuning budgets and 5 to 30 seeds. Margins of equivalence were fixed before the "
        "first run; `evidence/README.md` in the repository has the design. The primary endpoint is the negative "
        "log-likelihood (NLL) on `test` after temperature scaling; lower is better. "
        "[The leaderboard](leaderboard.md) has every method, and describes how to submit one.",
        "",
        *_which(),
        "## Benchmarks",
        "",
        "How many tuned methods are better / equivalent / undecided / worse than cross-entropy. *Detectable* is the "
        "median over the methods as designed, in percent of the NLL of cross-entropy.",
        "",
        *table(
            ("benchmark", "task", "seeds", "rows judged", "as designed", "same weight decay", "detectable"),
            map(_benchmark_line, titles()),
        ),
        *_decisions(),
        *_claim_table(),
    ]
    return "\n".join(parts)


def _benchmark_line(benchmark: str) -> tuple[str, ...]:
    if benchmark not in done():
        return letter(benchmark), titles()[benchmark], "", "", state(benchmark), "", ""
    found, decayed = rivals(benchmark), rivals(benchmark, "decay")
    same = f"{counted(decayed)} ({decayed[0]['n_seeds']} seeds)" if decayed else ""
    return (
        f"[{letter(benchmark)}](second-{benchmark}.md)",
        titles()[benchmark],
        str(base(benchmark)["n_seeds"]),
        f"{base(benchmark)['n_rows']:,}",
        counted(found),
        same or ("not yet run" if needs_decay(benchmark) else "as designed"),
        f"{detectable(found):.2f}%",
    )


def answers() -> Iterator[str]:
    """Yield the answers to the questions of the design, from the files."""
    yield _auto()
    yield _under_shift()
    yield _claims()


def _budgets() -> list[str]:
    """Write which method has the lowest mean NLL within each budget."""
    heads, families = ["trainings per setting", "as designed"], [[rivals(benchmark) for benchmark in done()]]
    decayed = [found for benchmark in done() if needs_decay(benchmark) and (found := same_decay(benchmark))]
    if decayed:
        heads.append("same weight decay")
        families.append(decayed)
    lines = [[str(budget), *(_best(best_within(budget, found)) for found in families)] for budget in BUDGETS]
    return [
        "Method with the lowest mean NLL within a budget, in trainings of cross-entropy. Calibrate either "
        "way.",
        "",
        *table(heads, lines),
    ]


def _best(best: Sequence[Mapping[str, Any]]) -> str:
    """Write the method that a budget allows, or cross-entropy if that method is nowhere better."""
    if not best:
        return "cross-entropy: every other method costs more"
    tests = [row["test"] for row in best]
    name = f"`{plain_name(best[0])}`"
    shown = "; ".join(
        f"{letter(row['benchmark'])} {signed(share(row), 1)}%, {conclusion(row)}" for row in best
    )
    if "better" not in tests:
        return f"cross-entropy: no method is better. Closest: {name} ({shown})"
    if "worse" in tests:
        return f"{name}, but it is not better everywhere ({shown})"
    return f"{name} ({shown})"


def _auto() -> str:
    parts = []
    for benchmark in done():
        known = {row["method"]: row for row in board(benchmark)}
        if "auto" in known:
            against = f"; an ensemble of five: {effect(known['ensemble'])}%" if "ensemble" in known else ""
            own = f"{effect(known['auto'])}%, {conclusion(known['auto'])}"
            parts.append(f"{letter(benchmark)}, {known['auto']['n_seeds']} seeds: {own}{against}")
    if not parts:
        return "**`equipoise auto`.** Not yet run."
    return (
        "**`equipoise auto`** with the processor time of four trainings of cross-entropy, against cross-entropy. "
        f"{'. '.join(parts)}. `auto` fits its calibrator on `tune` and `calib` together, the others on `calib`."
    )


def _under_shift() -> str:
    parts = []
    for benchmark in done():
        for split in shifts(benchmark):
            found = pick(compared(benchmark, "baseline", "nll"), split=split)
            decayed = pick(compared(benchmark, "baseline", "nll", "decay"), split=split)
            decayed = decayed if has_supplement(benchmark) else []
            same = f" With the same weight decay: {_shifted(decayed)}." if decayed else ""
            link = f"[{letter(benchmark)}, {shift_name(split)}](second-{benchmark}.md#under-shift)"
            nll = found[0]["versus_value"]
            parts.append(
                f"{link}: cross-entropy has an NLL of {nll:.4f} ({base(benchmark)['nll']:.4f} on `test`). As designed: "
                f"{_shifted(found)}.{same}"
            )
    known = " ".join(parts) or "No benchmark with a shifted test set has been run yet."
    return f"**Under shift,** after temperature scaling on clean rows. {known}"


def _shifted(found: Sequence[Mapping[str, Any]]) -> str:
    verdicts = [row["verdict"] for row in found]
    better = [f"`{plain_name(row)}`" for row in found if row["verdict"] == "better"]
    names = f" ({', '.join(better)})" if better else ""
    return (
        f"{len(better)} of {len(found)} methods have a significantly lower NLL{names}, {verdicts.count('worse')} a "
        "significantly higher one"
    )


def _claims() -> str:
    texts = []
    for ending, head in (("", "As designed"), (DECAY, "With the same weight decay")):
        judged = [one for one in done() if not ending or has_supplement(one)]
        verdicts = [found.verdict for found in second_claims(judged, ending)]
        holds, fails = (
            sum(one.startswith(start) for one in verdicts) for start in ("**holds**", "**fails**")
        )
        if verdicts:
            texts.append(
                f"{head}, {holds} of {len(verdicts)} pairs of a claim and a benchmark hold, {fails} fail, and "
                f"{len(verdicts) - holds - fails} are ties or not shown."
            )
    return f"**[Claims of the papers](#claims-of-the-papers).** {' '.join(texts)}"


def _which() -> list[str]:
    """Write which method to train, and the numbers behind the answer."""
    title = ["## Which method should I train?", ""]
    if not done():
        return [*title, "No benchmark is complete.", ""]
    return [
        *title,
        *(f"{number}. {point}" for number, point in enumerate(advice(), 1)),
        "",
        *_budgets(),
        f"{decay_note()} The table has the differences from cross-entropy in percent of its NLL, with simultaneous 95% "
        "intervals; the lowest mean comes first.".strip(),
        "",
        *methods_table(),
        READ,
        "",
        "## Other answers",
        "",
        *(f"- {sentence}" for sentence in answers()),
        "",
    ]


def _decisions() -> list[str]:
    """Write which methods make better decisions than cross-entropy."""
    lines = []
    for benchmark in done():
        for metric in DECISIONS:
            title, factor, digits = SHOWN[metric]
            families = {family: decisions(benchmark, metric, family) for family in ("tuned", "decay")}
            known = families["tuned"].values()
            least = (
                f"{factor * np.median([one.detectable() for one in known]):.{digits + 1}f}" if known else "–"
            )
            own = number(base(benchmark), metric, error=False)
            cells = [_better_and_worse(found) for found in families.values()]
            lines.append((letter(benchmark), title, own, *cells, least))
    if not lines:
        return []
    return [
        "## Decisions",
        "",
        "Methods that are significantly better than cross-entropy, and how many are worse; exploratory. Verdicts count "
        "the scatter over seeds on these test rows. Certified coverage is the share of rows that is accepted with a "
        "certified error of at most 5%; 0 means that nothing can be certified. Set size is the mean number of classes "
        "in sets of 90% coverage.",
        "",
        *table(
            ("benchmark", "endpoint", "cross-entropy", "as designed", "same weight decay", "detectable"),
            lines,
        ),
    ]


def _better_and_worse(found: Mapping[str, Difference]) -> str:
    if not found:
        return "–"
    better = [f"`{label.removesuffix(DECAY)}`" for label, one in found.items() if one.verdict == "better"]
    worse = sum(one.verdict == "worse" for one in found.values())
    return f"{', '.join(better) or 'none'}; {worse} of {len(found)} worse"


def _claim_table() -> list[str]:
    found = second_claims(done())
    if not found:
        return []
    supplements = list(filter(has_supplement, done()))
    decayed = {(one.says, one.benchmark): one for one in second_claims(supplements, DECAY)}
    lines = []
    for index, one in enumerate(found):
        is_new = index == 0 or found[index - 1].says != one.says
        about = (one.paper, one.says) if is_new else ("", "")
        same = decayed.get((one.says, one.benchmark))
        cells = (same.effect, same.seeds, same.verdict) if same else ("–", "–", "–")
        lines.append((*about, letter(one.benchmark), one.effect, one.seeds, one.verdict, *cells))
    heads = ("paper", "claim", "benchmark", "effect here", "seeds", "verdict")
    return [
        "## Claims of the papers",
        "",
        "The claims of [the first edition](index.md#claims-of-the-papers), judged with more seeds and tuned methods. "
        "Effects on ECE and accuracy are in points, before scaling unless the claim says otherwise. Settings were "
        "chosen by the NLL after temperature scaling, and not by the ECE before it, which the claims are about. The "
        "last three columns are those of the supplement, in which all methods of a claim have the same weight decay.",
        "",
        *table((*heads, "effect, same weight decay", "seeds", "verdict"), lines),
    ]
