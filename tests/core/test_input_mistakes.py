"""What Predictions are given by mistake: one error of ours for each, never one of a library."""

import numpy as np
import pytest
import torch

from equipoise import Predictions, read_predictions, write_predictions
from equipoise.core import DataError

P = np.array([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]])
Y = [0, 1, 0]
GOOD = {"probs": P, "labels": Y}
TOP = {"predicted": Y, "confidence": [0.5] * 3, "labels": Y}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            GOOD | {"weights": [1e200, 1, 1]},
            "`weights` must be 0, or between 1e-100 and .* got 1e.200 in row 0",
        ),
        (
            GOOD | {"weights": [1, 0, 5e-324]},
            "`weights` must be 0, or between .* got 5e-324 in row 2.*divide all",
        ),
        (GOOD | {"probs": [[0.5, 0.5], [1.0]]}, "`probs` must be an array.*got list that is none"),
        (
            GOOD | {"probs": torch.empty(3, 2, device="meta")},
            "`probs` must be an array.*got Tensor that is none",
        ),
        (GOOD | {"probs": torch.eye(3).to_sparse()}, r"`probs` must be an array.*to_dense\(\)"),
        (
            GOOD | {"probs": torch.zeros(3, 2).to(torch.float8_e4m3fn)},
            r"`probs` must be an array.*\.float\(\)",
        ),
        (GOOD | {"probs": np.ma.masked_equal(P, 0.7)}, "`probs` must have no masked values"),
        (GOOD | {"labels": np.ma.masked_equal(Y, 1)}, "`labels` must have no masked values"),
        (
            GOOD | {"labels": np.array([0, 1, 2**64 - 100], np.uint64)},
            "`labels` must hold class numbers, got 184467",
        ),
        (GOOD | {"labels": [0.5, 1.5, 0.1]}, "Regression is not supported, nor are soft labels"),
        (GOOD | {"labels": [0.0, 1e300, 0.0]}, r"stored as floats\? Pass \.astype\(int\)"),
        (GOOD | {"labels": np.eye(2, dtype=int)[Y]}, r"one-hot: pass labels\.argmax\(1\)"),
        (GOOD | {"labels": np.ones((3, 2), int)}, "Several labels per row are not supported"),
        (GOOD | {"class_names": ["\ud800", "b"]}, "`class_names` must be text, number 0 is no Unicode"),
        (GOOD | {"class_names": "ab"}, "`class_names` must be a list of names, got 'ab'"),
        (GOOD | {"class_names": 5}, "`class_names` must be a list of names, got 5"),
        (GOOD | {"groups": ["a"]}, "`groups` must be a dictionary of named columns, got list"),
        (GOOD | {"groups": {"\udfff": Y}}, "`groups` must be text, number 0 is no Unicode"),
        (GOOD | {"groups": {"g": ["\ud800", "a", "b"]}}, r"`groups\['g'\]` holds text that is no Unicode"),
        (GOOD | {"ignore_index": "a"}, "`ignore_index` must be an integer, got 'a'"),
        (GOOD | {"ignore_index": [0, 1]}, "`ignore_index` must be an integer"),
        (GOOD | {"fitted_on": 3}, "`fitted_on` must be Rows, got int"),
        (TOP | {"n_classes": "2"}, "`n_classes` must be an integer, got '2'"),
        (TOP | {"n_classes": 2.5}, "`n_classes` must be an integer, got 2.5"),
        (TOP | {"n_classes": 0}, "`n_classes` must be 1 or more, got 0"),
        (
            {"probs": np.ones((30, 1)), "labels": np.zeros(30, int)},
            "With a single class there is nothing to score",
        ),
        ({"logits": [[np.longdouble("1e4000"), 0]], "labels": [0]}, "`logits` must be finite, got inf"),
    ],
)
def test_mistakes_of_callers(arguments, message):
    with pytest.raises((DataError, TypeError, ValueError), match=rf"^Predictions: .*{message}"):
        Predictions(**arguments)


def test_extreme_but_honest_weights_stay():
    weights = [1e100, 1e-100, 0]
    assert Predictions(**GOOD, weights=weights).weights.tolist() == weights


def test_a_mask_that_masks_nothing_is_fine():
    assert len(Predictions(probs=np.ma.masked_array(P), labels=Y)) == 3


def test_a_single_class_in_the_top1_form_is_read_back(tmp_path):
    alone = Predictions(predicted=[0, 0], confidence=[0.9, 0.8], labels=[0, 0], n_classes=1)
    write_predictions(alone, tmp_path / "a.npz")
    assert read_predictions(tmp_path / "a.npz").n_classes == 1
