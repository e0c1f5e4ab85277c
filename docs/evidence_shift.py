"""The page on shift: corrupted and foreign images."""

from __future__ import annotations

import numpy as np
from evidence_data import SPACE, arenas, counts, marked, mean, methods, rows, sign, table, written

#: Corruptions whose severities are drawn as curves.
FAMILIES = ("gaussian_noise", "gaussian_blur")
_KEY = "ood_auroc_{}"


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
    known = list(filter(is_shifted, arenas()))
    if not known:
        parts += ["Not yet run.", ""]
    return "\n".join([*parts, *(line for arena in known for line in _shift_of(arena))])


def is_shifted(arena: str) -> bool:
    """Whether an arena has corrupted test sets."""
    return bool(_splits(arena))


def _splits(arena: str) -> list[str]:
    return list(
        dict.fromkeys(row["split"] for row in rows(f"{arena}/differences.csv") if row["split"] != "test")
    )


def _short(split: str) -> str:
    return split.removeprefix("test-").replace("_", " ")


def _ece(arena: str, label: str, calibrator: str, split: str) -> str:
    return written(arena, label, calibrator, "ece", split).partition(f"{SPACE}±")[0]


def _shift_of(arena: str) -> list[str]:
    splits, labels = _splits(arena), methods(arena)
    everywhere = ("test", *splits)
    ordered = sorted(
        labels, key=lambda one: np.mean([mean(arena, one, "identity", "ece", split) for split in splits])
    )
    versus = {"versus_calibrator": "temperature"}
    lines = [["ce + temperature", *(_ece(arena, "ce", "temperature", split) for split in everywhere)]]
    for label in ordered:
        marks = [sign(arena, label, "ece", split=split, **versus) for split in everywhere]
        numbers = [_ece(arena, label, "identity", split) for split in everywhere]
        lines.append([f"`{label}`", *map(marked, numbers, marks)])
    rivals = [one for one in labels if one != "ce"]
    won = {split: counts(arena, "ece", rivals, split=split, **versus) for split in splits}
    told = "; ".join(
        f"{_short(split)}: {n['better']} better than scaled cross-entropy, {n['tie']} tied, {n['worse']} worse"
        for split, n in won.items()
    )
    return [
        f"## {arenas()[arena]['title']}",
        "",
        "Mean ECE % over seeds:",
        "",
        *table(["method", "clean", *map(_short, splits)], lines),
        f"Over all methods but cross-entropy: {told}.",
        "",
        *(f"![ECE under {family.replace('_', ' ')}](pictures/{arena}-{family}.svg)\n" for family in FAMILIES),
        *_foreign(arena, labels),
    ]


def _foreign(arena: str, labels: list[str]) -> list[str]:
    metric = _KEY.format("confidence")
    found = [row["split"] for row in rows(f"{arena}/scores.csv") if row["metric"] == metric]
    if not found:
        return []
    ordered = sorted(labels, key=lambda one: -mean(arena, one, "identity", metric, found[0]))
    lines = [
        (
            f"`{label}`",
            *(
                f"{100 * mean(arena, label, 'identity', _KEY.format(by), found[0]):.1f}"
                for by in ("confidence", "energy")
            ),
        )
        for label in ordered
    ]
    return [
        f"Its test images told from those of {_short(found[0])} by how sure the network is: AUROC %, mean over seeds.",
        "",
        *table(("method", "by confidence", "by energy"), lines),
    ]
