"""The page on shift: corrupted and foreign images."""

from __future__ import annotations

import numpy as np
from evidence_data import counts, is_run, mean, methods, rows, sign, table, written


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
