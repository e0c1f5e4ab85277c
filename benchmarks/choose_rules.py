"""Which rule should choose a calibrator: the simplest within some standard errors of the best, or the best?

    python benchmarks/choose_rules.py FILE ... [--repeats 10] [--rows 500,1000,2000,5000] [--csv OUT.csv]

A file is a .npz with `logits` or `predictions` (probabilities) and `labels` or `ground_truth`, or a .csv with
`confidence` and either `correct` or `true_label` and `pred_label`. Rows are drawn for the calibrators, candidates are
compared on them by five-fold cross-validated log-loss, and the choice of each rule, fitted on all of them, is scored by
log-loss on the remaining rows. The output is the change of NLL against "simplest within one standard error" in percent.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from equipoise.calibrators.forms import as_claims, is_claims
from equipoise.calibrators.loading import KINDS
from equipoise.calibrators.selection import CANDIDATES, CLAIM_CANDIDATES, _probs, refusal
from equipoise.calibrators.zeros import floor_of, with_floor
from equipoise.core import Predictions
from equipoise.core.reading import read_predictions

FOLDS = 5


def read(path):
    if path.suffix == ".csv":
        with path.open() as stream:
            table = list(csv.DictReader(stream))
        confidence = np.array([row["confidence"] for row in table], np.float64)
        if "correct" in table[0]:
            return Predictions(confidence=confidence, correct=[row["correct"] for row in table])
        return Predictions(
            confidence=confidence, correct=[row["true_label"] == row["pred_label"] for row in table]
        )
    with np.load(path) as content:
        if "ground_truth" not in content:
            return read_predictions(path)
        labels = np.asarray(content["ground_truth"]).reshape(-1).astype(np.int64)
        return Predictions(probs=np.asarray(content["predictions"], np.float64), labels=labels)


def loss(calibrator, rows):
    probs = _probs(calibrator, rows)
    return -np.log(np.maximum(probs[np.arange(len(rows)), rows.labels], 1e-38))


def within(losses, best, tolerance):
    """Return the candidates that are worse than the best by at most so many standard errors of the difference."""
    gaps = {name: values - losses[best] for name, values in losses.items()}
    return [name for name, gap in gaps.items() if gap.mean() <= tolerance * gap.std() / len(gap) ** 0.5]


def rules(losses, size, simple):
    """Return the choice of each rule; `simple` is what a cautious user would take without looking."""
    best = min(losses, key=lambda name: losses[name].mean())
    near = within(losses, best, 1.0)
    plain = min(("identity", simple), key=lambda name: losses[name].mean())
    return {
        "one_standard_error": min(near, key=size.get),
        "half": min(within(losses, best, 0.5), key=size.get),
        "best": best,
        "best_beyond_identity": "identity" if "identity" in near else best,
        "best_beyond_simple": "identity" if "identity" in near else simple if simple in near else best,
        "best_or_simple": best if plain not in near else plain,
        simple: simple,
        **{name: name for name in ("sms", "svs") if name in losses},
    }


def repeat(data, n_rows, rng):
    order = rng.permutation(len(data))
    calib, test = data.take(order[:n_rows]), data.take(order[n_rows:])
    claims = is_claims(data)
    if claims:
        calib, test = as_claims(calib), as_claims(test)
    floor = floor_of(calib).values  # as `choose` does, zeros count the same for every candidate
    if floor:
        calib, test = with_floor(calib, floor), with_floor(test, floor)
    made = {name: KINDS[name]() for name in (CLAIM_CANDIDATES if claims else CANDIDATES)}
    n_classes = calib.logits.shape[1]
    size = {name: one.n_parameters(n_classes) for name, one in made.items()}
    tried = {name: one for name, one in made.items() if not refusal(one, n_rows, n_classes, claims=claims)}
    fold = rng.permutation(n_rows) % FOLDS
    losses = {name: np.empty(n_rows) for name in tried}
    for part in range(FOLDS):
        rows, held = calib.take(fold != part), calib.take(fold == part)
        for name, one in tried.items():
            losses[name][fold == part] = loss(one._fit_rows(rows, claims=claims), held)
    chosen = rules(losses, size, "platt" if claims else "temperature")
    scores = {
        name: loss(tried[name]._fit_rows(calib, claims=claims), test).mean() for name in set(chosen.values())
    }
    return {rule: scores[name] for rule, name in chosen.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", default="500,1000,2000,5000")
    parser.add_argument("--csv", type=Path, help="Where every repeat goes.")
    options = parser.parse_args()
    lines = []
    print(
        "file, rows, NLL at one standard error; change of other rules in %, with its standard error over repeats"
    )
    for path in options.files:
        data = read(path)
        for n_rows in map(int, options.rows.split(",")):
            rng = np.random.default_rng(0)
            found = [repeat(data, n_rows, rng) for _ in range(options.repeats)]
            lines += [
                {"file": path.stem, "rows": n_rows, "repeat": number, "rule": rule, "nll": value}
                for number, one in enumerate(found)
                for rule, value in one.items()
            ]
            base = np.array([one["one_standard_error"] for one in found])
            print(f"{path.stem[:28]:28s} {n_rows:5d} {base.mean():.4f}", end="")
            for rule in list(found[0])[1:]:
                gaps = 100 * (np.array([one[rule] for one in found]) / base - 1)
                print(f"  {rule} {gaps.mean():+.2f}±{gaps.std() / len(gaps) ** 0.5:.2f}", end="")
            print(flush=True)
            if options.csv:
                with options.csv.open("w", newline="") as stream:
                    writer = csv.DictWriter(stream, lines[0])
                    writer.writeheader()
                    writer.writerows(lines)


if __name__ == "__main__":
    main()
