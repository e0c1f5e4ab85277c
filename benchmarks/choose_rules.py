"""Which rule should choose a calibrator: the simplest within some standard errors of the best, or the best?

    python benchmarks/choose_rules.py FILE.npz ... [--repeats 10] [--rows 500,1000,2000,5000]

Each file holds `logits` or `predictions` (probabilities), and `labels` or `ground_truth`. Rows are drawn for the
calibrators, candidates are compared on them by five-fold cross-validated log-loss, and the choice of each rule, fitted
on all of them, is scored by log-loss on the remaining rows.
"""

import argparse
from pathlib import Path

import numpy as np

from equipoise.calibrators.choose import CANDIDATES, _probs, refusal
from equipoise.calibrators.load import KINDS
from equipoise.core import Predictions

FOLDS = 5
#: Standard errors that a simpler calibrator may be worse than the best by; 0 takes the best.
TOLERANCES = (1.0, 0.5, 0.0)


def read(path):
    with np.load(path) as content:
        labels = np.asarray(content["labels"] if "labels" in content else content["ground_truth"])
        labels = labels.reshape(-1).astype(np.int64)
        if "logits" in content:
            return np.asarray(content["logits"], np.float64), labels
        return np.log(np.clip(np.asarray(content["predictions"], np.float64), 1e-30, None)), labels


def loss(calibrator, rows):
    probs = _probs(calibrator, rows.logits)
    return -np.log(np.maximum(probs[np.arange(len(rows)), rows.labels], 1e-38))


def pick(losses, size, tolerance):
    best = min(losses, key=lambda name: losses[name].mean())
    gaps = {name: values - losses[best] for name, values in losses.items()}
    near = [name for name, gap in gaps.items() if gap.mean() <= tolerance * gap.std() / len(gap) ** 0.5]
    return min(near, key=lambda name: size[name]) if tolerance else best


def repeat(logits, labels, n_rows, rng):
    order = rng.permutation(len(labels))
    parts = order[:n_rows], order[n_rows:]
    calib, test = (Predictions(logits=logits[part], labels=labels[part]) for part in parts)
    made = {name: KINDS[name]() for name in CANDIDATES}
    size = {name: one.n_parameters(logits.shape[1]) for name, one in made.items()}
    tried = {
        name: one for name, one in made.items() if not refusal(one, n_rows, logits.shape[1], claims=False)
    }
    fold = rng.permutation(n_rows) % FOLDS
    losses = {name: np.empty(n_rows) for name in tried}
    for part in range(FOLDS):
        rows, held = calib.take(fold != part), calib.take(fold == part)
        for name, one in tried.items():
            losses[name][fold == part] = loss(one._fit_rows(rows), held)
    chosen = [pick(losses, size, tolerance) for tolerance in TOLERANCES]
    scores = {name: loss(tried[name]._fit_rows(calib), test).mean() for name in {*chosen, "temperature"}}
    return [scores[name] for name in ("temperature", *chosen)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", default="500,1000,2000,5000")
    options = parser.parse_args()
    print("file, rows; mean NLL of temperature scaling and at tolerances", *TOLERANCES)
    print("and the change of the later ones against the first in %, with its standard error over repeats")
    for path in options.files:
        logits, labels = read(path)
        for n_rows in map(int, options.rows.split(",")):
            rng = np.random.default_rng(0)
            found = np.array([repeat(logits, labels, n_rows, rng) for _ in range(options.repeats)])
            gaps = 100 * (found[:, 2:] / found[:, 1:2] - 1)
            errors = gaps.std(axis=0) / len(gaps) ** 0.5
            changes = [f"{gap:+.2f}±{error:.2f}" for gap, error in zip(gaps.mean(0), errors, strict=True)]
            print(
                f"{path.stem:28s} {n_rows:5d}",
                *(f"{value:.4f}" for value in found.mean(0)),
                *changes,
                flush=True,
            )


if __name__ == "__main__":
    main()
