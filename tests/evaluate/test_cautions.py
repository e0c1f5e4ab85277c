"""Cautions: each is raised by the mistake it is about, and not by honest predictions that look alike."""

import numpy as np
import pytest

from equipoise.core import Predictions
from equipoise.core.errors import DataError
from equipoise.core.probabilities import softmax
from equipoise.evaluate import Audit, Scorecard, audit, score
from equipoise.evaluate.cautions import InputDiagnostics, inner_probs


def keys(*chunks):
    diagnostics = InputDiagnostics()
    for chunk in chunks:
        diagnostics.update(chunk)
    return {caution.key for caution in diagnostics.cautions()}


def network(n=2000, k=10, *, scale=3.0, seed=0):
    """Logits of a network and labels drawn from them: as sure as it should be."""
    generator = np.random.default_rng(seed)
    logits = scale * generator.normal(size=(n, k))
    return logits, (logits + generator.gumbel(size=logits.shape)).argmax(1)


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_honest_predictions_raise_nothing(k):
    logits, labels = network(n=100 * k, k=k)
    assert keys(Predictions(logits=logits, labels=labels)) == set()
    assert keys(Predictions(probs=softmax(logits), labels=labels)) == set()
    assert keys(*Predictions(probs=softmax(logits), labels=labels).blocks(77)) == set()


# Softmaxed twice ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 10, 100])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_second_softmax_is_noticed(k, dtype):
    logits, labels = network(n=3000, k=k, scale=4.0)
    twice = softmax(softmax(logits)).astype(dtype)
    assert keys(Predictions(probs=twice, labels=labels)) == {"softmaxed_twice"}
    assert "softmaxed_twice" in keys(*Predictions(probs=twice, labels=labels).blocks(500))


@pytest.mark.parametrize("k", [2, 10, 100])
def test_probabilities_called_logits_are_noticed(k):
    logits, labels = network(n=3000, k=k)
    found = keys(Predictions(logits=softmax(logits), labels=labels))
    assert found == {"logits_are_probs"}


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("k", [2, 5, 10])
def test_an_honestly_unsure_model_is_not_suspected(k, scale):
    logits, labels = network(n=20_000, k=k, scale=scale)
    assert "softmaxed_twice" not in keys(Predictions(probs=softmax(logits), labels=labels))


@pytest.mark.parametrize("temperature", [3.0, 6.0, 10.0])
@pytest.mark.parametrize("k", [2, 5, 10])
def test_an_underconfident_model_is_not_suspected(k, temperature):
    logits, labels = network(n=20_000, k=k, scale=3.0)
    assert "softmaxed_twice" not in keys(Predictions(probs=softmax(logits / temperature), labels=labels))


def test_label_smoothing_is_not_suspected():
    logits, labels = network(n=5000)
    smoothed = 0.7 * softmax(2 * logits) + 0.03
    assert "softmaxed_twice" not in keys(Predictions(probs=smoothed, labels=labels))


def test_one_sharp_row_clears_the_rest():
    logits, labels = network(n=3000)
    probs = softmax(softmax(logits))
    probs[1234] = np.eye(10)[3]
    assert keys(*Predictions(probs=probs, labels=labels).blocks(1000)) == set()


def test_small_logits_are_still_logits():
    generator = np.random.default_rng(0)
    logits = generator.random((500, 4))
    labels = generator.integers(0, 4, 500)
    assert "logits_are_probs" not in keys(Predictions(logits=logits, labels=labels))


def test_inner_probs_undo_a_softmax():
    probs = np.random.default_rng(0).dirichlet(np.ones(5), 50)
    np.testing.assert_allclose(inner_probs(softmax(probs)), probs, atol=1e-12)


