"""Files as people have them: read where the meaning is certain, otherwise an error that names the argument."""

import numpy as np
import pytest

from equipoise import Predictions, iter_predictions, read_predictions
from equipoise.core.errors import DataError
from equipoise.evaluate import audit, score
from equipoise.evaluate.audit_state import AuditState, read_audit_state, write_audit_state

PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])


@pytest.fixture
def csv(tmp_path):
    def save(text):
        (tmp_path / "a.csv").write_text(text)
        return tmp_path / "a.csv"

    return save


class TestMissing:
    TEXT = "confidence,correct\n0.9,1\n,1\n0.8,\n0.7,0\nNaN,1\n0.6,NA\n0.5,1\n"

    def test_the_error_names_the_argument(self, csv):
        with pytest.raises(DataError, match=r"line 3, column 'confidence'.*an empty cell.*drop_missing=True"):
            read_predictions(csv(self.TEXT))

    @pytest.mark.parametrize("chunk_rows", [1, 2, 3, 100])
    def test_rows_are_left_out_and_counted(self, csv, chunk_rows):
        path = csv(self.TEXT)
        rows = read_predictions(path, drop_missing=True)
        assert rows.confidence.tolist() == [0.9, 0.7, 0.5]
        assert rows.n_dropped == 4
        chunks = list(iter_predictions(path, drop_missing=True, chunk_rows=chunk_rows))
        assert sum(len(chunk) for chunk in chunks) == 3
        assert all(len(chunk) <= chunk_rows for chunk in chunks)
        assert sum(chunk.n_dropped for chunk in chunks) == 4

    def test_rows_left_out_at_the_end_count(self, csv):
        path = csv("confidence,correct\n0.9,1\n,\n,\n,\n")
        assert sum(chunk.n_dropped for chunk in iter_predictions(path, drop_missing=True, chunk_rows=1)) == 3

    def test_nothing_left_is_an_error(self, csv):
        with pytest.raises(DataError, match="no rows to score: every label is ignored or missing"):
            read_predictions(csv("confidence,correct\n,1\n0.5,\n"), drop_missing=True)

    def test_only_columns_that_are_read_count(self, csv):
        rows = read_predictions(csv("confidence,correct,comment\n0.9,1,\n0.8,0,\n"), drop_missing=True)
        assert (len(rows), rows.n_dropped) == (2, 0)

    def test_the_type_of_labels_is_that_of_the_first_that_is_there(self, csv):
        rows = read_predictions(csv("p_0,p_1,label\n0.5,0.5,\n0.2,0.8,1.0\n0.9,0.1,0.0\n"), drop_missing=True)
        assert rows.labels.tolist() == [1, 0]

    def test_arrays(self, tmp_path):
        probs = PROBS.copy()
        probs[1, 1] = np.nan
        np.savez(tmp_path / "a.npz", probs=probs, labels=np.array([0.0, 1.0, 2.0]))
        rows = read_predictions(tmp_path / "a.npz", drop_missing=True)
        assert (rows.labels.tolist(), rows.n_dropped) == ([0, 2], 1)
        np.savez(tmp_path / "b.npz", probs=PROBS, labels=np.array([0.0, np.nan, 7.0]))
        with pytest.raises(DataError, match="got 7 in row 2"):
            read_predictions(tmp_path / "b.npz", drop_missing=True)

    def test_parquet(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = {"confidence": [0.9, None, 0.7, 0.6], "correct": [True, True, None, False]}
        parquet.write_table(pa.table(table), tmp_path / "a.parquet")
        for found in (
            read_predictions(tmp_path / "a.parquet", drop_missing=True),
            *iter_predictions(tmp_path / "a.parquet", drop_missing=True),
        ):
            assert (found.confidence.tolist(), found.n_dropped) == ([0.9, 0.6], 2)
        with pytest.raises(DataError, match="drop_missing=True leaves them out"):
            read_predictions(tmp_path / "a.parquet")

    def test_cards_and_states_tell(self, csv, tmp_path):
        rows = read_predictions(csv(self.TEXT), drop_missing=True)
        card = score(rows, n_resamples=9)
        assert card.to_dict()["n_dropped"] == 4
        assert "4 rows with missing values were left out." in card.notes
        state = AuditState.of(rows)
        write_audit_state(state, tmp_path / "a.state")
        back = read_audit_state(tmp_path / "a.state")
        assert audit(back, n_resamples=9).card.n_dropped == 4


class TestNormalize:
    def test_rounded_rows(self, csv):
        path = csv("p_0,p_1,p_2,label\n0.33,0.33,0.33,0\n0.34,0.33,0.34,1\n0.50,0.25,0.25,2\n")
        with pytest.raises(DataError, match=r"sums to 0\.99\. Rounded\?.*normalize=True"):
            read_predictions(path)
        rows = read_predictions(path, normalize=True)
        np.testing.assert_allclose(rows.probs.sum(axis=1), 1)

    def test_rows_that_rounding_does_not_explain(self, csv):
        path = csv("p_0,p_1,p_2,label\n0.33,0.33,0.33,0\n0.34,0.33,0.30,1\n")
        with pytest.raises(
            DataError, match=r"but for rounding, line 3 sums to 0\.97.*explains 0\.015 at most"
        ):
            read_predictions(path, normalize=True)

    def test_sigmoids_are_no_rounding(self):
        from equipoise.core.reading.conversion import normalized

        with pytest.raises(DataError, match=r"row 0 sums to 1\.61"):
            normalized(np.array([[0.812345678, 0.7976543]]))

    def test_what_needs_no_repair_is_taken(self):
        from equipoise.core.reading.conversion import normalized

        probs = np.random.default_rng(0).dirichlet(np.ones(4), 50)
        np.testing.assert_allclose(normalized(1.0008 * probs), probs)
        np.testing.assert_allclose(normalized(probs.astype(np.float16)), probs, atol=1e-3)

    @pytest.mark.parametrize(
        "text", ["logit_0,logit_1,label\n1,2,0\n", "prob,label\n0.5,1\n", "confidence,correct\n0.5,1\n"]
    )
    def test_it_is_for_several_classes(self, csv, text):
        with pytest.raises(DataError, match="normalize=True is for probabilities of every class"):
            read_predictions(csv(text), normalize=True)


class TestPercent:
    @pytest.mark.parametrize("sign", ["", "%", " %"])
    def test_confidences(self, csv, sign):
        path = csv(f"confidence,correct\n85{sign},1\n40.5{sign},0\n")
        assert read_predictions(path, percent=True).confidence.tolist() == [0.85, 0.405]
        with pytest.raises(DataError, match="percent=True"):
            read_predictions(path)

    def test_rows(self, csv):
        rows = read_predictions(csv("p_0,p_1,label\n85,15,0\n40.5,59.5,1\n"), percent=True)
        np.testing.assert_allclose(rows.probs, [[0.85, 0.15], [0.405, 0.595]])

    def test_shares_are_not_divided(self, csv):
        path = csv("confidence,correct\n" + "0.9,1\n" * 20)
        with pytest.raises(DataError, match=r"none of 20 is above 1. Leave out percent=True"):
            read_predictions(path, percent=True)
        with pytest.raises(DataError, match="not for logits"):
            read_predictions(csv("logit_0,logit_1,label\n1,2,0\n"), percent=True)


class TestLabels:
    def test_whole_floats(self, csv):
        assert read_predictions(csv("p_0,p_1,y\n0.5,0.5,1.0\n0.2,0.8,0.0\n")).labels.tolist() == [1, 0]
        assert Predictions(probs=PROBS, labels=[0.0, 1.0, 2.0]).labels.dtype == np.int64

    @pytest.mark.parametrize("chunk_rows", [1, 10])
    def test_columns_from_one(self, csv, chunk_rows):
        path = csv("p_1,p_2,p_3,label\n0.7,0.2,0.1,1\n0.1,0.8,0.1,2\n0.2,0.2,0.6,3\n")
        labels = [label for chunk in iter_predictions(path, chunk_rows=chunk_rows) for label in chunk.labels]
        assert labels == [0, 1, 2]
        with pytest.raises(DataError, match=r"must run from 1.*got 0 in line 2.*first_label=0"):
            read_predictions(csv("p_1,p_2,label\n0.7,0.3,0\n"))

    @pytest.mark.parametrize("chunk_rows", [1, 2, 10])
    def test_named_classes_and_labels_from_one(self, tmp_path, chunk_rows):
        np.savez(tmp_path / "a.npz", probs=np.tile(PROBS, (2, 1)), labels=np.array([1, 2, 3, 1, 1, 2]))
        names = ["cat", "dog", "owl"]
        chunks = iter_predictions(tmp_path / "a.npz", class_names=names, chunk_rows=chunk_rows)
        assert [label for chunk in chunks for label in chunk.labels] == [0, 1, 2, 0, 0, 1]
        with pytest.raises(DataError, match=r"They run from 1 to 3: .*first_label=1"):
            read_predictions(tmp_path / "a.npz")
        assert read_predictions(tmp_path / "a.npz", first_label=1).labels.tolist() == [0, 1, 2, 0, 0, 1]

    def test_labels_that_may_be_either_are_from_zero(self, tmp_path):
        np.savez(tmp_path / "a.npz", probs=PROBS, labels=np.array([1, 2, 1]))
        assert read_predictions(tmp_path / "a.npz", class_names=["a", "b", "c"]).labels.tolist() == [1, 2, 1]

    @pytest.mark.parametrize("chunk_rows", [1, 2, 10])
    def test_minus_one_and_one(self, csv, chunk_rows):
        path = csv("prob,label\n0.9,1\n0.2,-1\n0.4,-1\n0.6,1\n")
        labels = [label for chunk in iter_predictions(path, chunk_rows=chunk_rows) for label in chunk.labels]
        assert labels == [1, 0, 0, 1]

    @pytest.mark.parametrize(
        ("text", "arguments"),
        [
            ("prob,label\n0.9,1\n0.2,-1\n0.4,0\n", {}),  # -1 may stand for unknown
            ("p_0,p_1,p_2,label\n0.9,0.1,0,1\n0.2,0.8,0,-1\n", {}),
            ("prob,label\n0.9,1\n0.2,-1\n0.4,2\n", {"first_label": -1}),
        ],
    )
    def test_other_negative_labels_are_errors(self, csv, text, arguments):
        with pytest.raises(DataError, match=r"got (-1|2)"):
            read_predictions(csv(text), **arguments)

    def test_ignored_labels_are_not_classes(self, csv):
        path = csv("prob,label\n0.9,1\n0.2,-1\n0.4,1\n")
        assert read_predictions(path, ignore_index=-1).labels.tolist() == [1, 1]

    def test_names_in_python(self):
        rows = Predictions(probs=PROBS, labels=["owl", "cat", "dog"], class_names=["cat", "dog", "owl"])
        assert rows.labels.tolist() == [2, 0, 1]
        top1 = Predictions(
            predicted=["b"], confidence=[0.5], labels=np.array(["a"], object), class_names=["a", "b"]
        )
        assert (top1.predicted.tolist(), top1.labels.tolist()) == ([1], [0])
        with pytest.raises(DataError, match=r"got 'owls' in row 0. Did you mean 'owl'"):
            Predictions(probs=PROBS, labels=["owls", "cat", "dog"], class_names=["cat", "dog", "owl"])


class TestDecimalCommas:
    def test_semicolons(self, csv):
        rows = read_predictions(csv("p_a;p_b;label\n0,25;0,75;b\n1,0;0,0;a\n-0;1;b\n"))
        assert rows.probs.tolist() == [[0.25, 0.75], [1, 0], [0, 1]]

    @pytest.mark.parametrize("chunk_rows", [1, 10])
    def test_points_and_commas_in_one_file_are_an_error(self, csv, chunk_rows):
        path = csv("logit_a;logit_b;label\n0,25;1;b\n1.5;2;a\n")
        with pytest.raises(
            DataError, match=r"line [23].*with a comma and numbers with a point, got '(0,2|1.)5'"
        ):
            list(iter_predictions(path, chunk_rows=chunk_rows))

    def test_thousands_are_an_error(self, csv):
        with pytest.raises(DataError, match="must hold a number, got '1,234,567'"):
            read_predictions(csv("logit_a;logit_b;label\n1,234,567;1;b\n"))


class TestForms:
    def test_names_are_recognized(self, csv):
        for name in ("correct", "is_correct", "Is_Correct"):
            assert read_predictions(csv(f"confidence,{name}\n0.9,True\n")).kind == "confidence"
        assert read_predictions(csv("confidence\n0.9\n")).kind == "confidence"

    def test_outcomes_are_used_where_there_are_no_labels(self, csv):
        assert read_predictions(csv("y_pred,confidence,correct\ncat,0.9,1\n")).kind == "confidence"
        both = csv("label,y_pred,confidence,correct\n1,1,0.9,1\n")
        assert read_predictions(both).kind == "top1"
        assert read_predictions(both, correct="correct").kind == "confidence"

    def test_what_is_not_certain_is_an_error(self, csv):
        with pytest.raises(DataError, match=r"predicted=.*correct='label'"):
            read_predictions(csv("label,confidence\n1,0.9\n"))
        with pytest.raises(DataError, match=r"confidence='prob'"):
            read_predictions(csv("prob,correct\n0.9,1\n"))
        with pytest.raises(DataError, match=r"correct= goes with confidence= alone, not with labels="):
            read_predictions(csv("ok,label,confidence\n1,1,0.9\n"), correct="ok", labels="label")

    def test_other_outcomes_name_the_line(self, csv):
        with pytest.raises(
            DataError, match=r"line 3, column 'correct' must hold true or false, or 1 or 0, got 'yes'"
        ):
            read_predictions(csv("confidence,correct\n0.9,1\n0.9,yes\n"))


@pytest.mark.parametrize(("name", "value"), [("percent", "yes"), ("first_label", 2), ("drop_missing", 1)])
def test_arguments_are_checked(csv, name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        read_predictions(csv("confidence,correct\n0.9,1\n"), **{name: value})
