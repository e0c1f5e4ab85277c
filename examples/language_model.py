"""Audit the confidence of a language model by subject, and correct it.

    python examples/language_model.py

The answers are generated: the model states round numbers and is overconfident, most of all in law.
"""

from __future__ import annotations

import numpy as np

from equipoise import Predictions
from equipoise.calibrators import PlattScaling
from equipoise.evaluate import audit

SUBJECTS = ("history", "law", "medicine")
CONFIDENCES = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 0.99])


def generate_answers(n: int, seed: int, split: str) -> Predictions:
    rng = np.random.default_rng(seed)
    subject = rng.choice(SUBJECTS, n)
    confidence = rng.choice(CONFIDENCES, n)
    chance = confidence - np.where(subject == "law", 0.25, 0.1)
    return Predictions(
        confidence=confidence,
        correct=rng.random(n) < chance,
        groups={"subject": subject},
        split=split,
    )


def main() -> None:
    last_month, today = generate_answers(2000, 0, "calib"), generate_answers(3000, 1, "test")
    print(audit(today, by=["subject"]))
    calibrator = PlattScaling().fit(last_month)
    print(f"\nAfter {calibrator.kind}, fitted on last month's answers:\n")
    print(audit(calibrator(today), by=["subject"]))


if __name__ == "__main__":
    main()
