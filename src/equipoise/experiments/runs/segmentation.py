"""Segmentation in runs: scores are of all pixels, and a stated sample of them is kept to fit calibrators on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.calibrators import Calibrator
from equipoise.core.choices import ScoreSettings
from equipoise.core.predictions import Predictions
from equipoise.core.splits import SPLITS
from equipoise.evaluate import Score, Scorecard
from equipoise.evaluate.scoring import score_state
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import NUMBER, check_content, read_json
from equipoise.experiments.runs.scores import RunScores, pack_draws, unpack_draws
from equipoise.metrics.clusters import sums_of_images
from equipoise.metrics.row_draws import ResamplePlan, RowDraws, draw_units, group_clusters, shared_metrics

if TYPE_CHECKING:
    from torch import nn

    from equipoise.experiments.specs.scoring import ScoringOptions
    from equipoise.training import BatchLike, DenseScores

__all__ = [
    "DENSE",
    "IMAGE",
    "N_PIXELS",
    "image_clusters",
    "predict_dense",
    "read_pixel_scores",
    "with_all_pixels",
]

#: The file of what was counted over all pixels.
DENSE = "predictions/dense.json"
#: The column of groups that says which image a pixel is from.
IMAGE = "image"
#: Pixels of each split that are kept as rows.
N_PIXELS = 100_000


def predict_dense(
    network: nn.Module,
    batches: Iterable[BatchLike],
    *,
    split: str,
    n_classes: int,
    ignore_index: int | None,
    seed: int,
    options: ScoringOptions,
    calibrator: Calibrator | None = None,
) -> tuple[Predictions, dict[str, Any]]:
    """Return a sample of the pixels of a split as rows, and the scores of all of them.

    Memory grows by a few kilobytes per image. The sample has a column of groups ``image``; pixels of one image depend
    on each other, so images are resampled behind every interval.

    Args:
        network: From images to logits ``(n, k, h, w)``.
        batches: Images with masks.
        split: Which split they are.
        n_classes: How many classes.
        ignore_index: Label of pixels that are no class.
        seed: Of the sample.
        options: Bins, level, resamples and their seed.
        calibrator: A fitted calibrator, after which all pixels are scored; the sample is then a single pixel.

    Returns:
        The sample, before any calibrator; and a table of plain values: its share, scorecards of all pixels, of those
        near boundaries between classes and of the others, resamples of images, and intersections over unions with
        intervals from them.
    """
    from equipoise.training import score_dense  # with torch, which tables of finished runs do without

    found = score_dense(
        network,
        batches,
        n_classes=n_classes,
        ignore_index=ignore_index,
        n_pixels=N_PIXELS if calibrator is None else 1,
        n_bins=options.n_bins,
        closed=options.closed,
        calibrator=calibrator,
        split=split,
        seed=seed,
    )
    resampling: dict[str, Any] = {
        "level": options.level,
        "n_resamples": options.n_resamples,
        "seed": options.seed,
    }
    mean, classes = found.intervals(**resampling)
    parts = {
        "all": (found.state, found.near_images + found.inside_images),
        "boundary": (found.near, found.near_images),
        "inside": (found.inside, found.inside_images),
    }
    table = {
        "share": found.share,
        "n_pixels": len(found.sample),
        "n_images": len(found.unions),
        "mean_iou": [found.mean_iou, *mean],
        "class_iou": [
            None if np.isnan(value) else [float(value), *map(float, ends)]
            for value, ends in zip(found.class_iou, classes, strict=True)
        ],
        "draws": pack_draws(_draw_images(found, resampling)),
        "cards": {
            name: score_state(
                state,
                None,
                ScoreSettings(**resampling),
                clusters=sums_of_images(cells, seed=resampling["seed"]),
            ).to_dict()
            for name, (state, cells) in parts.items()
            if state.n_samples
        },
    }
    # Places are counted from 0 in every split; rows of two splits must not look like the same.
    ids = found.places + (SPLITS.index(split) << 48)
    kept = Predictions(
        logits=found.sample.logits,
        labels=found.sample.labels,
        ids=ids,
        split=split,
        groups={IMAGE: found.images},
    )
    return kept, table


def image_clusters(*predictions: Predictions) -> str | None:
    """Return the column of clusters of segmentation; None for other tasks, and where a split is a single image.

    Example:
        >>> image_clusters(Predictions(probs=[0.9], labels=[1])) is None
        True
    """
    columns = [part.groups.get(IMAGE, np.zeros(1)) for part in predictions]
    return IMAGE if all((column != column[0]).any() for column in columns) else None


def _draw_images(found: DenseScores, resampling: Mapping[str, Any]) -> RowDraws:
    """Score resamples of the images, all their pixels included; runs of the same images have the same resamples."""
    sums, n_units = group_clusters(found.near_images + found.inside_images, resampling["seed"])
    plan = ResamplePlan(int(found.state.n_samples), n_units, resampling["n_resamples"], resampling["seed"])
    return draw_units(sums.reshape(len(sums), -1), found.state.n_bins, shared_metrics(found.sample), plan)


def read_pixel_scores(target: RunFolder) -> dict[str, Any]:
    """Return the scores of all pixels without a calibrator, by split, as :func:`predict_dense` made them.

    Args:
        target: A run of segmentation that is predicted.
    """
    file = target.intact_file(DENSE)
    content: dict[str, Any] = read_json(file)
    shape = {"mean_iou": [NUMBER], "class_iou": [(list, type(None))], "cards": {str: dict}, "draws": dict}
    check_content(content, dict.fromkeys(target.splits(), shape), where=str(file))
    return content


def with_all_pixels(scores: RunScores, tables: Mapping[str, Mapping[str, Any]]) -> RunScores:
    """Return scores of a sample of pixels with those of all pixels in their place.

    ``test-sample`` is the scorecard of the sample. Intersections over unions are added.

    Args:
        scores: What the sample scored.
        tables: What all pixels scored after the same calibrator, by split, as :func:`predict_dense` returns it.
    """
    cards = {
        split: {name: Scorecard.from_dict(card) for name, card in table["cards"].items()}
        for split, table in tables.items()
    }
    parts = {f"test-pixels-{name}": card for name, card in cards["test"].items() if name != "all"}
    test = tables["test"]
    classes = {f"iou_{place}": one for place, one in enumerate(test["class_iou"]) if one is not None}
    overlaps = {"mean_iou": test["mean_iou"], **classes}
    return replace(
        scores,
        cards={
            **{split: cards[split]["all"] for split in scores.cards},
            "test-sample": scores.test,
            **parts,
        },
        draws=unpack_draws(test["draws"]),
        extras={**{key: Score(*one) for key, one in overlaps.items()}, **scores.extras},
    )
