"""Image folders, Tiny-ImageNet, ImageNet, ImageNet-LT and VOC 2012, on a handful of tiny files."""

import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError
from equipoise.data import Augment, batches, load
from helpers.official import set_counts

Image = pytest.importorskip("PIL.Image")


def save(path, value, size=(12, 10)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((size[1], size[0], 3), value, np.uint8)).save(path)


def write_classes(root, n=10):
    for number, name in enumerate(("cat", "dog")):
        for k in range(n):
            save(root / name / f"{k}.png", 40 + 80 * number + k)
    return root


@pytest.fixture
def folder(tmp_path):
    return write_classes(tmp_path / "pets")


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_folder_of_classes(folder, in_memory):
    data = load("image_folder", options={"path": folder, "size": 8, "in_memory": in_memory})
    assert data.class_names == ("cat", "dog")
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [12, 2, 2, 4]
    for batch in batches(data, "test", batch_size=3):
        assert tuple(batch.inputs.shape[1:]) == (3, 8, 8)
        pixel = batch.inputs[:, 0, 0, 0] * 0.229 + 0.485
        row = batch.index % 10
        torch.testing.assert_close(pixel * 255, (40 + 80 * batch.targets + row).float(), atol=0.01, rtol=0)


def test_memory_and_stream_give_the_same_batches(folder):
    options = {"path": folder, "size": 8}
    augment = Augment(crop_padding=2, flip=True, mixup=1.0)
    kept, streamed = (load("image_folder", options={**options, "in_memory": flag}) for flag in (True, False))
    for one, two in zip(
        batches(kept, "train", batch_size=5, augment=augment),
        batches(streamed, "train", batch_size=5, augment=augment),
        strict=True,
    ):
        assert torch.equal(one.index, two.index)
        torch.testing.assert_close(one.inputs, two.inputs, rtol=1e-6, atol=1e-6)
        assert torch.equal(one.targets, two.targets)


def test_workers_do_not_change_what_is_read(folder):
    data = load("image_folder", options={"path": folder, "size": 8})
    options = {"batch_size": 4, "augment": Augment(area=0.3, flip=True)}
    alone = list(batches(data, "train", **options))
    helped = list(batches(data, "train", workers=1, **options))
    assert len(alone) == len(helped) == 3
    assert all(torch.equal(one.inputs, two.inputs) for one, two in zip(alone, helped, strict=True))


def test_a_random_part_is_resized(tmp_path):
    ramp = np.arange(64, dtype=np.uint8).repeat(3).reshape(1, 64, 3).repeat(64, 0)
    for k in range(10):
        (tmp_path / "a" / "x").mkdir(parents=True, exist_ok=True)
        Image.fromarray(ramp).save(tmp_path / "a" / "x" / f"{k}.png")
    data = load("image_folder", options={"path": tmp_path / "a", "size": 16})
    batch = next(iter(batches(data, "train", batch_size=6, augment=Augment(area=0.1))))
    widths = (batch.inputs[:, 0, 0, -1] - batch.inputs[:, 0, 0, 0]) * 0.229 * 255
    assert bool((widths > 5).all())
    assert bool((widths < 64).all())
    assert widths.std() > 1


def test_given_splits_are_kept(tmp_path):
    for split in ("train", "tune", "calib", "test"):
        write_classes(tmp_path / split, n=2)
    data = load("image_folder", options={"path": tmp_path, "size": 8})
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [4, 4, 4, 4]


def test_splits_with_other_classes_are_refused(tmp_path):
    write_classes(tmp_path / "train")
    save(tmp_path / "test" / "fox" / "a.png", 3)
    with pytest.raises(DataError, match="Rename the folders"):
        load("image_folder", options={"path": tmp_path})


def test_a_folder_without_images_is_named(tmp_path):
    (tmp_path / "cat").mkdir()
    with pytest.raises(DataError, match="holds no image"):
        load("image_folder", options={"path": tmp_path})
    with pytest.raises(DataError, match="one folder per class"):
        load("image_folder", options={"path": tmp_path / "cat"})


@pytest.mark.parametrize("keep", [0, 20, 46])
def test_a_truncated_image_is_named(folder, keep):
    for file in folder.glob("*/*.png"):
        file.write_bytes(file.read_bytes()[:keep])
    data = load("image_folder", options={"path": folder, "size": 8})
    with pytest.raises(DataError, match=r"\.png"):
        next(iter(batches(data, "train", batch_size=2)))


