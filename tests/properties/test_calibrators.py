"""Laws that every calibrator of the catalogue keeps; a new entry is tested without a new line here."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from equipoise import Predictions, calibrators
from equipoise.calibrators import CalibrationByGroup, Calibrator, OwnCalibrator, PriorShift, load
from equipoise.calibrators.loading import KINDS
from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import DataError, NotFittedError, SplitError
from equipoise.core.rows import check_disjoint
from helpers.calibration_data import nll, probs, sample

CALIBRATORS = CATALOGUE["calibrators"]

NO_FIT = {"identity", "focal_recovery"}
every = pytest.mark.parametrize("key", list(CALIBRATORS))
fitted_ones = pytest.mark.parametrize("key", sorted(set(CALIBRATORS) - NO_FIT))


def make(key: str) -> Calibrator:
    return CALIBRATORS[key].make()


def fit(
    key: str, n: int = 60, k: int = 3, *, scale: float = 2.0
) -> tuple[Calibrator, np.ndarray, np.ndarray]:
    logits, labels = sample(n, k)
    return make(key).fit(scale * logits, labels), scale * logits, labels


def out(calibrator: Calibrator, logits: np.ndarray) -> np.ndarray:
    """Return probabilities, whatever the calibrator gives."""
    scores = calibrator(logits)
    return probs(scores) if calibrator.gives == "logits" else scores


def test_the_catalogue_and_the_files_know_the_same_calibrators() -> None:
    assert {type(make(key)) for key in CALIBRATORS} == set(KINDS.values())
    assert {kind: one.kind for kind, one in KINDS.items()} == {kind: kind for kind in KINDS}
    public = {
        one for one in vars(calibrators).values() if isinstance(one, type) and issubclass(one, Calibrator)
    }
    assert public - {Calibrator, OwnCalibrator, PriorShift, CalibrationByGroup} == set(
        KINDS.values()
    )  # made by users, not by a spec


@every
def test_never_worse_on_its_own_rows(key: str) -> None:
    for scale in (0.3, 1.0, 3.0):
        calibrator, logits, labels = fit(key, scale=scale)
        result = calibrator.result
        assert result.nll_after <= result.nll_before
        after = -np.log(out(calibrator, logits)[np.arange(len(labels)), labels]).mean()
        assert after == pytest.approx(result.nll_after, abs=1e-9)
        assert result.words


@fitted_ones
def test_unfitted_use_raises(key: str) -> None:
    for use in (
        lambda c: c([[1.0, 0.0]]),
        lambda c: c.result,
        lambda c: c.as_module(),
        lambda c: c.to_artifact(),
    ):
        with pytest.raises(NotFittedError, match=r"fit\(predictions\)"):
            use(make(key))


@every
def test_promises_about_predictions_hold(key: str) -> None:
    calibrator, logits, _ = fit(key, n=300, k=5, scale=3.0)
    after = out(calibrator, logits)
    if calibrator.preserves_accuracy:
        np.testing.assert_array_equal(after.argmax(1), logits.argmax(1))
    if calibrator.preserves_order:
        order = np.argsort(logits, axis=1)
        assert (np.diff(np.take_along_axis(after, order, 1), axis=1) >= -1e-15).all()


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_promises_hold_where_labels_and_predictions_have_nothing_in_common(key: str, dtype: type) -> None:
    """There every calibrator is drawn towards uniform answers, in which all classes tie."""
    logits, labels = sample(400, 3, size=3.0)
    for wrong in (labels[::-1].copy(), (logits.argmax(1) + 1) % 3):
        calibrator = make(key).fit(logits.astype(dtype), wrong)
        if calibrator.preserves_accuracy:
            after = out(calibrator, logits.astype(dtype))
            np.testing.assert_array_equal(after.argmax(1), logits.argmax(1))


@every
def test_it_survives_pickling_and_copying(key: str) -> None:
    calibrator, logits, labels = fit(key)
    module, asked = calibrator.as_module(), torch.from_numpy(logits)
    for again in (pickle.loads(pickle.dumps(calibrator)), copy.deepcopy(calibrator)):
        np.testing.assert_array_equal(again(logits), calibrator(logits))
        assert str(again.result) == str(calibrator.result)
        assert again.fingerprint == Predictions(logits=logits, labels=labels).fingerprint
        assert all(not value.flags.writeable for value in again.result.parameters.values())
    for again in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        assert torch.equal(again(asked), module(asked))


@every
def test_a_pickle_does_not_carry_the_fit_rows(key: str) -> None:
    logits, labels = sample(60, 3)
    calibrator = make(key).fit(logits, labels)
    row = logits[7].tobytes()
    assert row in pickle.dumps(logits)
    assert row not in pickle.dumps(calibrator)


@every
def test_the_module_says_where_it_comes_from(key: str) -> None:
    calibrator, _, _ = fit(key)
    shown = repr(calibrator.as_module())
    assert repr(calibrator) in shown
    assert all(f"{name}=" in shown for name in calibrator.as_module().state_dict())


#: Calibrators whose fit squares logits.
SQUARED = {
    *(
        "temperature",
        "temperature_tva",
        "focal_temperature",
        "svs",
        "sms",
        "vector",
        "matrix",
        "platt",
        "beta",
    ),
    "scaling_binning",
}


@every
@pytest.mark.parametrize("scale", [1e80, 1e160, 1e300])
def test_absurd_logits_give_an_answer_or_a_sentence(key: str, scale: float) -> None:
    logits, labels = sample(60, 3)
    for absurd in (scale * logits, scale * np.sign(logits)):
        if key in SQUARED and scale > 1e150:
            with pytest.raises(DataError, match="squares are finite"):
                make(key).fit(absurd, labels)
        else:
            assert np.isfinite(out(make(key).fit(absurd, labels), absurd)).all()


@every
@pytest.mark.parametrize("weight", [1e200, 1e308])
def test_absurd_weights_are_refused(key: str, weight: float) -> None:
    logits, labels = sample(60, 3)
    with pytest.raises(DataError, match=r"weights.*[Dd]ivide"):
        make(key).fit(logits, labels, np.full(60, weight))


@every
def test_calibrated_predictions_stay_almost_as_they_are(key: str) -> None:
    if key == "focal_recovery":
        pytest.skip("undoes a loss that these predictions were not trained with")
    logits, labels = sample(3000, 3)
    calibrator = make(key).fit(logits, labels)
    assert np.abs(out(calibrator, logits) - probs(logits)).mean() < 0.035


@fitted_ones
def test_a_distorted_model_is_repaired_on_new_rows(key: str) -> None:
    logits, labels = sample(3000, 3)
    fresh, truth = sample(3000, 3, seed=1)
    after = out(make(key).fit(3 * logits, labels), 3 * fresh)
    loss = -np.log(np.maximum(after[np.arange(len(truth)), truth], 1e-12)).mean()
    assert loss < nll(fresh, truth) + 0.25 * (nll(3 * fresh, truth) - nll(fresh, truth))


@every
def test_weight_two_is_two_rows(key: str) -> None:
    logits, labels = sample(50, 3)
    weights = np.arange(50) % 3
    weighted = make(key).fit(2 * logits, labels, weights)
    repeated = make(key).fit(np.repeat(2 * logits, weights, 0), np.repeat(labels, weights))
    np.testing.assert_allclose(out(weighted, logits), out(repeated, logits), atol=1e-7)
    assert weighted.result.nll_after == pytest.approx(repeated.result.nll_after, abs=1e-7)


@every
def test_the_order_of_rows_and_the_names_of_classes_do_not_matter(key: str) -> None:
    calibrator, logits, labels = fit(key)
    rows, classes = np.random.default_rng(0).permutation(len(labels)), np.array([2, 0, 1])
    renamed = np.argsort(classes)[labels]
    other = make(key).fit(logits[rows][:, classes], renamed[rows])
    np.testing.assert_allclose(out(other, logits[:, classes]), out(calibrator, logits)[:, classes], atol=1e-7)


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_answer_has_the_form_of_the_question(key: str, dtype: torch.dtype) -> None:
    calibrator, logits, _ = fit(key)
    reference = calibrator(logits)
    tensor = torch.from_numpy(logits).to(dtype)
    answer = calibrator(tensor)
    assert answer.dtype == dtype
    tolerance = {torch.float16: 0.05, torch.float32: 1e-4, torch.float64: 1e-12}[dtype]
    if calibrator.gives == "probs":  # rounding may cross an edge or climb a cliff
        assert np.median(np.abs(answer.double().numpy() - reference)) < tolerance
    else:
        np.testing.assert_allclose(answer.double().numpy(), reference, atol=tolerance, rtol=tolerance)
    if dtype != torch.float16:
        array = calibrator(tensor.numpy())
        assert array.dtype == tensor.numpy().dtype
        np.testing.assert_allclose(array, answer.numpy(), rtol=tolerance, atol=tolerance)


@every
def test_dense_outputs_are_rows_in_another_shape(key: str) -> None:
    logits, labels = sample(60, 3)
    dense, dense_labels = np.moveaxis(logits.reshape(5, 4, 3, 3), -1, 1), labels.reshape(5, 4, 3)
    flat = make(key).fit(logits, labels)
    calibrator = make(key).fit(dense, dense_labels)
    np.testing.assert_allclose(np.moveaxis(calibrator(dense), 1, -1).reshape(60, 3), flat(logits), atol=1e-12)


@every
def test_one_column_is_two_columns(key: str) -> None:
    logits, labels = sample(80, 2)
    column = logits[:, 1] - logits[:, 0]
    calibrator = make(key).fit(column, labels)
    pair = np.stack([np.zeros(80), column], 1)
    two = calibrator(pair)
    answer = two[:, 1] - two[:, 0] if calibrator.gives == "logits" else two[:, 1]
    np.testing.assert_allclose(calibrator(column), answer, atol=1e-12)
    np.testing.assert_allclose(calibrator(column[:, None])[:, 0], answer, atol=1e-12)
    mapped = calibrator(Predictions(logits=column, labels=labels))
    assert mapped.one_column
    # A calibrator that was given up leaves the scores in their own form.
    scores = mapped.scores if mapped.kind == calibrator.gives else mapped.probs[:, 1]
    np.testing.assert_allclose(scores, answer, atol=1e-12)


@every
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64])
def test_labels_of_any_integer_type(key: str, dtype: type) -> None:
    logits, labels = sample(60, 3)
    assert (
        make(key).fit(logits, labels.astype(dtype)).result.nll_after
        == make(key).fit(logits, labels).result.nll_after
    )


def awkward() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    logits, labels = sample(60, 3)
    separable = 5 * np.eye(3)[labels] + 0.1 * logits
    few, few_labels = sample(4, 10)
    return {
        "one row": (logits[:1], labels[:1]),
        "fewer rows than classes": (few, few_labels),
        "one class only": (logits, np.zeros(60, int)),
        "absent class": (logits[labels != 2], labels[labels != 2]),
        "separable": (separable, labels),
        "wrong everywhere": (separable, (labels + 1) % 3),
        "huge": (1e4 * logits, labels),
        "constant": (np.zeros((60, 3)), labels),
        "saturated": (1e4 * np.eye(3)[labels], labels),
    }


@every
@pytest.mark.parametrize("case", awkward())
def test_awkward_rows_give_finite_probabilities(key: str, case: str) -> None:
    logits, labels = awkward()[case]
    calibrator = make(key).fit(logits, labels)
    result = calibrator.result
    assert np.isfinite([result.nll_before, result.nll_after]).all()
    assert result.nll_after <= result.nll_before
    for asked in (logits, -logits, np.zeros_like(logits), 1e4 * np.sign(logits)):
        after = out(calibrator, asked)
        assert np.isfinite(after).all()
        np.testing.assert_allclose(after.sum(1), 1.0, atol=1e-9)
        assert (after >= 0).all()


@every
@pytest.mark.parametrize("ending", ["json", "safetensors"])
def test_a_saved_calibrator_comes_back_the_same(key: str, ending: str, tmp_path: Path) -> None:
    calibrator, logits, labels = fit(key)
    calibrator.save(tmp_path / f"map.{ending}")
    again = load(tmp_path / f"map.{ending}")
    assert repr(again) == repr(calibrator)
    assert str(again.result) == str(calibrator.result)
    assert again.fingerprint == Predictions(logits=logits, labels=labels).fingerprint
    np.testing.assert_array_equal(again(logits), calibrator(logits))


@every
def test_the_module_agrees_and_exports(key: str) -> None:
    calibrator, logits, _ = fit(key)
    module = calibrator.as_module()
    asked = torch.from_numpy(logits)
    np.testing.assert_allclose(module(asked).numpy(), calibrator(logits), atol=1e-12)
    dense = torch.from_numpy(np.moveaxis(logits.reshape(5, 12, 3), -1, 1).copy())
    np.testing.assert_allclose(module(dense).numpy(), calibrator(dense).numpy(), atol=1e-12)
    assert not list(module.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = {0: torch.export.Dim("batch", min=2)}
        exported = torch.export.export(module, (asked,), dynamic_shapes=(batch,)).module()
    np.testing.assert_allclose(exported(asked[:7]).numpy(), calibrator(logits[:7]), atol=1e-12)


@every
def test_rows_that_were_fitted_on_cannot_judge(key: str) -> None:
    logits, labels = sample(60, 3)
    calib = Predictions(logits=logits[:30], labels=labels[:30], split="calib")
    test = Predictions(logits=logits[30:], labels=labels[30:], split="test")
    calibrator = make(key).fit(calib)
    with pytest.raises(SplitError, match="Fit on 'calib'"):
        make(key).fit(test)
    mapped = calibrator(test)
    assert mapped.split == "test"
    check_disjoint(mapped.rows, mapped.fitted_on, where="score")
    leaked = calibrator(calib)
    with pytest.raises(SplitError, match="used to fit"):
        check_disjoint(leaked.rows, leaked.fitted_on, where="score")


@every
def test_another_number_of_classes_is_refused(key: str) -> None:
    calibrator, _, _ = fit(key)
    with pytest.raises(ValueError, match="must have 3 classes"):
        calibrator(np.zeros((2, 4)))


@every
def test_it_never_writes_to_its_input(key: str) -> None:
    logits, labels = sample(60, 3)
    before = logits.copy()
    make(key).fit(logits, labels)(logits)
    np.testing.assert_array_equal(logits, before)
