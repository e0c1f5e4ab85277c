"""Accuracy from few labels: coverage and width of intervals on simulated, image and language-model predictions.

    python benchmarks/few_labels.py [--outputs FOLDER] [--answers mmlu_pro.tar.xz] [--repeats 4000] [--plans]

Each file is a population. Labelled rows are drawn from it with replacement, next to 10,000 rows without labels, whose
mean confidence is drawn from its normal distribution. Printed for n labels: how often the 95% interval of
`powered_interval` contains the rate, and its mean width relative to the interval of the labels alone. "Accepted" are
the 70% of rows with the highest confidence. Below are plans. Every repetition draws as many rows as the file has from
its population, and labels some within strata, as many as `plan_labels` chooses for the file. Printed: labelled rows,
expected errors among them, rows of a random sample, width reached, and how often the interval of `stratified_interval`
contains the rate of the population and that of the rows drawn. The second time, the confidences are calibrated first
(isotonic regression on the file).
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "evidence"))

from equipoise import Predictions, read_predictions
from equipoise.calibrators import IsotonicCalibration
from equipoise.calibrators.forms import as_claims
from equipoise.core.errors import DataError
from equipoise.decisions import plan_labels
from equipoise.decisions.labelling import _interval, powered_interval, stratified_interval

SIZES, N_OTHER = (50, 100, 200, 500, 1000), 10_000
WIDTHS = (0.2, 0.15, 0.1, 0.05, 0.03)


def sources(outputs, answers):
    """Return confidences and whether predictions are right, by name."""
    rng = np.random.default_rng(0)
    found = {}
    for name, (a, b, power) in {
        "calibrated": (4, 1, 1.0),
        "overconfident": (8, 1, 2.0),
        "weak": (30, 8, 1.0),
    }.items():
        confidence = rng.beta(a, b, 20_000)
        found[name] = confidence, rng.random(20_000) < confidence**power
    for path in sorted(outputs.glob("*")) if outputs else ():
        if path.name.endswith(("_logits.npz", "_top1.csv")) and "imagenet" not in path.name:
            names = {}
            if path.suffix == ".csv":
                with path.open() as lines:
                    header = next(csv.reader(lines))
                names = dict(zip(("labels", "predicted", "confidence"), header, strict=True))
            rows = read_predictions(str(path), **names)
            found[path.stem.split("_test")[0]] = rows.confidence, rows.correct
        elif path.suffix == ".npz":
            content = np.load(path)
            truth = content["ground_truth"]
            probs, truth = content["predictions"], truth.argmax(axis=1) if truth.ndim > 1 else truth
            found[path.stem] = probs.max(axis=1), probs.argmax(axis=1) == truth
    if answers:
        from llm import judged, read

        for number, (model, columns) in enumerate(read(answers)[1]):
            rows = (
                judged(columns, "number", np.ones(len(columns["right"]), bool)) if number % 8 == 0 else None
            )
            if rows is not None and sum(name.startswith("llm ") for name in found) < 10:
                found[f"llm {model}"] = rows.confidence, rows.correct
    return {name: (f.astype(float), y.astype(float)) for name, (f, y) in found.items()}


def print_coverage(name, f, y, repeats):
    for what, kept in (("all", np.ones(len(f), bool)), ("accepted", f >= np.quantile(f, 0.3))):
        some, right = f[kept], y[kept]
        truth, cells, rng = right.mean(), [], np.random.default_rng(1)
        for n in SIZES:
            hits, widths = [], []
            for _ in range(0, repeats, 500):
                drawn = rng.integers(0, len(some), (500, n))
                mean = rng.normal(some.mean(), some.std() / N_OTHER**0.5, 500)
                _, low, high, _ = powered_interval(right[drawn], some[drawn], mean, some.var(), N_OTHER)
                k = right[drawn].sum(axis=1)
                old_low, old_high = _interval(k / n, n, k, n - k, 0.95)
                hits.append((low <= truth) & (truth <= high))
                widths.append([high - low, old_high - old_low])
            widths = np.mean(widths, axis=(0, 2))
            cells.append(f"{100 * np.mean(hits):6.1f} ({widths[0] / widths[1]:.2f})")
        print(f"{name[:32]:33}{what:9}{100 * truth:6.1f}%" + "".join(cells), flush=True)


def print_plans(name, f, y, repeats):
    for what in ("as it is", "calibrated"):
        rows = Predictions(confidence=f)
        if what == "calibrated":
            labelled = Predictions(confidence=f, correct=y.astype(bool), ids=np.arange(len(f)))
            rows = IsotonicCalibration()._fit_rows(as_claims(labelled), claims=True)(rows)
            rows = Predictions(confidence=rows.confidence)
        cells, rng, size = [], np.random.default_rng(2), None
        ordered = y[np.argsort(rows.confidence, kind="stable")].astype(int)
        for width in WIDTHS:
            try:
                plan = plan_labels(rows, width=width)
            except DataError:
                cells.append(f"{'too few rows':>46}")
                continue
            n = np.bincount(plan.stratum)
            if size is None:
                stratum = np.arange(len(f)) * len(n) // len(f)
                size = np.bincount(stratum)
                drawn = (np.sort(rng.integers(0, len(f), len(f))) for _ in range(repeats))
                hits = np.array([np.bincount(stratum, ordered[one]) for one in drawn]).astype(int)
            right = rng.hypergeometric(hits, size - hits, n)
            _, low, high = stratified_interval(right, n, size / len(f), len(f))
            covered = [
                f"{100 * np.mean((low <= truth) & (truth <= high)):6.1f}"
                for truth in (y.mean(), hits.sum(axis=1) / len(f))
            ]
            wrong = (n - right).sum(axis=1).mean()
            cells.append(
                f"{n.sum():6d} ({wrong:6.1f}) of {plan.n_random:6d} {(high - low).mean():.3f}"
                + "".join(covered)
            )
        print(f"{name[:32]:33}{what:12}" + "  ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=Path, help="folder of outputs of networks")
    parser.add_argument("--answers", type=Path, help="archive of answers of language models")
    parser.add_argument("--repeats", type=int, default=4000)
    parser.add_argument("--plans", action="store_true", help="print only the plans")
    options = parser.parse_args()
    found = sources(options.outputs, options.answers)
    if not options.plans:
        print("coverage in percent (width relative to labels alone) for n =", *SIZES)
        for name, (f, y) in found.items():
            print_coverage(name, f, y, options.repeats)
    print(
        "\nplans: rows (errors), random rows, width, coverage of population and rows, for the widths", *WIDTHS
    )
    for name, (f, y) in found.items():
        print_plans(name, f, y, options.repeats)


if __name__ == "__main__":
    main()