# Labels off by one ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [1, -1])
@pytest.mark.parametrize("k", [5, 10, 100])
def test_labels_off_by_one_are_noticed(shift, k):
    logits, labels = network(n=3000, k=k - 1)
    # The model leaves one class out, so that shifted labels still lie in range: a background class, say.
    blank = np.full((len(labels), 1), -30.0)
    wide = np.hstack([logits, blank] if shift == 1 else [blank, logits])
    truth = labels + 1 if shift == 1 else labels
    assert "labels_off_by_one" in keys(Predictions(logits=wide, labels=truth))
    top = Predictions(predicted=wide.argmax(1), confidence=softmax(wide).max(1), labels=truth)
    assert "labels_off_by_one" in keys(*top.blocks(1000))


def test_a_constant_prediction_beside_common_labels_is_no_shift():
    labels = (np.random.default_rng(0).random(4000) < 0.1).astype(int)
    probs = np.tile([0.2, 0.6, 0.2], (4000, 1))
    assert "labels_off_by_one" not in keys(Predictions(probs=probs, labels=labels))


def test_neighboring_ratings_are_no_shift():
    """An ordinal model that is right most often, and off by one in either direction otherwise."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 5, 5000)
    predicted = np.clip(labels + generator.choice([-1, 0, 1], 5000, p=[0.3, 0.4, 0.3]), 0, 4)
    rows = Predictions(predicted=predicted, confidence=np.full(5000, 0.4), labels=labels)
    assert "labels_off_by_one" not in keys(rows)


def test_a_poor_model_is_no_shift():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(5000, 10))
    rows = Predictions(logits=logits, labels=generator.integers(0, 10, 5000))
    assert "labels_off_by_one" not in keys(rows)


def test_labels_of_any_size_are_counted_in_bounded_memory():
    labels = np.array([2**60, 2**61, 3] * 40)
    rows = Predictions(predicted=labels - 1, confidence=np.linspace(0.5, 1, 120), labels=labels)
    assert "labels_off_by_one" not in keys(rows)


def test_swapped_classes_are_noticed():
    logits, labels = network(k=2)
    assert keys(Predictions(logits=logits, labels=1 - labels)) == {"worse_than_chance"}


# Degenerate files -----------------------------------------------------------------------------------------------


def test_decisions_instead_of_probabilities():
    logits, labels = network()
    hard = np.eye(10)[logits.argmax(1)]
    assert keys(Predictions(probs=hard, labels=labels)) == {"few_confidences"}


def test_rounded_confidences():
    generator = np.random.default_rng(0)
    confidence = generator.choice([0.5, 0.6, 0.7, 0.8, 0.9], 1000)
    correct = generator.random(1000) < confidence
    rows = Predictions(predicted=np.ones(1000, int), confidence=confidence, labels=correct.astype(int))
    assert keys(rows) == {"few_confidences"}


def test_few_rows_splits_weights_and_absent_classes():
    logits, labels = network(n=50, k=3)
    assert keys(Predictions(logits=logits, labels=labels)) == {"few_rows"}
    logits, labels = network(n=1000, k=3)
    assert keys(Predictions(logits=logits, labels=labels, split="train")) == {"not_test"}
    assert keys(Predictions(logits=logits, labels=labels, split="test")) == set()
    weights = np.where(np.arange(1000) < 20, 1000.0, 0.01)
    assert keys(Predictions(logits=logits, labels=labels, weights=weights)) == {"uneven_weights"}
    some = labels != 2
    assert keys(Predictions(logits=logits[some], labels=labels[some])) == {"absent_classes"}
    one = labels == 0
    assert "one_class" in keys(Predictions(logits=logits[one], labels=labels[one]))


def test_confidences_that_no_likeliest_class_has():
    generator = np.random.default_rng(0)
    confidence = generator.random(500)
    rows = Predictions(
        predicted=np.zeros(500, int), confidence=confidence, labels=generator.integers(0, 2, 500), n_classes=2
    )
    assert keys(rows) == {"impossible_confidence"}


def test_no_rows_no_cautions():
    assert InputDiagnostics().cautions() == ()


# Percentages, measured numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 10])
def test_percentages_called_logits_are_noticed(k):
    logits, labels = network(n=3000, k=k)
    percent = Predictions(logits=100 * softmax(logits), labels=labels)
    assert "logits_are_percentages" in keys(percent)
    assert "logits_are_percentages" in keys(*percent.blocks(700))
    assert "logits_are_percentages" not in keys(Predictions(logits=np.abs(logits), labels=labels))


def test_measured_numbers_are_no_classes():
    values = np.random.default_rng(0).integers(0, 1 << 30, 500)
    told = {"confidence": np.linspace(0.3, 0.9, 500)}
    assert "labels_are_no_classes" in keys(Predictions(predicted=values, labels=values, **told))
    few = values % 50
    assert "labels_are_no_classes" not in keys(Predictions(predicted=few, labels=few, **told))


@pytest.mark.parametrize("k", [3, 10])
def test_score_and_audit_tell_slips_before_any_number(k):
    logits, labels = network(n=3000, k=k)
    mistake = Predictions(logits=softmax(logits), labels=labels, split="calib")
    card, found = score(mistake, n_resamples=5), audit(mistake, n_resamples=5)
    assert [caution.key for caution in card.cautions] == ["logits_are_probs"]
    assert found.card.cautions == card.cautions
    assert {caution.key for caution in found.cautions} == {"logits_are_probs", "not_test"}
    for text in (str(card), str(found), found.describe(quiet=True), card._repr_html_(), found._repr_html_()):
        assert text.count("as probabilities do") == 1 or text.count("as probabilities\ndo") == 1
        assert text.index("Warning: The logits of every row") < text.index("accuracy")
    assert str(found).index("split 'calib'") > str(found).index("accuracy")
    again = Scorecard.from_dict(card.to_dict())
    assert again.cautions == card.cautions
    assert Audit.from_dict(found.to_dict()).card.cautions == card.cautions
    early = {name: value for name, value in card.to_dict().items() if name != "cautions"}
    assert Scorecard.from_dict(early).cautions == ()


def test_honest_predictions_are_scored_without_a_word():
    logits, labels = network()
    assert score(Predictions(logits=logits, labels=labels), n_resamples=5).cautions == ()


@pytest.mark.parametrize("given", [[[85.0, 15.0], [40.0, 60.0]], [85.0, 15.0]])
def test_percentages_called_probabilities_are_to_be_divided(given):
    with pytest.raises(
        DataError,
        match=r"must lie in \[0, 1\], got 85.0 in row 0.*Percent\? Divide by 100, or read the file with percent=True",
    ):
        Predictions(probs=given, labels=[0, 1])


# Thresholds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_right", "warned"), [(4740, True), (4749, True), (4751, False), (4760, False)])
def test_worse_than_chance_takes_five_standard_errors(n_right, warned):
    # Half of 10,000 rows would be right by chance, and five times sqrt(0.25 / 10,000) is 2.5 points.
    labels = np.arange(10_000) < n_right
    found = keys(Predictions(probs=np.full(10_000, 0.6), labels=labels.astype(int)))
    assert ("worse_than_chance" in found) is warned


@pytest.mark.parametrize(("n_shifted", "warned"), [(25, False), (26, True)])
def test_shifted_labels_take_five_standard_errors(n_shifted, warned):
    # No row is right and m are right by one: m > 5 sqrt(m) from 26 on.
    labels = np.arange(50) % 6
    predicted = np.where(np.arange(50) < n_shifted, labels + 1, labels + 3)
    rows = Predictions(predicted=predicted, confidence=np.linspace(0.4, 0.9, 50), labels=labels, n_classes=10)
    assert ("labels_off_by_one" in keys(rows)) is warned


@pytest.mark.parametrize(("n_rows", "warned"), [(99, True), (100, False)])
def test_fewer_than_a_hundred_rows_are_few(n_rows, warned):
    logits, labels = network(n=n_rows, k=3)
    assert ("few_rows" in keys(Predictions(logits=logits, labels=labels))) is warned
