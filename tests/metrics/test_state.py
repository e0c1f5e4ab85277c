import copy
import multiprocessing

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.core.bins import bin_edges, lower_edges, precision_of
from equipoise.core.errors import DataError, SplitError
from equipoise.metrics import CalibrationState, accumulate
from equipoise.metrics.accumulate import sum_rows
from equipoise.metrics.sums import Sums
from equipoise.metrics.tensors import as_plain_batch, flat_batch
from equipoise.metrics.values import state_metrics
from helpers.backends import go
from helpers.daily import daily
from helpers.metric_samples import draw, rows, softmax, weights_for


@pytest.fixture(scope="module", params=["compiled", "fallback"], autouse=True)
def _way(request):
    yield from go(request.param)


def parts(state):
    return {name: np.array(part) for name, part in state.sums.parts().items()}


def assert_same(one, two, **tolerance):
    for name, part in one.items():
        np.testing.assert_allclose(part, two[name], err_msg=name, **tolerance)


def by_torch(probs, labels, weights=None, *, closed="right", n_bins=15, nll=None):
    given = torch.as_tensor(probs)
    batch = flat_batch(given, torch.as_tensor(labels), weights, None, is_logits=False)
    if nll is not None:
        batch = batch._replace(loss=nll, impossible=torch.tensor(0))
    template = Sums(n_classes=given.shape[1], n_bins=n_bins, n_ranks=5, n_fine=4096)
    edges = torch.from_numpy(lower_edges(n_bins, closed, precision_of(given)))
    return sum_rows(batch, template, edges).parts()


