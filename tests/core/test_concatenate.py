"""Several predictions as one."""

import numpy as np
import pytest

from equipoise.core import DataError, Predictions, Rows
from equipoise.core.predictions.combine import concatenate

PROBS = np.random.default_rng(0).dirichlet(np.ones(3), 12)
LABELS = np.arange(12) % 3


@pytest.mark.parametrize("form", [{"probs": PROBS}, {"predicted": LABELS, "confidence": PROBS[:, 0]}])
def test_blocks_joined_are_the_whole(form):
    whole = Predictions(
        **form, labels=LABELS, weights=np.arange(12.0), groups={"g": LABELS}, ids=LABELS, split="test"
    )
    joined = concatenate(list(whole.blocks(5)))
    np.testing.assert_array_equal(joined.confidence, whole.confidence)
    np.testing.assert_array_equal(joined.weights, whole.weights)
    np.testing.assert_array_equal(joined.groups["g"], whole.groups["g"])
    np.testing.assert_array_equal(joined.rows.hashes, whole.rows.hashes)
    assert (joined.kind, joined.split, joined.rows.named) == (whole.kind, "test", True)


def test_every_fit_is_remembered():
    raw = Predictions(probs=PROBS, labels=LABELS, ids=np.arange(12))
    parts = [raw.with_scores(probs=PROBS, fitted_on=Rows.from_ids([number])) for number in (90, 91)]
    assert concatenate([*parts, raw]).fitted_on.shared(Rows.from_ids([90, 91])) == 2


def test_parts_must_agree():
    with pytest.raises(DataError, match=r"part 1: kind must be as in part 0, 'probs', got 'logits'"):
        concatenate([Predictions(probs=PROBS, labels=LABELS), Predictions(logits=PROBS, labels=LABELS)])
    with pytest.raises(DataError, match="either all parts must have ids or none"):
        concatenate(
            [Predictions(probs=PROBS, labels=LABELS, ids=LABELS), Predictions(probs=PROBS, labels=LABELS)]
        )
    with pytest.raises(DataError, match="no predictions were given"):
        concatenate([])
