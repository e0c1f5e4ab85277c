"""Dense predictions: sums over images, a sample of pixels, and memory that does not grow."""

import contextlib
import gc

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.calibrators import HistogramBinning, TemperatureScaling, VectorScaling
from equipoise.core.errors import DataError
from equipoise.losses import ClassAdaptiveHeuristicLoss, ClassAdaptiveLoss
from equipoise.metrics import expected_calibration_error, negative_log_likelihood
from equipoise.metrics.values import state_metrics
from equipoise.models import deeplabv3_resnet34, load_published, resnet34
from equipoise.objectives import Supervised
from equipoise.training import Loader, boundary_mask, evaluation, fit, predict, score_dense
from helpers import toys

K, SIDE = 3, 8


def scenes(n, seed=0):
    """Images whose pixels say, with noise, what they are."""
    random = torch.Generator().manual_seed(seed)
    masks = torch.randint(0, K, (n, 2, 2), generator=random).repeat_interleave(4, 1).repeat_interleave(4, 2)
    images = nn.functional.one_hot(masks, K).movedim(-1, 1) + torch.randn(n, K, SIDE, SIDE, generator=random)
    masks[:, 0, 0] = 255
    return list(zip(images.split(4), masks.split(4), strict=True))


def network():
    torch.manual_seed(0)
    return nn.Conv2d(K, K, 1)


def scored(n, **options):
    options = {"n_classes": K, "ignore_index": 255, **options}
    return score_dense(network(), Loader(scenes(n))(**toys.WHERE), **options)


def test_sums_are_those_of_all_pixels():
    scores = scored(10)
    whole = predict(network(), Loader(scenes(10))(**toys.WHERE), ignore_index=255)
    assert scores.state.n_samples == len(whole) == 10 * (SIDE**2 - 1)
    assert scores.state.curve().expected_error() == pytest.approx(expected_calibration_error(whole), abs=1e-9)
    assert scores.near.n_samples + scores.inside.n_samples == scores.state.n_samples


@pytest.mark.parametrize("make", [TemperatureScaling, VectorScaling, HistogramBinning])
def test_pixels_are_scored_after_a_calibrator(make):
    everything = predict(network(), Loader(scenes(10))(**toys.WHERE), ignore_index=255, split="test")
    other = predict(network(), Loader(scenes(6, seed=1))(**toys.WHERE), ignore_index=255, split="calib")
    calibrator = make().fit(other.logits, other.labels)
    scores, before = scored(10, calibrator=calibrator), scored(10)
    after = calibrator(everything)
    assert scores.state.n_samples == len(after)
    assert scores.state.curve().expected_error() == pytest.approx(expected_calibration_error(after), abs=1e-6)
    assert state_metrics(scores.state)["nll"] == pytest.approx(negative_log_likelihood(after), rel=1e-5)
    assert state_metrics(scores.state)["nll"] != state_metrics(before.state)["nll"]
    said, true = after.predicted, after.labels
    both, either = ((said == true) & (said == 1)).sum(), ((said == 1) | (true == 1)).sum()
    assert scores.class_iou[1] == pytest.approx(both / either)
    np.testing.assert_array_equal(scores.sample.logits, before.sample.logits)


def test_iou_by_a_loop():
    scores = scored(6)
    said, true = [], []
    for images, masks in scenes(6):
        said.append(network()(images).argmax(1))
        true.append(masks)
    said, true = torch.cat(said), torch.cat(true)
    for k in range(K):
        known = true != 255
        both = int(((said == k) & (true == k) & known).sum())
        either = int((((said == k) | (true == k)) & known).sum())
        assert scores.class_iou[k] == pytest.approx(both / either)
    assert scores.mean_iou == pytest.approx(scores.class_iou.mean())


def test_intervals_are_over_images():
    low, high = scored(40).intervals()[0]
    assert low < scored(40).mean_iou < high
    classes = scored(40).intervals()[1]
    assert (classes[:, 0] < scored(40).class_iou).all()
    wide, narrow = scored(8).intervals()[0], scored(120).intervals()[0]
    assert narrow[1] - narrow[0] < 0.6 * (wide[1] - wide[0])


def test_boundaries_by_a_loop():
    masks = scenes(3)[0][1]
    found = boundary_mask(masks, reach=2)
    for n, row, column in np.ndindex(*masks.shape):
        around = masks[n, max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3]
        assert bool(found[n, row, column]) == bool((around != masks[n, row, column]).any())


def test_the_sample_is_uniform_stated_and_the_same_again():
    scores = scored(30, n_pixels=600)
    assert len(scores.sample) == 600
    assert scores.share == pytest.approx(600 / scores.state.n_samples)
    images = scores.places // (SIDE**2 - 1)
    counts = np.bincount(images, minlength=30)
    assert counts.min() > 5  # twenty are due to each image
    assert np.array_equal(scored(30, n_pixels=600).places, scores.places)
    whole = predict(network(), Loader(scenes(30))(**toys.WHERE), ignore_index=255)
    place = scores.places
    assert np.allclose(scores.sample.logits, whole.logits[place], atol=1e-6)
    assert negative_log_likelihood(scores.sample) == pytest.approx(negative_log_likelihood(whole), rel=0.15)