@given(
    rows(max_classes=5).flatmap(lambda r: st.tuples(st.just(r), weights_for(len(r[1])))),
    st.integers(1, 12),
    st.sampled_from(["right", "left"]),
)
def test_kernel_equals_torch_on_ties_and_edges(sample, n_bins, closed):
    (probs, labels), weight = sample
    state = CalibrationState(probs.shape[1], n_bins=n_bins, closed=closed)
    state.update(probs=probs, labels=labels, weights=weight)
    want = by_torch(probs, labels, weight, n_bins=n_bins, closed=closed)
    assert_same(parts(state), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("weighted", [False, True])
# Around every length at which blocks of 8 and 16 lanes and words of 64 bits begin or end.
@pytest.mark.parametrize("k", [2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 79, 80, 129])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernel_equals_torch(dtype, k, weighted, closed):
    probs, labels = draw(700, k, spread=2.5)
    probs = torch.tensor(probs, dtype=dtype)
    weight = np.random.default_rng(1).random(700) if weighted else None
    state = CalibrationState(k, closed=closed)
    state.update(probs=probs, labels=labels, weights=weight)
    precise = dtype == torch.float64
    want = by_torch(probs, labels, weight, closed=closed)
    assert_same(parts(state), want, rtol=1e-9 if precise else 2e-6, atol=1e-10 if precise else 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("k", [2, 8, 15, 16, 30, 65])
def test_logits_equal_their_softmax(dtype, k):
    probs, labels = draw(500, k)
    logits = torch.tensor(np.log(probs)).to(dtype)
    exact = torch.log_softmax(logits.double(), dim=1)
    state = CalibrationState(k)
    state.update(logits=logits, labels=labels)
    nll = -exact.gather(1, torch.as_tensor(labels)[:, None])[:, 0]
    want = by_torch(exact.exp(), labels, nll=nll)
    assert_same(parts(state), want, rtol=5e-6, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 63, 64, 65, 129])
@pytest.mark.parametrize("k", [2, 5, 40])
def test_any_number_of_rows(n, k):
    probs, labels = draw(n, k)
    state = CalibrationState.of(Predictions(probs=probs, labels=labels))
    assert_same(parts(state), by_torch(probs, labels), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_the_true_class_anywhere_among_equals_ranks_by_its_place(kind, dtype):
    k = 37
    scores = np.zeros((k, k), dtype) if kind == "logits" else np.full((k, k), 1 / k, dtype)
    state = CalibrationState(k, n_ranks=k)
    state.update(**{kind: scores}, labels=np.arange(k))
    np.testing.assert_array_equal(state.sums.ranks, [1.0] * k + [0.0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("device_way", [False, True])
def test_classes_without_probability_are_ranked_by_their_logits(dtype, device_way):
    logits = torch.zeros(1, 20, dtype=dtype)
    logits[0, 3], logits[0, 15], logits[0, 9] = 9000.0, 5000.0, 4000.0
    state = CalibrationState(20)
    if device_way:
        state._update_on_device(logits, torch.tensor([9]), None, None, is_logits=True)
    else:
        state.update(logits=logits, labels=[9])
    np.testing.assert_array_equal(state.sums.ranks, [0, 0, 1, 0, 0, 0])


def test_a_negative_zero_is_a_zero():
    probs = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    with_signs = np.where(probs == 0, -0.0, probs)
    one = CalibrationState.of(Predictions(probs=probs, labels=[1, 2]))
    two = CalibrationState.of(Predictions(probs=with_signs, labels=[1, 2]))
    assert_same(parts(one), parts(two), rtol=0, atol=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.25, 7.0])
@pytest.mark.parametrize("k", [3, 16, 100])
@pytest.mark.parametrize("rows", [30, 3000])
def test_nothing_is_added_if_a_row_was_changed_after_it_was_checked(bad, k, rows, monkeypatch):
    monkeypatch.setattr(accumulate, "_PART", 10 * k)
    scores = np.full((rows, k), 1 / k, np.float32)
    predictions, state = Predictions(probs=scores, labels=np.zeros(rows, int)), CalibrationState(k)
    scores[rows - 10, k - 1] = bad
    with pytest.raises(DataError, match=f"row {rows - 10} is not a probability distribution"):
        state.update(predictions)
    assert state.n_samples == 0
    assert not state.sums.floats.any()


@pytest.mark.parametrize("weighted", daily([False, True], keep=[True]))
@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("k", daily([3, 100], keep=[3]))
def test_any_number_of_threads_and_batches_give_the_same(k, kind, weighted, set_threads):
    n = 300_000 // k  # enough for several threads to share
    probs, labels = draw(n, k)
    scores = {kind: (np.log(probs) if kind == "logits" else probs).astype(np.float32)}
    weights = np.random.default_rng(0).random(n) if weighted else None
    found = {}
    for n_threads in (1, 2, 5):
        set_threads(n_threads)
        state = CalibrationState(k)
        for _ in range(2):
            state.update(**scores, labels=labels, weights=weights)
        found[n_threads] = parts(state)
    for n_threads in (2, 5):
        # Columns are summed in the precision of the scores for some dozens of rows at a time, whichever these are.
        classwise = [numbers.pop("classwise") for numbers in (found[n_threads], found[1].copy())]
        np.testing.assert_allclose(*classwise, rtol=1e-7, atol=1e-9)
        assert_same(found[n_threads], found[1], rtol=1e-11, atol=1e-9)
        for name in ("rows", "impossible"):
            assert np.array_equal(found[n_threads][name], found[1][name])


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("n_before", [0, 1])
def test_memory_that_was_changed_after_the_checks_adds_nothing(layout, n_before):
    probs, labels = draw(200, 4)
    probs = np.array(probs, order="C" if layout == "rows" else "F")
    predictions = Predictions(probs=probs, labels=labels)
    state = CalibrationState(4)
    for _ in range(n_before):
        state.update(predictions)
    before = parts(state)
    probs[150, 2] = np.nan
    with pytest.raises(ValueError, match="row 150 is not a probability distribution"):
        state.update(predictions)
    assert_same(parts(state), before, rtol=0, atol=0)
    assert state.n_samples == 200 * n_before


@pytest.mark.parametrize("label", [-100, 4, 10**12])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_labels_that_were_changed_after_the_checks_add_nothing(kind, label):
    probs, labels = draw(200, 4)
    predictions = Predictions(**{kind: probs}, labels=labels)
    state = CalibrationState(4)
    state.update(predictions)
    before = parts(state)
    labels[150] = label
    with pytest.raises(ValueError, match=rf"`labels` must lie in \[0, 4\), got {label} in row 150"):
        state.update(predictions)
    assert_same(parts(state), before, rtol=0, atol=0)


@pytest.mark.parametrize("is_logits", [False, True])
def test_one_column_equals_two(is_logits):
    rng = np.random.default_rng(0)
    column, labels = rng.normal(0, 2, 300), rng.integers(0, 2, 300)
    one, two = CalibrationState(2), CalibrationState(2)
    if is_logits:
        one.update(logits=column, labels=labels)
        two.update(logits=np.stack([0 * column, column], 1), labels=labels)
    else:
        positive = 1 / (1 + np.exp(-column))
        one.update(probs=positive[:, None], labels=labels)
        two.update(probs=np.stack([1 - positive, positive], 1), labels=labels)
    assert_same(parts(one), parts(two), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("is_logits", [False, True])
def test_dense_outputs_equal_their_rows(is_logits):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 4, 5))
    labels = rng.integers(0, 3, (2, 4, 5))
    labels[0, 0, :3] = 255
    kept = labels.reshape(-1) != 255
    flat = np.moveaxis(logits, 1, -1).reshape(-1, 3)[kept]
    dense, plain = CalibrationState(3), CalibrationState(3)
    probs = np.moveaxis(softmax(np.moveaxis(logits, 1, -1).reshape(-1, 3)).reshape(2, 4, 5, 3), -1, 1)
    scores = {"logits": logits} if is_logits else {"probs": probs}
    dense.update(**scores, labels=labels, ignore_index=255)
    plain.update(
        **({"logits": flat} if is_logits else {"probs": softmax(flat)}), labels=labels.reshape(-1)[kept]
    )
    assert dense.n_samples == kept.sum() == 37
    assert_same(parts(dense), parts(plain), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("is_logits", [False, True])
@pytest.mark.parametrize("shape", ["column", "rows", "dense"])
def test_the_way_of_the_gpu_equals_the_kernel(shape, is_logits):
    rng = np.random.default_rng(0)
    size = {"column": (40,), "rows": (40, 3), "dense": (8, 3, 5)}[shape]
    logits = torch.tensor(rng.normal(size=size))
    k = 2 if shape == "column" else 3
    labels = torch.tensor(rng.integers(0, k, (8, 5) if shape == "dense" else 40))
    labels.view(-1)[3] = -100
    weights = torch.tensor(rng.random(len(logits)))
    scores = logits if is_logits else (torch.sigmoid(logits) if k == 2 else torch.softmax(logits, 1))
    there, here = CalibrationState(k), CalibrationState(k)
    name = "logits" if is_logits else "probs"
    here.update(**{name: scores}, labels=labels, weights=weights, ignore_index=-100)
    damaged = scores.clone()
    if shape == "rows":
        damaged[3] = torch.nan
    there._update_on_device(damaged, labels, weights, -100, is_logits=is_logits)
    assert_same(parts(there), parts(here), rtol=1e-9, atol=1e-9)


def test_the_way_of_the_gpu_checks_shapes():
    state = CalibrationState(3)
    with pytest.raises(ValueError, match="one-hot: pass labels"):
        state._update_on_device(torch.zeros(3, 3), torch.eye(3).long(), None, None, is_logits=True)
    with pytest.raises(ValueError, match="Several labels per row are not supported"):
        state._update_on_device(torch.zeros(4, 3), torch.ones(4, 3).long(), None, None, is_logits=True)
    with pytest.raises(ValueError, match="one value per row"):
        state._update_on_device(torch.zeros(4, 3), torch.zeros(4).long(), torch.ones(3), None, is_logits=True)
    with pytest.raises(ValueError, match="a state of its own"):
        state._update_on_device(torch.zeros(4, 2), torch.zeros(4).long(), None, None, is_logits=True)


@given(rows(min_rows=3), st.integers(1, 5))
def test_merging_and_batches_equal_the_whole(sample, step):
    probs, labels = sample
    k = probs.shape[1]
    whole, batches, merged = (CalibrationState(k) for _ in range(3))
    whole.update(probs=probs, labels=labels)
    for start in range(0, len(labels), step):
        piece = Predictions(probs=probs[start : start + step], labels=labels[start : start + step])
        batches.update(piece)
        merged.merge(CalibrationState.of(piece))
    assert_same(parts(batches), parts(whole), rtol=1e-12, atol=1e-12)
    assert_same(parts(merged), parts(whole), rtol=1e-12, atol=1e-12)
    assert np.array_equal(batches.sums.rows, whole.sums.rows)


@given(rows(), st.integers(1, 40), st.sampled_from(["right", "left"]))
def test_every_row_is_in_one_bin(sample, n_bins, closed):
    probs, labels = sample
    state = CalibrationState(probs.shape[1], n_bins=n_bins, closed=closed)
    state.update(probs=probs, labels=labels)
    assert int(state.sums.rows.sum()) == state.n_samples == len(labels)
    assert state.curve().weight.sum() == len(labels)
    np.testing.assert_allclose([c.weight.sum() for c in state.class_curves()], len(labels))
    assert min(c.weight.min() for c in state.class_curves()) >= 0


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("n_bins", [1, 2, 10, 15])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_zero_one_and_every_edge_in_every_precision(dtype, n_bins, closed):
    edges = torch.from_numpy(bin_edges(n_bins)).to(dtype)
    confidence = (
        torch.cat(
            [
                edges,
                torch.nextafter(edges, edges * 0 + 2).clamp_max(1),
                torch.nextafter(edges, edges * 0 - 1).clamp_min(0),
            ]
        )
        if dtype in (torch.float32, torch.float64)
        else edges
    )
    exact = confidence.double().numpy()
    want = np.searchsorted(lower_edges(n_bins, closed, precision_of(edges)), exact, side="left") - 1
    top = CalibrationState(0, n_bins=n_bins, closed=closed)
    zeros = torch.zeros(len(exact), dtype=torch.int64)
    top.update(predicted=zeros, confidence=confidence, labels=zeros)
    counts = np.bincount(want, minlength=n_bins)
    assert top.curve().weight.tolist() == counts.tolist()
    # The same numbers as probabilities of the positive class, through the compiled pass.
    binary = CalibrationState(2, n_bins=n_bins, closed=closed)
    binary.update(probs=confidence, labels=zeros)
    assert binary.curve("positive").weight.tolist() == counts.tolist()
    assert binary.n_samples == len(exact)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_calibrated_predictor_scores_zero_at_scale(dtype):
    n = 1_000_000
    labels = (np.arange(n) % 20 == 0).astype(np.int64)
    state = CalibrationState(2)
    state.update(probs=np.broadcast_to(np.array([0.95, 0.05], dtype=dtype), (n, 2)), labels=labels)
    assert state.curve().expected_error() < 1e-6
    assert state_metrics(state)["classwise_ece"] < 1e-6
    assert state.n_samples == n


def test_huge_logits_are_finite():
    for dtype in (np.float32, np.float64):
        state = CalibrationState(3)
        state.update(
            logits=np.array([[1e4, -1e4, 0], [-1e4, 1e4, 0], [0, 0, 0]], dtype=dtype), labels=[1, 1, 2]
        )
        found = state_metrics(state)
        assert np.isfinite(list(found.values())).all()
        assert found["nll"] == pytest.approx((2e4 + 0 + np.log(3)) / 3)
        assert state.n_impossible == 0


def test_negative_zeros_are_zeros():
    plain, signed = CalibrationState(3), CalibrationState(3)
    plain.update(probs=[[0.0, 0.0, 1.0], [0.5, 0.0, 0.5]], labels=[1, 2])
    signed.update(probs=[[0.0, -0.0, 1.0], [0.5, -0.0, 0.5]], labels=[1, 2])
    assert_same(parts(signed), parts(plain), rtol=0, atol=0)


@pytest.mark.parametrize("layout", ["fortran", "strided", "reversed", "read-only"])
def test_any_layout_of_memory(layout):
    probs, labels = draw(300, 7)
    laid = {
        "fortran": np.asfortranarray(probs),
        "strided": np.repeat(probs, 2, axis=0)[::2],
        "reversed": np.ascontiguousarray(probs[::-1])[::-1],
        "read-only": probs.copy(),
    }[layout]
    laid.flags.writeable = layout != "read-only"
    one, two = CalibrationState(7), CalibrationState(7)
    one.update(probs=laid, labels=labels)
    two.update(probs=probs, labels=labels)
    assert_same(parts(one), parts(two), rtol=1e-12, atol=1e-12)
    assert (laid == probs).all()


@pytest.mark.parametrize(
    "bad",
    [
        {"probs": [[0.5, 0.5, 0.0]], "labels": [0]},
        {"probs": [[0.5, 0.6]], "labels": [0]},
        {"probs": [[0.5, 0.5], [np.nan, 0.5]], "labels": [0, 0]},
        {"logits": [[0.5, np.inf]], "labels": [0]},
        {"probs": [[0.5, 0.5]], "labels": [2]},
        {"predicted": [0], "confidence": [0.5], "labels": [0]},
        {"probs": [[0.5, 0.5]], "labels": [0], "weights": [-1.0]},
    ],
)
def test_a_refused_batch_leaves_no_trace(bad):
    state = CalibrationState(2)
    state.update(probs=[[0.9, 0.1]], labels=[0])
    before = parts(state)
    with pytest.raises(ValueError, match=r"."):
        state.update(**bad)
    assert_same(parts(state), before, rtol=0, atol=0)


@pytest.mark.parametrize("first", ["rows", "columns", "top1", "look"])
def test_a_state_begun_in_inference_mode_goes_on_outside_it(first):
    probs, labels = draw(20, 3)
    batches = {
        "rows": {"probs": probs},
        "columns": {"probs": np.asfortranarray(probs)},
        "top1": {"predicted": probs.argmax(1), "confidence": probs.max(1)},
    }
    k = 0 if first == "top1" else 3
    state, other = CalibrationState(k), CalibrationState(k)
    batch = batches.get(first, batches["rows"])
    other.update(**batch, labels=labels)
    with torch.inference_mode():
        if first == "look":
            assert state.n_samples == 0
        else:
            state.update(**batch, labels=labels)
    state.merge(other)
    state.update(**(batches["columns"] if k else batch), labels=labels)
    assert state.n_samples == (40 if first == "look" else 60)


def test_a_pass_that_fails_leaves_an_empty_state(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("equipoise.metrics.accumulate.find_kernel", lambda *_: fail)
    state = CalibrationState(2)
    with pytest.raises(MemoryError):
        state.update(probs=[[0.9, 0.1]], labels=[0])
    assert state.n_samples == 0
    assert not state.sums.floats.any()


def test_a_saved_state_of_other_shapes_is_refused():
    content = CalibrationState(3).state_dict()
    content["sums"]["cells"] = torch.ones(1)
    with pytest.raises(
        ValueError, match=r"expected `cells` of shape \(15, 2, 7\) and type float64, got \(1,\)"
    ):
        CalibrationState.from_state_dict(content)


def test_predictions_come_alone():
    state = CalibrationState(2)
    with pytest.raises(TypeError, match="pass nothing beside"):
        state.update(Predictions(probs=[0.9], labels=[1]), weights=[2.0])


def test_rows_that_fitted_a_calibrator_cannot_be_added():
    raw = Predictions(logits=np.random.default_rng(0).normal(size=(50, 3)), labels=[0] * 50)
    fitted = raw.with_scores(logits=raw.logits / 2, fitted_on=raw.rows)
    with pytest.raises(SplitError, match="Fit on 'calib'"):
        CalibrationState(3).update(fitted)


def test_state_dict_round_trip(tmp_path):
    state = CalibrationState(3, n_bins=7, closed="left", n_ranks=2, n_fine=64)
    state.update(probs=[[0.2, 0.3, 0.5]], labels=[1], weights=[2.0])
    torch.save(state.state_dict(), tmp_path / "state.pt")
    loaded = CalibrationState.from_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert loaded.settings() == state.settings()
    assert_same(parts(loaded), parts(state), rtol=0, atol=0)
    loaded.update(probs=[[0.2, 0.3, 0.5]], labels=[1])
    assert (loaded.n_samples, state.n_samples) == (2, 1)


def test_top1_state_knows_what_it_can():
    probs, labels = draw(200, 4)
    full = Predictions(probs=probs, labels=labels)
    top = Predictions(predicted=full.predicted, confidence=full.confidence, labels=labels, n_classes=4)
    state, whole = CalibrationState.of(top), CalibrationState.of(full)
    found, known = state_metrics(state), state_metrics(whole)
    unknown = {"nll", "brier", "classwise_ece", "brier_calibration", "brier_refinement", "root_brier"}
    assert set(known) - set(found) == unknown
    right = np.where(top.correct, top.confidence, 1 - top.confidence)
    known |= {"correct_nll": -np.log(right).mean(), "correct_brier": ((1 - right) ** 2).mean()}
    for name, value in found.items():
        assert value == pytest.approx(known[name], abs=1e-12)
    with pytest.raises(ValueError, match="Save logits or probabilities"):
        state.class_errors()
    with pytest.raises(ValueError, match="Save logits or probabilities"):
        state.curve("positive")


def test_the_number_of_threads_does_not_matter():
    probs, labels = draw(6000, 60)
    before = torch.get_num_threads()
    found = []
    try:
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            found.append(parts(CalibrationState.of(Predictions(probs=probs, labels=labels))))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert np.array_equal(other["rows"], found[0]["rows"])
        assert_same(other, found[0], rtol=1e-12, atol=1e-9)


def _count_in_child(queue, probs, labels):
    queue.put(CalibrationState.of(Predictions(probs=probs, labels=labels)).n_samples)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_process_does_not_wait_for_threads_it_lacks():
    probs, labels = draw(6000, 60)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    context = multiprocessing.get_context("fork")
    try:
        CalibrationState.of(Predictions(probs=probs, labels=labels))
        queue = context.Queue()
        child = context.Process(target=_count_in_child, args=(queue, probs, labels))
        child.start()
        assert queue.get(timeout=60) == 6000
        child.join(timeout=60)
    finally:
        torch.set_num_threads(before)


def test_one_row_a_missing_class_and_many_classes():
    state = CalibrationState(3)
    state.update(probs=[[0.2, 0.3, 0.5]], labels=[2])
    assert state_metrics(state)["ece"] == pytest.approx(0.5)
    probs, _ = draw(20, 2000, spread=4)
    wide = CalibrationState(2000)
    wide.update(probs=probs, labels=np.zeros(20, int))
    assert_same(parts(wide), by_torch(probs, np.zeros(20, int)), rtol=1e-9, atol=1e-9)


def test_fewer_ranks_do_not_pass_for_top5():
    state = CalibrationState(8, n_ranks=2)
    state.update(probs=np.full((1, 8), 0.125), labels=[3])
    assert "top5_accuracy" not in state_metrics(state)


def test_weights_say_how_many_rows_they_are_worth():
    state = CalibrationState(2)
    state.update(probs=[0.9, 0.8, 0.7], labels=[1, 1, 0], weights=[2.0, 1.0, 1.0])
    assert state.total_weight == 4.0
    assert state.effective_samples == pytest.approx(16 / 6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_classes": 1}, "two classes"),
        ({"n_classes": -3}, "two classes"),
        ({"n_classes": 3, "n_bins": 0}, "field uses 15"),
        ({"n_classes": 3, "closed": "both"}, "'right' or 'left'"),
        ({"n_classes": 3, "n_ranks": 0}, "Leave them"),
    ],
)
def test_refuses_sizes_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        CalibrationState(**arguments)


def test_refuses_to_read_nothing_and_to_merge_what_differs():
    with pytest.raises(ValueError, match="Call update"):
        CalibrationState(2).curve()
    empty = CalibrationState(2)
    empty.update(Predictions(probs=[0.9], labels=[1]).with_weights([0.0]))
    with pytest.raises(ValueError, match="every row has weight zero"):
        empty.class_errors()
    with pytest.raises(ValueError, match="same bins and classes"):
        CalibrationState(2).merge(CalibrationState(2, n_bins=10))


def test_a_copy_is_a_copy():
    state = CalibrationState(2)
    other = copy.deepcopy(state)
    other.update(probs=[0.9], labels=[1])
    assert (state.n_samples, other.n_samples) == (0, 1)
    assert repr(other) == "CalibrationState(n=1, k=2, n_bins=15, closed=right)"


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_plain_tensors_are_taken_as_they_are_and_give_what_predictions_give(kind, dtype):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(50, 4, generator=generator, dtype=dtype)
    scores = scores.softmax(1) if kind == "probs" else 9 * scores
    labels = torch.randint(0, 4, (50,), generator=generator)
    assert as_plain_batch(scores, labels, kind, 4) is not None
    quick, usual = CalibrationState(4), CalibrationState(4)
    quick.update(**{kind: scores}, labels=labels)
    usual.update(Predictions(**{kind: scores}, labels=labels))
    for name, part in usual.sums.parts().items():
        np.testing.assert_array_equal(quick.sums.parts()[name], part)


@pytest.mark.parametrize(
    ("kind", "scores", "labels"),
    [
        ("probs", [[0.5, 0.6], [0.5, 0.5]], [0, 1]),
        ("probs", [[1.0 + 1e-4, -1e-4], [0.5, 0.5]], [0, 1]),
        ("probs", [[1.0 + 1e-4, 0.0], [0.5, 0.5]], [0, 1]),
        ("probs", [[float("nan"), 0.5], [0.5, 0.5]], [0, 1]),
        ("logits", [[float("inf"), 0.5], [0.5, 0.5]], [0, 1]),
        ("logits", [[float("nan"), 0.5], [0.5, 0.5]], [0, 1]),
        ("logits", [[1.0, 0.5], [0.5, 0.5]], [0, 2]),
        ("logits", [[1.0, 0.5], [0.5, 0.5]], [-1, 0]),
        ("logits", [[1.0, 0.5], [0.5, 0.5]], [0]),
        ("logits", [[1.0, 0.5, 0.0], [0.5, 0.5, 0.0]], [0, 1]),
    ],
)
def test_plain_tensors_with_a_fault_are_refused_and_nothing_is_added(kind, scores, labels):
    state = CalibrationState(2)
    with pytest.raises(ValueError):
        state.update(**{kind: torch.tensor(scores)}, labels=torch.tensor(labels))
    assert state.n_samples == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_pass_keeps_predicted_classes_and_confidences(dtype):
    logits = np.random.default_rng(0).normal(size=(3000, 40)).astype(dtype)
    logits[::7, 5] = logits[::7, 3] = logits.max() + 1
    labels = np.arange(3000) % 40
    passed, fresh = (Predictions(logits=logits, labels=labels) for _ in range(2))
    CalibrationState.of(passed)
    assert passed.is_top_known
    assert not fresh.is_top_known
    assert (passed.predicted == fresh.predicted).all()
    assert (passed.confidence == fresh.confidence).all()
    assert not passed.confidence.flags.writeable
