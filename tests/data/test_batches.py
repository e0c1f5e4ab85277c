"""Batches: every row once, the same after a resume, the same with several processes."""

import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError, SplitError
from equipoise.data import Augment, batches, from_arrays
from equipoise.data.ordering import bucket_order, shard_bounds

EVERYTHING = Augment(crop_padding=2, flip=True, cutout=3, mixup=0.4)


def images(n=50):
    random = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (n, 3, 8, 8), dtype=torch.uint8, generator=random)
    return from_arrays(pixels, torch.arange(n) % 5, name="toy", mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2))


def same(one, two):
    return all(torch.equal(getattr(one, part), getattr(two, part)) for part in ("inputs", "targets", "index"))


def test_every_row_of_the_split_comes_once_with_its_label():
    data = images()
    seen = list(batches(data, "train", batch_size=7))
    index = torch.cat([batch.index for batch in seen])
    assert sorted(index.tolist()) == data.rows("train").tolist()
    assert torch.equal(torch.cat([batch.targets for batch in seen]), data.labels[index])
    assert [len(batch) for batch in seen] == [7, 7, 7, 7, 2]
    assert len(batches(data, "train", batch_size=7)) == 5
    assert len(batches(data, "train", batch_size=7, drop_last=True)) == 4


def test_train_is_shuffled_anew_each_epoch_and_test_is_in_order():
    data = images()

    def order(split, **options):
        return torch.cat([batch.index for batch in batches(data, split, batch_size=8, **options)]).tolist()

    assert order("train", epoch=0) != order("train", epoch=1)
    assert order("train", epoch=1) == order("train", epoch=1)
    assert order("train", seed=1) != order("train", seed=0)
    assert order("test") == data.rows("test").tolist()
    assert order("train", order="rows") == data.rows("train").tolist()


def test_an_order_is_written_down():
    first = next(iter(batches(images(), "train", batch_size=6, seed=3, epoch=2)))
    assert first.index.tolist() == WRITTEN_DOWN


WRITTEN_DOWN = [6, 31, 24, 32, 14, 8]


@pytest.mark.parametrize("augment", [None, EVERYTHING])
def test_an_epoch_entered_in_the_middle_goes_on_as_if_never_left(augment):
    data = images()
    straight = list(batches(data, "train", batch_size=6, seed=1, epoch=4, augment=augment))
    resumed = list(batches(data, "train", batch_size=6, seed=1, epoch=4, augment=augment, start=3))
    assert len(resumed) == len(straight) - 3
    assert all(same(one, two) for one, two in zip(straight[3:], resumed, strict=True))


@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("augment", [None, Augment(crop_padding=2, flip=True, cutout=3), EVERYTHING])
def test_joined_shards_are_the_batches_of_one_process(world_size, augment):
    data = images()
    options = {"batch_size": 8, "seed": 2, "epoch": 1, "augment": augment}
    whole = list(batches(data, "train", **options))
    shards = [
        list(batches(data, "train", rank=r, world_size=world_size, **options)) for r in range(world_size)
    ]
    assert {len(shard) for shard in shards} == {len(whole)}
    for step, batch in enumerate(whole):
        for part in ("inputs", "targets", "index"):
            joined = torch.cat([getattr(shard[step], part) for shard in shards])
            torch.testing.assert_close(
                joined,
                getattr(batch, part),
                rtol=1e-6,
                atol=1e-6,
                msg=lambda m, at=(step, part): f"{at}: {m}",
            )


def test_shards_are_even():
    for n in range(12):
        bounds = [shard_bounds(n, rank=rank, world_size=5) for rank in range(5)]
        sizes = [high - low for low, high in bounds]
        assert sum(sizes) == n
        assert max(sizes) - min(sizes) <= 1


def test_images_are_normalized_channels_last_and_the_source_stays():
    data = images()
    before = data.inputs.clone()
    batch = next(iter(batches(data, "test", batch_size=4)))
    expected = (data.inputs[batch.index].float() / 255 - 0.5) / 0.2
    torch.testing.assert_close(batch.inputs, expected, atol=1e-6, rtol=0)
    assert batch.inputs.is_contiguous(memory_format=torch.channels_last)
    list(batches(data, "train", batch_size=8, augment=EVERYTHING))
    assert torch.equal(data.inputs, before)


def test_augmentation_differs_between_epochs_and_flips_about_half():
    flat = from_arrays(
        torch.arange(8, dtype=torch.uint8).view(1, 1, 1, 8).repeat(2000, 1, 1, 1),
        torch.arange(2000) % 2,
        name="ramp",
    )
    batch = next(iter(batches(flat, "train", batch_size=1200, augment=Augment(flip=True))))
    flipped = float((batch.inputs[:, 0, 0, 0] > batch.inputs[:, 0, 0, 7]).float().mean())
    # A fair coin of 1,200 throws: six standard deviations are 0.087.
    assert abs(flipped - 0.5) < 0.087
    other = next(
        iter(batches(flat, "train", batch_size=1200, epoch=1, augment=Augment(flip=True), order="rows"))
    )
    again = next(
        iter(batches(flat, "train", batch_size=1200, epoch=2, augment=Augment(flip=True), order="rows"))
    )
    assert not torch.equal(other.inputs, again.inputs)


