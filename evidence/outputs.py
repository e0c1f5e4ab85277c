"""Score saved outputs of other people's networks, beside the numbers that were published with them.

python evidence/outputs.py ~/data/outputs
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tidy import write

from equipoise import Predictions, score

#: File, and what was published of it: metric, bins, value, and how far ours may be off for rounding alone.
PUBLISHED: dict[str, list[tuple[str, int, float, float]]] = {
    "resnet20_cifar10_test_logits.npz": [("accuracy", 0, 0.9173, 5e-9)],
    "resnet44_cifar10_test_logits.npz": [("accuracy", 0, 0.9310, 5e-9)],
    "wideresnet-16-4-cifar-10.npz": [("ece", 15, 0.05372, 5e-6)],
    "densenet-bc-100-cifar-100.npz": [("ece", 15, 0.14216, 5e-6)],
    "resnet110_cifar10_top1.csv": [("ece", 15, 0.047503518641, 1e-8), ("mce", 15, 0.295798957348, 1e-6)],
    "densenet40_cifar100_top1.csv": [("ece", 15, 0.211562852757, 1e-8), ("mce", 15, 0.45400331452, 1e-6)],
    "resnet101_imagenet_top1.csv": [("ece", 10, 0.0491, 5e-5)],
}
SHOWN = ("accuracy", "nll", "ece", "debiased_ece", "ada_ece", "classwise_ece", "smece", "mce")


def read(path: Path) -> Predictions:
    """Read one of these files; their columns have the names that their authors gave them."""
    if path.suffix == ".csv":
        table = np.genfromtxt(path, delimiter=",", names=True)
        return Predictions(
            labels=table["true_label"].astype(int),
            predicted=table["pred_label"].astype(int),
            confidence=table["confidence"],
        )
    with np.load(path) as arrays:
        if "logits" in arrays:
            return Predictions(logits=arrays["logits"], labels=arrays["labels"])
        probs = arrays["predictions"].astype(np.float64)
        return Predictions(probs=probs, labels=arrays["ground_truth"].ravel().astype(int))


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Give one row per file, metric and number of bins."""
    for name, published in PUBLISHED.items():
        predictions = read(folder / name)
        known = {(metric, n_bins): (value, slack) for metric, n_bins, value, slack in published}
        cards = {n_bins: score(predictions, n_bins=n_bins) for n_bins in {15, *(n for _, n in known if n)}}
        binned = ("ece", "debiased_ece", "ada_ece", "classwise_ece", "mce")
        for n_bins, card in sorted(cards.items()):
            for metric in SHOWN:
                bins = n_bins if metric in binned else 0
                if metric not in card.scores or (n_bins != 15 and (metric, bins) not in known):
                    continue
                value, slack = known.get((metric, bins), (None, 0.0))
                one = card[metric]
                agrees = "" if value is None else "agrees" if abs(one.value - value) <= slack else "differs"
                yield {
                    "file": name,
                    "n": card.n_samples,
                    "metric": metric,
                    "n_bins": bins or None,
                    "value": one.value,
                    "low": one.low,
                    "high": one.high,
                    "published": value,
                    "agrees": agrees or None,
                }


if __name__ == "__main__":
    write("outputs/scores.csv", rows(Path(sys.argv[1])))
