"""Columns are distinguished by their names, and never by their values."""

import re
from pathlib import Path

import numpy as np
import pytest

from equipoise import read_predictions
from equipoise.core import DataError
from equipoise.core.reading.columns import AMBIGUOUS_NAMES, CLASS_PREFIXES, KNOWN_NAMES

LOGITS = np.array(
    [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]
)  # could pass for probabilities: only the name decides
LABELS = np.array([1, 0, 1])


@pytest.fixture
def npz(tmp_path):
    def save(**arrays):
        np.savez(tmp_path / "a.npz", **arrays)
        return tmp_path / "a.npz"

    return save


@pytest.fixture
def csv(tmp_path):
    def save(text):
        (tmp_path / "a.csv").write_text(text)
        return tmp_path / "a.csv"

    return save


@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_every_known_name_of_scores(npz, kind):
    for name in KNOWN_NAMES[kind]:
        for spelling in (name, name.upper(), name.capitalize()):
            predictions = read_predictions(npz(**{spelling: LOGITS, "labels": LABELS}))
            assert predictions.kind == kind
            np.testing.assert_array_equal(predictions.scores, LOGITS)


@pytest.mark.parametrize("name", KNOWN_NAMES["labels"])
def test_every_known_name_of_labels(npz, name):
    assert read_predictions(npz(**{name: LABELS, "logits": LOGITS})).labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize("predicted", KNOWN_NAMES["predicted"])
@pytest.mark.parametrize("confidence", KNOWN_NAMES["confidence"])
def test_every_known_name_of_the_top1_form(npz, predicted, confidence):
    predictions = read_predictions(npz(**{predicted: LABELS, confidence: LOGITS[:, 0], "labels": LABELS}))
    assert predictions.kind == "top1"
    assert predictions.correct.all()


@pytest.mark.parametrize("name", KNOWN_NAMES["weights"])
def test_every_known_name_of_weights(npz, name):
    assert read_predictions(npz(**{name: [1.0, 2.0, 3.0]}, logits=LOGITS, labels=LABELS)).weights.sum() == 6


def test_no_name_has_two_meanings():
    names = [name for known in KNOWN_NAMES.values() for name in known] + list(AMBIGUOUS_NAMES)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", AMBIGUOUS_NAMES)
def test_ambiguous_names_are_refused_until_the_caller_decides(npz, name):
    path = npz(**{name: LOGITS}, labels=LABELS)
    with pytest.raises(
        DataError, match=f"`{name}` may be logits or probabilities.*logits='{name}' or probs='{name}'"
    ):
        read_predictions(path)
    assert read_predictions(path, logits=name).kind == "logits"
    assert read_predictions(path, probs=name.upper()).kind == "probs"


def test_both_logits_and_probs_are_refused_until_the_caller_decides(npz):
    path = npz(logits=LOGITS, probs=LOGITS, labels=LABELS)
    with pytest.raises(
        DataError, match=r"both logits \('logits'\) and probabilities.*logits='logits' or probs='probs'"
    ):
        read_predictions(path)
    assert read_predictions(path, probs="probs").kind == "probs"
    with pytest.raises(DataError, match="not both"):
        read_predictions(path, probs="probs", logits="logits")


def test_two_candidates_for_labels_are_refused_until_the_caller_decides(npz):
    path = npz(logits=LOGITS, labels=LABELS, y_true=1 - LABELS)
    with pytest.raises(
        DataError, match=r"several columns may be the labels: 'labels', 'y_true'.*labels='labels'"
    ):
        read_predictions(path)
    assert read_predictions(path, labels="y_true").labels.tolist() == [0, 1, 0]


def test_scores_of_all_classes_outrank_the_top1_form(npz):
    path = npz(probs=LOGITS, labels=LABELS, predicted=LABELS, confidence=LOGITS[:, 0])
    assert read_predictions(path).kind == "probs"
    assert read_predictions(path, predicted="predicted").kind == "top1"


def test_one_probability_beside_a_prediction_is_ambiguous(csv):
    path = csv("true_label,pred_label,prob\n1,0,0.75\n")
    with pytest.raises(
        DataError, match=r"may be the probability of class 1 or.*probs='prob' or confidence='prob'"
    ):
        read_predictions(path)
    assert read_predictions(path, confidence="prob").confidence.tolist() == [0.75]
    assert read_predictions(path, probs="prob").probs.tolist() == [[0.25, 0.75]]


def test_predictions_that_are_class_numbers(npz):
    with pytest.raises(DataError, match=r"integers.*predicted='predictions'"):
        read_predictions(npz(predictions=LABELS, labels=LABELS))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"logits": LOGITS}, r"no labels under a known name; it holds 'logits'. Name the column: labels="),
        ({"logits": LOGITS, "lables": LABELS}, r"'lables' is near 'labels'. Name the column: labels="),
        (
            {"labels": LABELS},
            r"no scores under a known name; it holds 'labels'.*logits=.*probs=.*confidence=",
        ),
        ({"labels": LABELS, "logist": LOGITS}, r"'logist' is near 'logi"),
        (
            {"labels": LABELS, "confidence": LOGITS[:, 0]},
            r"`labels` cannot be compared.*predicted=.*correct='labels'",
        ),
        ({"labels": LABELS, "y_pred": LABELS}, r"holds no confidence under a known name"),
    ],
)
def test_what_is_missing_and_how_to_name_it(npz, arrays, message):
    with pytest.raises(DataError, match=message):
        _ = read_predictions(npz(**arrays)).labels


