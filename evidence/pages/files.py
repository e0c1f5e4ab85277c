"""Pages of evidence that took no training: saved outputs of other people's networks, and answers of language models."""

from __future__ import annotations

from typing import Any

import numpy as np
from pages.results import rows, table

from equipoise.metrics.facts import metric_facts


def outputs() -> str:
    """Write our numbers on saved outputs beside those that were published with them."""
    parts = [
        "# Outputs of other people's networks",
        "",
        "Logits, probabilities or confidences that others saved, scored here; 95% intervals from 1,000 "
        "resamples. Where a number was published "
        "or came with the file, it stands beside ours and agrees if it is ours to its last digit. One differs by a "
        "unit of that digit: in single or double precision, with bins closed on either side, the file gives 14.2153%. "
        "The interval of an MCE begins at zero where its largest gap is that of a bin with a handful of rows, "
        "which chance alone explains.",
        "",
    ]
    found = rows("outputs/scores.csv")
    if not found:
        return "\n".join([*parts, "Not yet run.", ""])
    lines = [
        (
            row["file"],
            f"{row['n']:,}",
            metric_facts(row["metric"]).title + (f", {row['n_bins']} bins" if row["n_bins"] else ""),
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
    return f"{facts.scale * value:.3f}%" if facts.percent else f"{value:.4f}"


def language_models() -> str:
    """Write how sure language models are of their answers, and whether they may be."""
    parts = ["# Language models", ""]
    found = rows("llm/models.csv")
    if not found:
        return "\n".join([*parts, "Not yet run.", ""])
    subjects = rows("llm/subjects.csv")
    parts += [
        f"{len({row['model'] for row in found})} language models answered the questions of MMLU-Pro and said "
        "how sure they were: in a number, in "
        "words that were turned into a number, or by the probability of their tokens where it is known. All "
        "of it was published by others "
        "(MIT license); here is what our numbers say of it, with 95% intervals. One more of the archive, phi-4, "
        "has no answer that counts, here or there.",
        "",
        *_agreement(subjects),
        "## Every model",
        "",
        "Ordered by the ECE of the confidence that it says in a number. An answer counts if it could be read and has "
        "every kind of confidence that the model gives, so models differ in how many count, and those that lost "
        "their hard questions look more accurate. ECE in fifteen bins.",
        "",
    ]
    order = sorted(
        {row["model"] for row in found},
        key=lambda model: min(
            [row["ece"] for row in found if row["model"] == model and row["confidence"] == "number"] or [2.0]
        ),
    )
    lines = []
    for model in order:
        known = {row["confidence"]: row for row in found if row["model"] == model}
        first = known.get("number") or next(iter(known.values()))
        lines.append(
            (
                model,
                f"{first['n']:,}",
                f"{100 * first['accuracy']:.1f}",
                *(_cell(known.get(kind)) for kind in ("number", "words", "tokens")),
            )
        )
    heads = ("model", "answers", "accuracy %", "ECE % of the number", "ECE % of words", "ECE % of tokens")
    return "\n".join([*parts, *table(heads, lines)])


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return f"{100 * row['ece']:.1f} [{100 * row['ece_low']:.1f}, {100 * row['ece_high']:.1f}]"


def _agreement(subjects: list[dict[str, Any]]) -> list[str]:
    """Say how far our numbers are from the published ones, and why."""
    known = [row for row in subjects if row["published_ece"] is not None]
    groups = {
        "same": [row for row in known if row["n"] == row["published_n"] and not row["n_zero"]],
        "zero": [row for row in known if row["n"] == row["published_n"] and row["n_zero"]],
        "other": [row for row in known if row["n"] != row["published_n"]],
    }
    gaps = {
        name: 100 * np.abs([row["ece"] - row["published_ece"] for row in found])
        for name, found in groups.items()
    }
    parts = [
        f"The authors published an ECE in ten bins per model, subject and confidence: {len(known):,} cells. "
        "Answers count as they did there: those "
        "whose answer could be read and whose confidences are all from 0 to 1."
    ]
    if len(gaps["same"]):
        agree = int((gaps["same"] < 1e-3).sum())
        parts.append(
            f"In {len(gaps['same']):,} cells the rows are the same and no confidence is 0; {agree:,} of them "
            "agree to a thousandth of a point, the "
            f"largest difference is {gaps['same'].max():.3f} points."
        )
    if len(gaps["zero"]):
        lower = sum(row["published_ece"] < row["ece"] - 1e-5 for row in groups["zero"])
        left = 100 * np.abs([row["ece_without_zero"] - row["published_ece"] for row in groups["zero"]])
        parts.append(
            f"In {len(gaps['zero']):,} cells some answers have confidence 0. The published numbers are lower "
            f"in {lower:,} of them, by {np.median(gaps['zero']):.2f} points in the median over all and "
            f"{gaps['zero'].max():.2f} at most: bins "
            "that are open on "
            "the left have no place for 0, and such answers fell out of the sum. Without them "
            f"{int((left < 1e-3).sum()):,} of these cells agree to a thousandth of a point. Ours counts them."
        )
    if len(gaps["other"]):
        parts.append(
            f"In {len(gaps['other']):,} cells the published count of answers is another one; there the difference is "
            f"{np.median(gaps['other']):.2f} points in the median."
        )
    return ["## Against the published numbers", "", *(line for part in parts for line in (part, ""))]
