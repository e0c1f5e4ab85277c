"""Arrays with a class for every pixel: a segmentation task from any .npz file."""

import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError
from equipoise.data import batches, load
from equipoise.experiments import Spec, run
from helpers.tiny_runs import QUICK

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (24, 6, 8, 3), dtype=np.uint8)
MASKS = (IMAGES[..., 0] > 127).astype(np.uint8)


def saved(folder, **arrays):
    np.savez(folder / "mine.npz", **arrays)
    return {"path": str(folder / "mine.npz")}


def first(data, split):
    found = batches(
        data, split, epoch=0, indices=None, start=0, rank=0, world_size=1, device="cpu", batch_size=3
    )
    return next(iter(found))


def test_images_and_masks_come_back_padded_to_a_square(tmp_path):
    masks = MASKS.copy()
    masks[:, 0] = 255
    data = load("npz", options=saved(tmp_path, x=IMAGES, y=masks))
    assert (data.kind, data.n_classes, data.ignore_index) == ("segmentation", 2, 255)
    assert {split: len(rows) for split, rows in data.splits.items()} == {
        "train": 15,
        "tune": 2,
        "calib": 2,
        "test": 5,
    }
    batch = first(data, "test")
    rows = data.rows("test")[:3].numpy()
    assert batch.inputs.shape == (3, 3, 8, 8)
    assert torch.equal(batch.targets[:, :6], torch.from_numpy(masks[rows].astype(np.int64)))
    assert (batch.targets[:, 6:] == 255).all()
    shown = batch.inputs[:, :, :6] * data.std.view(3, 1, 1) + data.mean.view(3, 1, 1)
    torch.testing.assert_close(shown, torch.from_numpy(IMAGES[rows]).movedim(-1, 1) / 255, atol=1e-5, rtol=0)


def test_gray_images_are_shown_in_three_colors_and_a_test_set_is_kept(tmp_path):
    options = saved(
        tmp_path,
        x_train=IMAGES[:20, ..., 0],
        y_train=MASKS[:20],
        x_test=IMAGES[20:, ..., 0],
        y_test=MASKS[20:],
    )
    data = load("npz", options=options)
    assert data.rows("test").tolist() == [20, 21, 22, 23]
    batch = first(data, "test")
    assert torch.equal(batch.inputs[:, 0], batch.inputs[:, 2])


def test_other_content_is_other_data(tmp_path):
    one = load("npz", options=saved(tmp_path, x=IMAGES, y=MASKS)).fingerprints["test"]
    other = load("npz", options=saved(tmp_path, x=IMAGES, y=1 - MASKS)).fingerprints["test"]
    assert one != other


@pytest.mark.parametrize(
    ("images", "masks", "sentence"),
    [
        (IMAGES / 255, MASKS, "must be uint8"),
        (IMAGES, MASKS[:, :4], "of the shape"),
        (IMAGES, MASKS / 2, "whole numbers"),
        (IMAGES, np.full_like(MASKS, 255), "classes from 0 to 254"),
        (IMAGES, MASKS.astype(np.int64) + 300, "classes from 0 to 254"),
    ],
)
def test_what_does_not_fit_is_refused(images, masks, sentence, tmp_path):
    with pytest.raises(DataError, match=sentence):
        load("npz", options=saved(tmp_path, x=images, y=masks))


def test_a_run_goes_from_end_to_end(tmp_path):
    table = {
        "data": {"name": "npz", "options": saved(tmp_path, x=IMAGES, y=MASKS)},
        "model": "small_fcn",
        "recipe": {"name": "quick", "epochs": 1, "batch_size": 4},
    }
    done = run(Spec.from_table(table), tmp_path / "runs", **QUICK)
    assert done.status() == "finished"
    assert "mean_iou" in done.scores().extras
