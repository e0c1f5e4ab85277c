"""Score the confidence of language models in their answers to MMLU-Pro, beside the published numbers.

python evidence/llm.py ~/data/llm/mmlu_pro.tar.xz
"""

from __future__ import annotations

import csv
import io
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tidy import write

from equipoise import Predictions, score
from equipoise.metrics import area_under_roc, expected_calibration_error

#: How a model was asked for its confidence, and the column that holds it.
KINDS = {
    "number": "verbal_numerical_confidence",
    "words": "verbal_linguistic_confidence",
    "tokens": "logit_perplexity_confidence",
}
PREFIX, SUFFIX = "mmlu_pro_", "_eval_all_None"
RESAMPLES = 200


def read(archive: Path) -> tuple[dict[str, dict[str, str]], Iterator[tuple[str, dict[str, np.ndarray]]]]:
    """Give the published table by model, and the answers of each model as columns."""
    files = tarfile.open(archive)  # noqa: SIM115 - read to the end of the process
    members = {
        Path(one.name).stem: one for one in files.getmembers() if one.isfile() and one.name.endswith(".csv")
    }

    def lines(name: str) -> Iterator[dict[str, str]]:
        return csv.DictReader(io.TextIOWrapper(files.extractfile(members[name]), encoding="utf-8"))

    published = {row[""].lower(): row for row in lines("category_df")}

    def answers() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
        for name in sorted(members, key=str.lower):
            if name.startswith(PREFIX):
                model = name.removeprefix(PREFIX).removesuffix(SUFFIX)
                yield model, _columns(list(lines(name)))

    return published, answers()


def _columns(rows: list[dict[str, str]]) -> dict[str, np.ndarray]:
    columns = {kind: np.array([float(row[key] or "nan") for row in rows]) for kind, key in KINDS.items()}
    # As its authors did: an answer counts if there is one, and every confidence that the model has is from 0 to 1.
    known = [column for column in columns.values() if np.isfinite(column).any()]
    answered = np.array([row["extracted_answer"] != "" for row in rows])
    columns["counts"] = answered & np.all([(column >= 0) & (column <= 1) for column in known], axis=0)
    columns["right"] = np.array([row["correct_answer"] == row["extracted_answer"] for row in rows])
    columns["subject"] = np.array([row["category"] for row in rows])
    return columns


def judged(answers: Mapping[str, np.ndarray], kind: str, chosen: np.ndarray) -> Predictions | None:
    """Give answers as predictions of whether they are right; None if there is no such confidence."""
    kept = chosen & answers["counts"]
    if not kept.any() or not np.isfinite(answers[kind][kept]).any():
        return None
    right = answers["right"][kept].astype(int)
    return Predictions(
        labels=np.ones(len(right), int), predicted=right, confidence=answers[kind][kept], n_classes=2
    )


def model_rows(model: str, answers: Mapping[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    """Give one row per kind of confidence."""
    for kind in KINDS:
        found = judged(answers, kind, np.ones(len(answers["right"]), bool))
        if found is None:
            continue
        card = score(found, n_resamples=RESAMPLES)
        yield {
            "model": model,
            "confidence": kind,
            "n": len(found),
            **{
                f"{key}{end}": getattr(card[key], part)
                for key in ("accuracy", "ece", "confidence_gap", "auroc")
                if key in card.scores
                for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
            },
        }


def subject_rows(
    model: str, answers: Mapping[str, np.ndarray], published: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Give one row per subject and kind of confidence, with what was published."""
    for subject in np.unique(answers["subject"]):
        for kind, column in KINDS.items():
            found = judged(answers, kind, answers["subject"] == subject)
            printed = published.get(f"{subject}_ece_{column}") or ""
            if found is None:
                continue
            yield {
                "model": model,
                "subject": str(subject),
                "confidence": kind,
                "n": len(found),
                "n_zero": int((np.asarray(found.confidence) == 0).sum()),
                "accuracy": float((found.predicted == found.labels).mean()),
                "ece": float(expected_calibration_error(found, n_bins=10)),
                "ece_without_zero": _without_zero(found),
                "auroc": _auroc(found),
                "published_n": int(float(published.get(f"{subject}_sample_size") or 0)),
                "published_accuracy": float(published.get(f"{subject}_accuracy") or "nan"),
                "published_ece": float(printed) if printed else None,
            }


def _without_zero(found: Predictions) -> float:
    """Give the ECE in bins that are open on the left: answers of confidence 0 are in none, and count in n alone."""
    kept = np.flatnonzero(np.asarray(found.confidence) > 0)
    return (
        float(expected_calibration_error(found.take(kept), n_bins=10)) * len(kept) / len(found)
        if len(kept)
        else 0.0
    )


def _auroc(found: Predictions) -> float | None:
    right = np.asarray(found.predicted) == np.asarray(found.labels)
    return None if right.all() or not right.any() else float(area_under_roc(found.confidence, right))


def main() -> None:
    """Write both files."""
    published, answers = read(Path(sys.argv[1]))
    models: list[dict[str, Any]] = []
    subjects: list[dict[str, Any]] = []
    for model, columns in answers:
        models += model_rows(model, columns)
        subjects += subject_rows(model, columns, published[model.lower()])
    write("llm/models.csv", models)
    write("llm/subjects.csv", subjects)


if __name__ == "__main__":
    main()