def test_an_image_that_has_gone_is_named(folder):
    data = load("image_folder", options={"path": folder, "size": 8})
    for file in folder.glob("dog/*.png"):
        file.unlink()
    with pytest.raises(DataError, match="no such file"):
        list(batches(data, "train", batch_size=20))


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    set_counts(monkeypatch, tiny_imagenet=(20, 4))
    base = tmp_path / "tiny-imagenet-200"
    for number, name in enumerate(("n2", "n1")):
        for k in range(10):
            save(base / "train" / name / "images" / f"{name}_{k}.JPEG", 100 * number + 10, (64, 64))
    lines = []
    for k in range(4):
        save(base / "val" / "images" / f"val_{k}.JPEG", 200, (64, 64))
        lines.append(f"val_{k}.JPEG\t{'n1' if k < 3 else 'n2'}\t0\t0\t62\t62")
    (base / "val" / "val_annotations.txt").write_text("\n".join(lines))
    (base / "wnids.txt").write_text("n2\nn1\n")
    return tmp_path


@pytest.mark.parametrize("in_memory", [True, False])
def test_tiny_imagenet(tiny, in_memory):
    data = load("tiny_imagenet", root=tiny, options={"tune": 4, "calib": 4, "in_memory": in_memory})
    assert data.class_names == ("n1", "n2")
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [12, 4, 4, 4]
    assert data.class_counts("test").tolist() == [3, 1]
    assert data.class_counts("tune").tolist() == [2, 2]
    batch = next(iter(batches(data, "test", batch_size=4)))
    assert tuple(batch.inputs.shape) == (4, 3, 64, 64)


def test_tiny_imagenet_with_a_missing_image_is_refused(tiny):
    next((tiny / "tiny-imagenet-200" / "train" / "n1" / "images").iterdir()).unlink()
    with pytest.raises(DataError, match="expected 20 images, got 19"):
        load("tiny_imagenet", root=tiny)


