"""Color jitter and random erasing of whole batches."""

import numpy as np
import pytest
import torch

from equipoise.data import Augment, batches, erase_boxes, from_arrays, jitter_colors

IMAGES = np.random.default_rng(0).integers(0, 256, (64, 3, 16, 16), dtype=np.uint8)
DATA = from_arrays(
    torch.from_numpy(IMAGES), torch.arange(64) % 2, name="noise", splits={"train": np.arange(64)}
)


def one_by_one(image, brightness, contrast, saturation):
    """The usual chain on one image, in float."""
    weights = np.array([0.299, 0.587, 0.114])[:, None, None]
    value = np.clip(image * brightness, 0, 255)
    value = np.clip((value * weights).sum(0).mean() * (1 - contrast) + value * contrast, 0, 255)
    value = np.clip((value * weights).sum(0) * (1 - saturation) + value * saturation, 0, 255)
    return value.round()


def test_jitter_is_the_usual_chain_for_each_image():
    chance = torch.rand(8, 3, generator=torch.Generator().manual_seed(0))
    found = jitter_colors(torch.from_numpy(IMAGES[:8]), chance, strength=0.4).double().numpy()
    factors = (1 + 0.4 * (2 * chance - 1)).double().numpy()
    wanted = np.stack([one_by_one(IMAGES[n].astype(float), *factors[n]) for n in range(8)])
    assert np.abs(found - wanted).max() <= 1  # a half may be rounded either way


def test_nothing_happens_in_the_middle():
    images = torch.from_numpy(IMAGES[:4])
    assert torch.equal(jitter_colors(images, torch.full((4, 3), 0.5), strength=0.4), images)


def test_erased_shares_and_places():
    n = 4000
    chance = torch.rand(n, 5, generator=torch.Generator().manual_seed(0))
    gone = erase_boxes(torch.ones(n, 1, 32, 32), chance, share=0.25)[:, 0] == 0
    share = gone.double().mean((1, 2))
    hit = share > 0
    assert hit.double().mean() == pytest.approx(0.25, abs=0.03)
    assert share[hit].min() > 0.01
    assert share[hit].max() < 0.36
    assert gone[:, 0, 0].any()
    assert gone[:, -1, -1].any()
    rows, columns = gone.any(2), gone.any(1)
    assert torch.equal(gone, rows[:, :, None] & columns[:, None, :])  # rectangles


def epoch(augment, **options):
    return list(batches(DATA, "train", batch_size=16, augment=augment, order="rows", **options))


def test_joined_shards_are_the_batch_and_an_epoch_is_entered_in_the_middle():
    augment = Augment(crop_padding=2, flip=True, jitter=0.4, erase=0.5)
    whole = epoch(augment)
    shards = [epoch(augment, rank=rank, world_size=2) for rank in range(2)]
    for place, batch in enumerate(whole):
        assert torch.equal(batch.inputs, torch.cat([shard[place].inputs for shard in shards]))
    assert torch.equal(epoch(augment, start=2)[0].inputs, whole[2].inputs)
    assert not torch.equal(epoch(augment, epoch=1)[0].inputs, whole[0].inputs)


def test_asking_for_erasing_changes_no_crop():
    plain, erased = (epoch(Augment(crop_padding=2, flip=True, erase=share)) for share in (0.0, 1.0))
    for one, two in zip(plain, erased, strict=True):
        kept = two.inputs != 0
        assert torch.equal(one.inputs[kept], two.inputs[kept])
        assert (~kept).any()


@pytest.mark.parametrize("wrong", [{"jitter": 1.5}, {"erase": 2.0}, {"erase": -0.1}])
def test_strengths_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Augment(**wrong)


def test_features_have_no_colors():
    data = from_arrays(np.zeros((20, 3)), np.arange(20) % 2, name="mine")
    with pytest.raises(ValueError, match="no images to crop, flip, cut or color"):
        batches(data, "train", batch_size=4, augment=Augment(erase=0.5))