def test_a_name_that_is_not_there(npz):
    path = npz(my_logits=LOGITS, target=LABELS)
    assert len(read_predictions(path, logits="my_logits")) == 3
    with pytest.raises(
        DataError, match=r"no column 'my_logit' for logits; it holds.*Did you mean 'my_logits'"
    ):
        read_predictions(path, logits="my_logit")
    with pytest.raises(DataError, match="no column 'w' for weights"):
        read_predictions(path, logits="my_logits", weights="w")


def test_long_lists_of_names_are_cut(npz):
    arrays = {f"x{number}": LABELS for number in range(40)}
    with pytest.raises(DataError, match="and 28 more"):
        read_predictions(npz(**arrays))


@pytest.mark.parametrize("prefix", ["logit", "logits", "Logit"])
def test_class_columns_of_logits_in_numeric_order(csv, prefix):
    names = [f"{prefix}_{number}" for number in (2, 10, 0, 1, 3, 4, 5, 6, 7, 8, 9)]
    values = ["2", "10", "0", "1", "3", "4", "5", "6", "7", "8", "9"]
    predictions = read_predictions(csv(",".join([*names, "label"]) + "\n" + ",".join([*values, "4"]) + "\n"))
    assert predictions.kind == "logits"
    assert predictions.scores.tolist() == [list(range(11))]
    assert predictions.class_names is None


@pytest.mark.parametrize("prefix", ["prob", "probs", "proba", "probability", "p", "softmax", "P"])
def test_class_columns_of_probs_name_their_classes(csv, prefix):
    predictions = read_predictions(csv(f"{prefix}_Zebra,{prefix}_a b_c,y\n0.25,0.75,a b_c\n0.5,0.5,Zebra\n"))
    assert predictions.kind == "probs"
    assert predictions.class_names == ("Zebra", "a b_c")
    assert predictions.labels.tolist() == [1, 0]


@pytest.mark.parametrize("numbers", [(0, 2), (1, 3), (2, 3), (0, 1, 1000)])
def test_gaps_in_numbering_are_errors(csv, numbers):
    names = ",".join(f"prob_{number}" for number in numbers)
    with pytest.raises(DataError, match=r"numbered from 0 or 1 without gaps, `prob_\d+` is missing"):
        read_predictions(csv(f"{names},label\n" + "0," * len(numbers) + "0\n"))


def test_columns_can_be_listed_or_matched(csv):
    path = csv("dog,cat,score_1,score_0,y\n0.25,0.75,0.5,0.5,cat\n0.5,0.5,0.125,0.875,dog\n")
    listed = read_predictions(path, probs=["cat", "dog"])
    assert listed.class_names == ("cat", "dog")
    assert listed.probs.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    assert listed.labels.tolist() == [0, 1]
    matched = read_predictions(path, probs="score_*", class_names=["cat", "dog"])
    assert matched.probs.tolist() == [[0.5, 0.5], [0.875, 0.125]]
    with pytest.raises(DataError, match=r"no column 'logit_\*'"):
        read_predictions(path, logits="logit_*")


def test_a_single_class_column_is_not_guessed(csv):
    path = csv("prob_1,label\n0.75,1\n")
    with pytest.raises(DataError, match="no scores under a known name"):
        read_predictions(path)
    assert read_predictions(path, probs="prob_1").one_column


def test_two_families_of_class_columns(csv):
    with pytest.raises(DataError, match=r"several columns may be the probs: 'prob_\*', 'p_\*'"):
        read_predictions(csv("prob_0,prob_1,p_a,p_b,label\n0.5,0.5,0.5,0.5,0\n"))


def test_class_columns_of_both_kinds(csv):
    path = csv("logit_0,logit_1,prob_0,prob_1,label\n1,2,0.5,0.5,0\n")
    with pytest.raises(DataError, match=r"logits='logit_\*' or probs='prob_\*'"):
        read_predictions(path)
    assert read_predictions(path, logits="logit_*").scores.tolist() == [[1, 2]]


def test_groups_by_prefix_or_by_name(npz):
    path = npz(logits=LOGITS, labels=LABELS, group_site=["a", "b", "a"], age=[1, 2, 3])
    assert list(read_predictions(path).groups) == ["site"]
    named = read_predictions(path, groups=("age", "site"))
    assert named.groups["age"].tolist() == [1, 2, 3]
    assert named.groups["site"].tolist() == ["a", "b", "a"]
    with pytest.raises(DataError, match=r"no column 'agee' for groups.*Did you mean 'age'"):
        read_predictions(path, groups=["agee"])


def test_ids_are_never_assumed(npz):
    path = npz(logits=LOGITS, labels=LABELS, id=[1, 2, 3])
    assert not read_predictions(path).rows.named
    assert read_predictions(path, ids="id").rows.named


def test_the_page_lists_every_name():
    page = (Path(__file__).parents[2] / "docs" / "predictions.md").read_text()
    for role, names in KNOWN_NAMES.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| {role} |"))
        prefixes = [prefix for prefix, kind in CLASS_PREFIXES.items() if kind == role]
        assert re.findall(r"`([^`]+)`", row) == [*names, *(f"{prefix}_..." for prefix in prefixes)]
    for name in AMBIGUOUS_NAMES:
        assert f"`{name}`" in page


def test_the_page_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "predictions.md").read_text()
    monkeypatch.chdir(tmp_path)
    space = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, space)
    assert space["mine"].groups["site"].tolist() == [number % 4 for number in range(100)]