def test_tiny_imagenet_with_a_wrong_annotation_names_the_line(tiny):
    (tiny / "tiny-imagenet-200" / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn1\nval_1.JPEG\tn9")
    with pytest.raises(DataError, match="line 2"):
        load("tiny_imagenet", root=tiny)


@pytest.fixture
def imagenet(tmp_path, monkeypatch):
    set_counts(monkeypatch, imagenet=(20, 20))
    set_counts(monkeypatch, imagenet_lt=(4, 3))
    for part in ("train", "val"):
        write_classes(tmp_path / "imagenet" / part)
    lists = tmp_path / "imagenet_lt"
    lists.mkdir()
    for part, source, n in (("train", "train", 4), ("val", "train", 4), ("test", "val", 3)):
        start = 4 if part == "val" else 0
        rows = [f"{source}/{'cat' if k % 2 else 'dog'}/{k}.png {k % 2}" for k in range(start, start + n)]
        (lists / f"ImageNet_LT_{part}.txt").write_text("\n".join(rows))
    return tmp_path


def test_imagenet_holds_out_from_the_official_validation_images(imagenet):
    data = load("imagenet", root=imagenet, options={"size": 8, "resize": 10, "tune": 2, "calib": 2})
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [20, 2, 2, 16]
    assert data.rows("train").tolist() == list(range(20))
    batch = next(iter(batches(data, "test", batch_size=4)))
    assert tuple(batch.inputs.shape) == (4, 3, 8, 8)


def test_imagenet_cannot_be_downloaded(imagenet):
    with pytest.raises(DataError, match=r"image-net\.org"):
        load("imagenet", root=imagenet, download=True)


def test_unsorted_validation_images_are_refused(imagenet):
    save(imagenet / "imagenet" / "val" / "fox" / "a.png", 1)
    with pytest.raises(DataError, match="Sort the validation images"):
        load("imagenet", root=imagenet)


def test_imagenet_lt_follows_the_lists(imagenet):
    data = load("imagenet_lt", root=imagenet, options={"size": 8, "resize": 8})
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [4, 2, 2, 3]
    assert data.inputs.paths[:2] == ("train/dog/0.png", "train/cat/1.png")
    batch = next(iter(batches(data, "train", batch_size=4, order="rows")))
    assert batch.targets.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("line", ["train/cat/0.png", "0", "train/cat/0.png x", ""])
def test_a_damaged_list_names_the_line(imagenet, line):
    (imagenet / "imagenet_lt" / "ImageNet_LT_train.txt").write_text(f"a.png 0\n{line}\nb.png 1")
    with pytest.raises(DataError, match="line 2"):
        load("imagenet_lt", root=imagenet)


@pytest.fixture
def voc(tmp_path, monkeypatch):
    set_counts(monkeypatch, voc2012=(8, 3))
    base = tmp_path / "VOCdevkit" / "VOC2012"
    (base / "ImageSets" / "Segmentation").mkdir(parents=True)
    (base / "SegmentationClass").mkdir()
    names = [f"2007_{k:06d}" for k in range(11)]
    for k, name in enumerate(names):
        save(base / "JPEGImages" / f"{name}.jpg", 10 * k, (12, 9))
        mask = np.full((9, 12), k, np.uint8)
        mask[0], mask[:, 0] = 255, 20
        image = Image.fromarray(mask)
        image.putpalette([value for value in reversed(range(256)) for _ in range(3)])
        image.save(base / "SegmentationClass" / f"{name}.png")
    for part, rows in (("train", names[:8]), ("val", names[8:])):
        (base / "ImageSets" / "Segmentation" / f"{part}.txt").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_voc_gives_masks_padded_with_the_label_that_is_none(voc):
    data = load("voc2012", root=voc, options={"size": 16, "tune": 2, "calib": 2})
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [4, 2, 2, 3]
    assert data.n_classes == 21
    batch = next(iter(batches(data, "test", batch_size=3)))
    assert tuple(batch.inputs.shape) == (3, 3, 16, 16)
    assert tuple(batch.targets.shape) == (3, 16, 16)
    assert batch.targets.dtype == torch.int64
    assert batch.targets[1, 5, 5].item() == 9
    assert batch.targets[1, 5, 0].item() == 20
    assert bool((batch.targets[:, 9:] == 255).all())
    assert bool((batch.targets[:, :, 12:] == 255).all())


def test_masks_follow_their_images(voc):
    data = load("voc2012", root=voc, options={"size": 16, "tune": 2, "calib": 2})
    plain = next(iter(batches(data, "train", batch_size=4)))
    augment = Augment(crop_padding=3, flip=True)
    moved = next(iter(batches(data, "train", batch_size=4, augment=augment)))
    assert torch.equal(plain.index, moved.index)
    assert not torch.equal(plain.targets, moved.targets)
    for k in range(4):
        # Image k is one color where its mask is a class; wherever it went, mask and image went together.
        inside = moved.targets[k] == int(plain.index[k])
        colors = (moved.inputs[k, 0] * 0.229 + 0.485)[inside] * 255
        assert bool(inside.any())
        assert float((colors - 10 * int(plain.index[k])).abs().max()) < 4


def test_random_parts_of_masks_stay_labels(voc):
    data = load("voc2012", root=voc, options={"size": 16, "tune": 2, "calib": 2})
    batch = next(iter(batches(data, "train", batch_size=4, augment=Augment(area=0.2))))
    allowed = {*batch.index.tolist(), 20, 255}
    assert set(batch.targets.unique().tolist()) <= allowed


def test_a_mask_of_another_size_is_refused(voc):
    for file in (voc / "VOCdevkit" / "VOC2012" / "SegmentationClass").iterdir():
        Image.fromarray(np.zeros((5, 5), np.uint8)).save(file)
    data = load("voc2012", root=voc, options={"size": 16, "tune": 2, "calib": 2})
    with pytest.raises(DataError, match="size of its image"):
        next(iter(batches(data, "test", batch_size=1)))


def test_images_larger_than_the_canvas_are_refused(voc):
    data = load("voc2012", root=voc, options={"size": 8, "tune": 2, "calib": 2})
    with pytest.raises(DataError, match="larger size"):
        next(iter(batches(data, "test", batch_size=1)))


def test_mixup_of_masks_is_refused(voc):
    data = load("voc2012", root=voc, options={"size": 16, "tune": 2, "calib": 2})
    with pytest.raises(ValueError, match="mixup"):
        batches(data, "train", batch_size=2, augment=Augment(mixup=1.0))


def test_a_list_that_is_cut_off_is_named(voc):
    file = voc / "VOCdevkit" / "VOC2012" / "ImageSets" / "Segmentation" / "train.txt"
    file.write_text("\n".join(file.read_text().split()[:5]))
    with pytest.raises(DataError, match=r"train\.txt: expected 8 names, got 5"):
        load("voc2012", root=voc)


@pytest.mark.parametrize("name", ["tiny_imagenet", "imagenet", "imagenet_lt", "voc2012"])
def test_nothing_there_says_what_to_put_where(tmp_path, name):
    with pytest.raises(DataError, match=f"{name}: not found in .* Put there"):
        load(name, root=tmp_path)
