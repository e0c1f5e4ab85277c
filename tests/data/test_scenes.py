"""Scenes: the same again, and a posterior that comes true."""

import pytest
import torch

from equipoise.data import batches, load
from equipoise.data.readers.scenes import SceneMaker


def test_the_same_image_again_and_others_for_other_seeds():
    one, again, other = SceneMaker()(3), SceneMaker()(3), SceneMaker(seed=1)(3)
    assert torch.equal(one[0], again[0])
    assert not torch.equal(one[0], other[0])


def test_batches_hold_images_and_masks():
    batch = next(iter(batches(load("scenes"), "test", batch_size=4)))
    assert tuple(batch.inputs.shape) == (4, 3, 32, 32)
    assert set(batch.targets.unique().tolist()) <= {0, 1, 2, 3, 255}


def test_the_posterior_comes_true():
    maker = SceneMaker(patch=1, noise=50.0)
    claimed, right = 0.0, 0.0
    for row in range(60):
        image, mask = maker(row)
        confidence, said = maker.posterior(image)[:, 1:-1].max(0)
        claimed += float(confidence.mean()) / 60
        right += float((said == mask[1:-1]).double().mean()) / 60
    assert 0.5 < right < 0.95
    assert claimed == pytest.approx(right, abs=0.02)


@pytest.mark.parametrize("options", [{"n_classes": 9}, {"n": 10}, {"noise": 0.0}])
def test_sizes_that_do_not_fit_are_refused(options):
    with pytest.raises(ValueError, match="scenes:"):
        load("scenes", options=options)
