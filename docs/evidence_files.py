"""Pages of evidence that took no training: saved outputs of other people's networks, and answers of language models."""

from __future__ import annotations

from typing import Any

import numpy as np
from evidence_data import rows, table

from equipoise.metrics.facts import metric_facts


def outputs() -> str:
    """Write our numbers on saved outputs beside those that were published with them."""
    parts = [
        "# Outputs of other people's networks",
        "",
        "Logits, probabilities or confidences that others saved, scored here; 95 % intervals from 1,000 resamples. Where a number was published "
        "with the file, it stands beside ours.",
        "",
    ]
    found = rows("outputs/scores.csv")
    if not found:
        return "\n".join([*parts, "Not yet run.", ""])
    lines = [
        (
            row["file"],
            f"{row['n']:,}",
            f"{metric_facts(row['metric']).title}{f', {row["n_bins"]} bins' if row['n_bins'] else ''}",
            _number(row["metric"], row["value"]),
            f"[{_number(row['metric'], row['low'])}, {_number(row['metric'], row['high'])}]",
            "–" if row["published"] is None else _number(row["metric"], row["published"]),
            row["agrees"] or "–",
        )
        for row in found
    ]
    heads = ("file", "rows", "metric", "ours", "interval", "published", "")
    return "\n".join([*parts, *table(heads, lines)])


def _number(metric: str, value: float) -> str:
    facts = metric_facts(metric)
    return f"{facts.scale * value:.3f} %" if facts.percent else f"{value:.4f}"


def language_models() -> str:
    """Write how sure language models are of their answers, and whether they may be."""
    parts = ["# Language models", ""]
    found = rows("llm/models.csv")
    if not found:
        return "\n".join([*parts, "Not yet run.", ""])
    subjects = rows("llm/subjects.csv")
    parts += [
        f"{len({row['model'] for row in found})} language models answered the questions of MMLU-Pro and said how sure they were: in a number, in "
        "words that were turned into a number, or by the probability of their tokens where it is known. All of it was published by others "
        "(MIT licence); here is what our numbers say of it, with 95 % intervals.",
        "",
        *_agreement(subjects),
        "## Every model",
        "",
        "Ordered by the ECE of the confidence that it says in a number. An answer counts if it has that confidence. ECE in fifteen bins.",
        "",
    ]
    order = sorted(
        {row["model"] for row in found},
        key=lambda model: min([row["ece"] for row in found if row["model"] == model and row["confidence"] == "number"] or [2.0]),
    )
    lines = []
    for model in order:
        known = {row["confidence"]: row for row in found if row["model"] == model}
        first = known.get("number") or next(iter(known.values()))
        lines.append(
            (model, f"{100 * first['accuracy']:.1f}", *(_cell(known.get(kind)) for kind in ("number", "words", "tokens")))
        )
    heads = ("model", "accuracy %", "ECE % of the number", "ECE % of words", "ECE % of tokens")
    return "\n".join([*parts, *table(heads, lines)])


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return f"{100 * row['ece']:.1f} [{100 * row['ece_low']:.1f}, {100 * row['ece_high']:.1f}]"


def _agreement(subjects: list[dict[str, Any]]) -> list[str]:
    same = [row for row in subjects if row["n"] == row["published_n"] and row["published_ece"] is not None]
    other = [row for row in subjects if row["n"] != row["published_n"] and row["published_ece"] is not None]
    parts = ["## Against the published numbers", ""]
    if same:
        gaps = np.abs([row["ece"] - row["published_ece"] for row in same])
        parts.append(
            f"The authors published an ECE per model, subject and confidence. In {len(same):,} of these cells our rows are as many as theirs; there "
            f"the two differ by {100 * np.median(gaps):.4f} points in the median and {100 * gaps.max():.3f} at most."
        )
    if other:
        gaps = np.abs([row["ece"] - row["published_ece"] for row in other])
        parts.append(
            f"In {len(other):,} cells the published count of rows is another one, by {np.median([abs(row['n'] - row['published_n']) for row in other]):.0f} "
            f"in the median; there the two differ by {100 * np.median(gaps):.2f} points in the median."
        )
    return [*parts, ""]