def live_bytes():
    """Return what all tensors hold that somebody still holds; some that a compiler left behind hold nothing."""
    held = {}
    for each in gc.get_objects():
        if type(each) is torch.Tensor:
            with contextlib.suppress(RuntimeError):
                held[each.data_ptr()] = each.untyped_storage().nbytes()
    return sum(held.values())


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_images():
    """What is held when a batch is asked for, after four batches and after twenty."""
    held = []

    def images():
        for number in range(20):
            held.append(live_bytes())
            yield scenes(4, seed=number)[0]

    gc.collect()
    rows = (toys.Rows(image, mask, torch.arange(4)) for image, mask in images())
    scores = score_dense(network(), rows, n_classes=K, ignore_index=255, n_pixels=200)
    assert scores.sample.logits.nbytes == 200 * K * 4
    counts = 2 * 8 * K  # intersections and unions of an image, which intervals over images need
    assert max(held[4:]) - held[4] <= 4 * counts * 15, "of sixteen more batches nothing but these is kept"


def test_an_epoch_is_scored_by_a_sample_of_dense_outputs(monkeypatch):
    monkeypatch.setattr(evaluation, "_EPOCH_PIXELS", 150)
    seen = []
    monkeypatch.setattr(
        "equipoise.training.history.tune_scores", lambda predictions: seen.append(len(predictions)) or {}
    )
    objective = Supervised(network(), nn.CrossEntropyLoss(ignore_index=255), recipe=toys.RECIPE)
    fit(objective, scenes(8), epochs=2, tune=scenes(8, seed=1), ignore_index=255, hardware=toys.CPU)
    assert seen == [150, 150]


@pytest.mark.parametrize("make_loss", [ClassAdaptiveLoss, ClassAdaptiveHeuristicLoss])
def test_multipliers_follow_all_pixels_though_an_epoch_is_scored_by_a_sample(monkeypatch, make_loss):
    monkeypatch.setattr(evaluation, "_EPOCH_PIXELS", 50)
    streamed, whole = (make_loss(n_classes=K, margin=0.5, ignore_index=255) for _ in range(2))
    objective = Supervised(network(), streamed)
    tune = scenes(8, seed=1)
    fit(objective, Loader(scenes(8)), epochs=1, tune=Loader(tune), ignore_index=255, quiet=True)
    everything = predict(objective.network(), Loader(tune)(**toys.WHERE), ignore_index=255)
    assert len(everything) == 8 * (SIDE**2 - 1)
    whole.update(torch.tensor(everything.logits), torch.tensor(everything.labels))
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(streamed.state_dict()[name], value, rtol=1e-6, atol=0)


@pytest.mark.parametrize("make_loss", [ClassAdaptiveLoss, ClassAdaptiveHeuristicLoss])
def test_chunks_update_as_all_rows_do_and_may_be_ignored(make_loss):
    random = torch.Generator().manual_seed(0)
    logits, labels = 9 * torch.randn(30, K, generator=random), torch.arange(30) % K
    chunked, whole = (make_loss(n_classes=K, margin=2.0) for _ in range(2))
    void = torch.full((4,), -100)
    for _ in range(2):
        whole.update(logits, labels)
        chunked.update_from([(logits[:7], labels[:7]), (logits[:4], void), (logits[7:], labels[7:])])
        logits = logits + 1
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(chunked.state_dict()[name], value)
    with pytest.raises(ValueError, match="must hold a sample that is not ignored"):
        whole.update_from([(logits[:4], void)])


def test_no_pixel_is_no_score():
    empty = [(torch.zeros(1, K, SIDE, SIDE), torch.full((1, SIDE, SIDE), 255))]
    with pytest.raises(DataError, match="no pixel with a class"):
        score_dense(network(), Loader(empty)(**toys.WHERE), n_classes=K, ignore_index=255)


def test_an_encoder_is_filled_from_a_file_and_its_head_left_aside(tmp_path):
    from equipoise.models.residual import BasicBlock
    from equipoise.models.resnet import make_body

    torch.manual_seed(1)
    published = make_body(BasicBlock, (3, 4, 6, 3), 3, large_images=True).state_dict()
    content = {**published, "fc.weight": torch.zeros(10, 512), "fc.bias": torch.zeros(10)}
    torch.save(content, tmp_path / "resnet34.pt")
    segmentation = deeplabv3_resnet34(K)
    load_published(segmentation.body.encoder, tmp_path / "resnet34.pt")
    for name, value in segmentation.body.encoder.state_dict().items():
        assert torch.equal(value, published[name])
    with pytest.raises(DataError, match=r"conv1\.weight"):
        load_published(segmentation.body.encoder, resnet34().state_dict())  # a stem for small images
