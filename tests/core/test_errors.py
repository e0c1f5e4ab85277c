"""Errors: their parts, composed once, for Python and for the command line."""

import pickle

import pytest

from equipoise import Predictions, read_predictions
from equipoise.core.errors import DataError, EquipoiseError, FileError, MissingExtraError, SpecError

OPTIONS = {"percent": "--percent", "class_names": "--class-names", "ids": "--ids"}


def test_the_message_is_composed_of_its_parts():
    error = DataError("got {x} in {row}, use {percent}", where="a", row=2, arguments={"percent": "True"})
    assert str(error) == "a: got {x} in row 2, use percent=True"
    assert str(error.at(where="b.csv", row=7, line=9)) == "b.csv: got {x} in line 9, use percent=True"
    assert error.at(where="b").row == 2
    assert str(error.within("run.toml.data")).startswith("run.toml.data: a: got")
    assert str(DataError("no").within("run.toml")) == "run.toml: no"
    assert str(error) == "a: got {x} in row 2, use percent=True"


@pytest.mark.parametrize(
    ("name", "value", "python", "option"),
    [
        ("percent", "True", "percent=True", "--percent"),
        ("class_names", "[...]", "class_names=[...]", "--class-names FIRST,SECOND,..."),
        ("ids", "'key'", "ids='key'", "--ids 'key'"),
        ("ids", "", "ids=", "--ids"),
        ("other", "1", "other=1", "other=1"),
    ],
)
def test_arguments_are_named_as_their_reader_writes_them(name, value, python, option):
    error = SpecError(f"pass {{{name}}}.", arguments={name: value})
    assert (str(error), error.describe(OPTIONS)) == (f"pass {python}.", f"pass {option}.")


@pytest.mark.parametrize("kind", [DataError, FileError, MissingExtraError, SpecError])
def test_errors_survive_another_process(kind):
    error = kind("got {row}. Pass {ids}.", where="a.csv", row=3, arguments={"ids": ""})
    same = pickle.loads(pickle.dumps(error))
    assert isinstance(same, kind)
    assert str(same) == str(error) == "a.csv: got row 3. Pass ids=."
    assert (same.where, same.row, same.arguments) == ("a.csv", 3, {"ids": ""})


def test_rows_are_numbered_as_the_caller_has_them(tmp_path):
    with pytest.raises(DataError) as caught:
        Predictions(probs=[0.5, 0.5, 7.0], labels=[9, 1, 1], ignore_index=9)
    assert (caught.value.where, caught.value.row) == ("Predictions", 2)
    (tmp_path / "a.csv").write_text("probs,label\n0.5,1\n\n7.0,1\n")
    with pytest.raises(DataError) as caught:
        read_predictions(tmp_path / "a.csv")
    assert (caught.value.where, caught.value.row, caught.value.line) == ("a.csv", 1, 4)
    assert "logits" in caught.value.arguments


def test_text_of_a_file_is_not_taken_for_an_argument(tmp_path):
    (tmp_path / "split=test.csv").write_text("probs,label\n0.5,1\nids={ids},1\n")
    with pytest.raises(
        EquipoiseError, match=r"^split=test.csv: line 3, column 'probs' .* got 'ids={ids}'"
    ) as caught:
        read_predictions(tmp_path / "split=test.csv")
    assert "split=test.csv" in caught.value.describe({"split": "--split", "ids": "--ids"})
