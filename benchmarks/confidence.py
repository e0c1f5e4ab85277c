"""Which calibrator to use for the confidence of language models: fitted on some answers, judged on the others.

Run: python benchmarks/confidence.py ~/data/llm/mmlu_pro.tar.xz [--every 3] [--rows 300 3000]

The answers are those of ``evidence/llm.py``. For each model and kind of confidence, calibrators are fitted on some
answers drawn at random, and judged on up to 4,000 others. The tables hold means over models of the Brier score and of
the log-loss of the answer being right, and the number of models for which each is worse than without a calibrator by
more than chance (paired test, one-sided, p < 0.001). Before calibration a confidence of exactly 0 or 1 counts as 0.005
from it in the log-loss.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "evidence"))

import numpy as np
from llm import KINDS as CONFIDENCES
from llm import judged, read

from equipoise.calibrators import choose
from equipoise.calibrators.loading import KINDS

CALIBRATORS = ("platt", "beta", "spline", "isotonic", "histogram", "auto")
LEVEL = 3.09
MOST_JUDGED = 4000


def main() -> None:
    """Print one table per kind of confidence and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--every", type=int, default=3, help="take every so many models, to be quick")
    parser.add_argument("--rows", type=int, nargs="*", default=[300, 3000], help="answers to fit on")
    parser.add_argument("--calibrators", nargs="*", default=CALIBRATORS)
    given = parser.parse_args()
    found: dict[tuple[str, int, str], list[np.ndarray]] = defaultdict(list)
    for number, (_model, answers) in enumerate(read(given.archive)[1]):
        if number % given.every:
            continue
        for kind in CONFIDENCES:
            whole = judged(answers, kind, np.ones(len(answers["right"]), bool))
            if whole is None or len(whole) < max(given.rows) + 1000:
                continue
            order = np.random.default_rng(number).permutation(len(whole))
            for rows in given.rows:
                fit, fresh = whole.take(order[:rows]), whole.take(order[rows : rows + MOST_JUDGED])
                found[kind, rows, "none"].append(_losses(fresh.confidence, fresh.correct))
                for name in given.calibrators:
                    calibrator = choose(fit).calibrator if name == "auto" else KINDS[name]().fit(fit)
                    found[kind, rows, name].append(_losses(calibrator(fresh).confidence, fresh.correct))
    for kind in CONFIDENCES:
        for rows in given.rows:
            _show(kind, rows, {name: found[kind, rows, name] for name in ("none", *given.calibrators)})


def _losses(confidence: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the Brier score and the log-loss of each answer, ``(2, n)``."""
    clipped = np.clip(confidence.astype(float), 0.005, 0.995)
    return np.stack([(confidence - right) ** 2, -np.log(np.where(right, clipped, 1 - clipped))])


def _show(kind: str, rows: int, found: dict[str, list[np.ndarray]]) -> None:
    plain = found["none"]
    print(f"\nconfidence in {kind}, fitted on {rows} answers, {len(plain)} models")
    print(f"{'calibrator':>12}  {'Brier':>6}  {'worse':>5}  {'log-loss':>8}  {'worse':>5}")
    for name, losses in found.items():
        means = np.mean([one.mean(axis=1) for one in losses], axis=0)
        rises = [one - before for one, before in zip(losses, plain, strict=True)]
        worse = np.sum([r.mean(1) > LEVEL * r.std(1) / r.shape[1] ** 0.5 + 1e-9 for r in rises], axis=0)
        print(f"{name:>12}  {means[0]:6.4f}  {worse[0]:5d}  {means[1]:8.4f}  {worse[1]:5d}")


if __name__ == "__main__":
    main()
