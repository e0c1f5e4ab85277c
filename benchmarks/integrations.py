"""Our adapters and what other libraries offer themselves, interleaved in one run.

Run with ``python benchmarks/integrations.py``. Times are the least of some repeats; compare only ratios of one run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from torch import Tensor
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import MulticlassCalibrationError

from equipoise.integrations.sklearn import CalibratedClassifier
from equipoise.integrations.torchmetrics import ECE, NLL, Brier

SEEDS = range(5)


def least(work: Callable[[], object], other: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    best = [float("inf")] * 2
    for _ in range(repeats):
        for place, one in enumerate((work, other)):
            start = time.perf_counter()
            one()
            best[place] = min(best[place], time.perf_counter() - start)
    return best[0], best[1]


def epoch(metric: Metric | MetricCollection, batches: list[tuple[Tensor, Tensor]]) -> object:
    metric.reset()
    for scores, labels in batches:
        metric.update(scores, labels)
    return metric.compute()


def epochs() -> None:
    print("an epoch of 100 updates and a compute: ours, theirs")
    print(
        "  one metric: ECE of both; three in a collection: our ECE, NLL and Brier, their ECE in three norms"
    )
    for n_rows, n_classes in ((128, 10), (128, 100), (512, 1000)):
        batches = [
            (torch.randn(n_rows, n_classes).softmax(-1), torch.randint(0, n_classes, (n_rows,)))
            for _ in range(100)
        ]
        pairs = {
            "one": (ECE(n_classes, inputs="probs"), MulticlassCalibrationError(n_classes, n_bins=15)),
            "three": (
                MetricCollection([one(n_classes, inputs="probs") for one in (ECE, NLL, Brier)]),
                MetricCollection(
                    {norm: MulticlassCalibrationError(n_classes, 15, norm) for norm in ("l1", "l2", "max")}
                ),
            ),
        }
        for name, (ours, theirs) in pairs.items():
            mine, other = least(partial(epoch, ours, batches), partial(epoch, theirs, batches))
            size = f"{n_rows:5} x {n_classes:4}"
            print(f"  {size} {name:6}{1e3 * mine:9.2f} ms {1e3 * other:9.2f} ms   x {other / mine:.2f}")


def estimators() -> None:
    print("log-loss on held-out rows, mean of five splits; the same five folds for both sides")
    data = {
        "digits": load_digits(return_X_y=True),
        "cancer": load_breast_cancer(return_X_y=True),
        "made": make_classification(2000, 20, n_informative=6, n_classes=4, random_state=0),
    }
    models = [
        GaussianNB(),
        RandomForestClassifier(50, random_state=0),
        KNeighborsClassifier(),
        LinearSVC(),
        LogisticRegression(C=100, max_iter=2000),
    ]
    head = ("data", "model", "theirs", "theirs, ensemble", "ours", "ours, auto")
    print("  {:8}{:24}{:>10}{:>18}{:>10}{:>12}".format(*head))
    for name, (X, y) in data.items():
        for model in models:
            found = np.mean([compared(model, X, y, seed) for seed in SEEDS], axis=0)
            print(
                "  {:8}{:24}{:10.4f}{:18.4f}{:10.4f}{:12.4f}".format(name, type(model).__name__, *found),
                flush=True,
            )


def compared(model: object, X: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    fit, judge, fit_labels, labels = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    folds = StratifiedKFold(5)
    sides = [
        CalibratedClassifierCV(model, method="temperature", cv=folds, ensemble=False),
        CalibratedClassifierCV(model, method="temperature", cv=folds, ensemble=True),
        CalibratedClassifier(model, method="temperature", cv=folds),
        CalibratedClassifier(model, method="auto", cv=folds),
    ]
    return [log_loss(labels, side.fit(fit, fit_labels).predict_proba(judge)) for side in sides]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    epochs()
    estimators()