def test_every_crop_offset_occurs_about_equally_often():
    dot = torch.zeros(4000, 1, 5, 5, dtype=torch.uint8)
    dot[:, :, 2, 2] = 255
    data = from_arrays(dot, torch.arange(4000) % 2, name="dot")
    batch = next(iter(batches(data, "train", batch_size=2400, augment=Augment(crop_padding=1))))
    where = batch.inputs[:, 0].flatten(1).argmax(1)
    counts = torch.bincount(where, minlength=25).view(5, 5)[1:4, 1:4]
    assert int(counts.sum()) == 2400
    # 2,400 / 9 = 267 each; six standard deviations are 92.
    assert int((counts - 2400 / 9).abs().max()) < 92


def test_mixup_gives_probabilities():
    batch = next(iter(batches(images(), "train", batch_size=10, augment=Augment(mixup=1.0))))
    assert tuple(batch.targets.shape) == (10, 5)
    torch.testing.assert_close(batch.targets.sum(1), torch.ones(10))


@pytest.mark.parametrize("way", ["mixup", "cutmix"])
def test_shards_of_a_mixed_batch_join_to_one_batch(way):
    options = {"batch_size": 10, "augment": Augment(**{way: 1.0})}
    whole = next(iter(batches(images(), "train", **options)))
    parts = [next(iter(batches(images(), "train", rank=rank, world_size=3, **options))) for rank in range(3)]
    for name in ("inputs", "targets", "index"):
        torch.testing.assert_close(torch.cat([getattr(part, name) for part in parts]), getattr(whole, name))


def test_regmixup_is_the_batch_and_its_mixture():
    data = images()
    plain = next(iter(batches(data, "train", batch_size=10)))
    mixed = next(iter(batches(data, "train", batch_size=10, augment=Augment(mixup=20.0))))
    both = next(iter(batches(data, "train", batch_size=10, augment=Augment(regmixup=20.0))))
    assert torch.equal(both.inputs, torch.cat([plain.inputs, mixed.inputs]))
    assert torch.equal(both.targets[:10].argmax(1), plain.targets)
    assert torch.equal(both.targets[10:], mixed.targets)
    assert torch.equal(both.index, torch.cat([plain.index, plain.index]))


def test_regmixup_of_shards_holds_the_same_rows():
    options = {"batch_size": 10, "augment": Augment(regmixup=20.0)}
    whole = next(iter(batches(images(), "train", **options)))
    parts = [next(iter(batches(images(), "train", rank=rank, world_size=2, **options))) for rank in range(2)]
    joined = torch.cat(
        [part.inputs[: len(part) // 2] for part in parts] + [part.inputs[len(part) // 2 :] for part in parts]
    )
    torch.testing.assert_close(joined, whole.inputs)


def test_features_cannot_be_cut():
    data = from_arrays(torch.zeros(20, 2), torch.arange(20) % 2, name="f")
    with pytest.raises(ValueError, match="holds no images"):
        batches(data, "train", batch_size=4, augment=Augment(cutmix=1.0))


def test_visited_rows_only():
    data = images()
    indices = data.rows("train")[::3]
    index = torch.cat([batch.index for batch in batches(data, "train", batch_size=4, indices=indices)])
    assert sorted(index.tolist()) == indices.tolist()


@pytest.mark.parametrize("row", [0, 49, 500, -1])
def test_visiting_rows_of_another_split_is_refused(row):
    data = images()
    outside = [r for r in (row,) if r not in data.rows("train").tolist()] or [int(data.rows("test")[0])]
    with pytest.raises(SplitError, match="indices"):
        batches(data, "train", batch_size=4, indices=torch.tensor(outside))


def test_features_are_standardized():
    data = from_arrays(
        torch.arange(40.0).view(20, 2), torch.arange(20) % 2, name="f", mean=(1.0, 2.0), std=(2.0, 4.0)
    )
    batch = next(iter(batches(data, "test", batch_size=2)))
    expected = (data.inputs[batch.index] - torch.tensor([1.0, 2.0])) / torch.tensor([2.0, 4.0])
    torch.testing.assert_close(batch.inputs, expected, rtol=1e-6, atol=1e-6)


def test_batches_move_to_a_device():
    batch = next(iter(batches(images(), "train", batch_size=4))).to("meta")
    assert batch.inputs.device.type == batch.targets.device.type == batch.index.device.type == "meta"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 4, "start": -1}, "start"),
        ({"batch_size": 4, "rank": 2, "world_size": 2}, "rank"),
        ({"batch_size": 4, "order": "shufled"}, "shuffled"),
        ({"batch_size": 4, "augment": Augment(area=0.5)}, "crop_padding"),
        ({"batch_size": 4, "order": "length"}, "has none"),
    ],
)
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        batches(images(), "train", **wrong)


def test_images_cannot_be_cut_from_features():
    data = from_arrays(torch.zeros(20, 2), torch.arange(20) % 2, name="f")
    with pytest.raises(ValueError, match="no images"):
        batches(data, "train", batch_size=4, augment=Augment(flip=True))


def test_an_epoch_without_a_full_batch_is_refused():
    with pytest.raises(DataError, match="smaller"):
        batches(images(), "train", batch_size=1000, drop_last=True)


def test_buckets_keep_every_document_and_make_pure_batches():
    lengths = np.arange(1000)[::-1] % 317
    order = bucket_order(lengths, batch_size=10, seed=0, epoch=0)
    assert sorted(order.tolist()) == list(range(1000))
    spread = np.ptp(lengths[order].reshape(100, 10), axis=1).mean()
    random = np.ptp(lengths[np.random.default_rng(0).permutation(1000)].reshape(100, 10), axis=1).mean()
    assert spread < random / 20
