"""How rows of the second edition are written, and the sentences and tables that several pages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pages.results import SIGNS, SPACE, letter, marked, signed, table, with_interval
from pages.second.data import (
    choose_decay,
    designed_seeds,
    detectable,
    done,
    n_seeds,
    needs_decay,
    plain_name,
    rivals,
    same_decay,
    share,
)

from equipoise.metrics.facts import learn_facts

learn_facts("set_size_90", {"title": "set size", "low": 0.0})

#: Endpoints: title, factor, and digits after it.
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
#: What shifted test sets hold.
SHIFTS = {"test-npz": "later months"}
READ = (
    "*Equivalent*: the 90% interval lies within the margin of 1% of the NLL of cross-entropy (two one-sided tests at "
    "5%, not corrected for the number of methods). A (+) or (−) marks an equivalent method that is still significantly "
    "better or worse. *Better* and *worse*: the simultaneous 95% interval excludes zero, and the difference may exceed "
    "the margin. *Undecided*: neither. *Detectable*: the smallest true difference that a comparison finds with 80% "
    "power."
)
COST = (
    "*Cost*: processor time of one training, divided by that of cross-entropy (the median over seeds). Small networks "
    "spend much of it between steps, so an ensemble of five may cost less than five. Every tuned method, cross-entropy "
    "included, was trained at four settings."
)


def state(benchmark: str) -> str:
    """Write how much of a benchmark that is not done was run."""
    found = n_seeds(benchmark)
    return f"{found} of {designed_seeds(benchmark)} seeds were run" if found else "not yet run"


def shift_name(split: str) -> str:
    """Write what a shifted test set holds."""
    return SHIFTS.get(split, split.removeprefix("test-").replace("_", " "))


def effect(row: Mapping[str, Any]) -> str:
    """Write a difference in percent of the NLL of cross-entropy, with its interval."""
    if row["conclusion"] == "baseline":
        return "–"
    return with_interval(*(signed(share(row, key), 2) for key in ("difference", "low", "high")))


def conclusion(row: Mapping[str, Any]) -> str:
    """Write the conclusion, with a sign where a difference is significant and smaller than the margin."""
    mark = SIGNS[row["test"]] if row["conclusion"] == "equivalent" else ""
    return marked(row["conclusion"], mark and f"({mark})")


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


def count_conclusions(found: Sequence[Mapping[str, Any]]) -> str:
    """Count conclusions in words."""
    all_of = [row["conclusion"] for row in found]
    counts = {one: all_of.count(one) for one in ("better", "equivalent", "undecided", "worse")}
    return (
        f"{counts['better']} of {len(all_of)} are better, {counts['equivalent']} equivalent within 1%, "
        f"{counts['undecided']} undecided and {counts['worse']} worse"
    )


def counted(found: Sequence[Mapping[str, Any]]) -> str:
    """Count conclusions."""
    all_of = [row["conclusion"] for row in found]
    return " / ".join(str(all_of.count(one)) for one in ("better", "equivalent", "undecided", "worse"))


def primary_table(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the primary endpoint of methods."""
    lines = [
        (
            f"`{row['method']}`",
            with_interval(*(f"{row[key]:.4f}" for key in ("nll", "nll_low", "nll_high"))),
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


def listed(parts: Sequence[str]) -> str:
    """Write parts of a sentence: ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def names(labels: Sequence[str]) -> str:
    """Write methods in a sentence."""
    return listed([f"`{label}`" for label in labels])


def letters(found: Sequence[str]) -> str:
    """Write benchmarks in a sentence."""
    return listed([letter(one) for one in found])


def decay_note() -> str:
    """State where rivals have less weight decay than cross-entropy; nothing where none has."""
    found = [benchmark for benchmark in done() if needs_decay(benchmark)]
    waiting = [benchmark for benchmark in found if not rivals(benchmark, "decay")]
    if not found:
        return ""
    missing = f" It is not complete yet for {letters(waiting)}." if waiting else ""
    return (
        f"*As designed*, only {names(choose_decay())} choose a weight decay in {letters(found)}. All other methods "
        "train without one there, which makes many of them worse. A supplement repeats them with the *same weight "
        f"decay* as cross-entropy. It was added after the design was written, and is exploratory.{missing}"
    )


def methods_table() -> list[str]:
    """Write the differences of the tuned methods in all benchmarks, as designed and with the same weight decay."""
    columns: dict[str, Sequence[Mapping[str, Any]]] = {}
    for benchmark in done():
        columns[f"{letter(benchmark)}, as designed"] = rivals(benchmark)
        if needs_decay(benchmark) and same_decay(benchmark):
            columns[f"{letter(benchmark)}, same weight decay"] = same_decay(benchmark)
    known = {head: {plain_name(row): row for row in found} for head, found in columns.items()}
    fair = [known[head] for head in known if "same" in head] or list(known.values())
    labels = dict.fromkeys(label for found in known.values() for label in found)

    def order(label: str) -> float:
        shares = [share(found[label]) for found in fair if label in found]
        return float(np.mean(shares)) if shares else np.inf

    lines = [
        [f"`{label}`", *(_verdict(found.get(label)) for found in known.values())]
        for label in sorted(labels, key=order)
    ]
    lines.append(["*detectable*", *(f"{detectable(found):.2f}" for found in columns.values())])
    return table(("method", *columns), lines)


def _verdict(row: Mapping[str, Any] | None) -> str:
    return f"{effect(row)}, {conclusion(row)}" if row else "–"
