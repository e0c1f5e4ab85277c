"""Ask a language model, audit what it claims by subject, and correct its confidence.

The answers are made up: a model that says round numbers and is too sure of itself in law.
"""

from __future__ import annotations

import numpy as np

from equipoise import Predictions
from equipoise.calibrators import PlattScaling
from equipoise.evaluate import audit

SUBJECTS = ("history", "law", "medicine")
SAID = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 0.99])


def asked(n: int, seed: int, split: str) -> Predictions:
    rng = np.random.default_rng(seed)
    subject = rng.choice(SUBJECTS, n)
    confidence = rng.choice(SAID, n)
    chance = confidence - np.where(subject == "law", 0.25, 0.1)
    return Predictions(
        confidence=confidence,
        correct=rng.random(n) < chance,
        groups={"subject": subject},
        split=split,
    )


def main() -> None:
    last_month, today = asked(2000, 0, "calib"), asked(3000, 1, "test")
    print(audit(today, by=["subject"]))
    calibrator = PlattScaling().fit(last_month)
    print(f"\nAfter {calibrator.kind}, fitted on last month's answers:\n")
    print(audit(calibrator(today), by=["subject"]))


if __name__ == "__main__":
    main()
