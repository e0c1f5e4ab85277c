"""Options that say what a file holds: the same ones for every command that reads predictions."""

import inspect
import json

import numpy as np
import pytest

from equipoise import iter_predictions, read_predictions
from equipoise.cli import main
from equipoise.cli.commands import load_command
from equipoise.cli.inputs import OPTION_OF
from equipoise.core.reading import Columns

READERS = ("score", "report", "audit", "calibrate", "apply")
SCORERS = ("score", "report", "audit")


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3)).astype(np.float32)
    return {"scores": logits, "truth": (2 * logits + rng.gumbel(size=(300, 3))).argmax(1)}


@pytest.fixture
def file(tmp_path, arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    return str(tmp_path / "a.npz")


@pytest.mark.parametrize("function", [read_predictions, iter_predictions])
def test_readers_show_the_arguments_of_the_record(function):
    assert set(Columns.__annotations__) <= set(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", READERS)
def test_every_command_takes_every_column(name):
    options = {option for parameter in load_command(name).params for option in parameter.opts}
    wanted = {option for argument, option in OPTION_OF.items() if argument != "groups"}
    assert wanted <= options


@pytest.mark.parametrize("name", SCORERS)
def test_bins_and_resamples_have_one_limit(name, file, capsys):
    words = [name, file, "--logits", "scores", "--labels", "truth"]
    assert main([*words, "--bins", "1000000"]) == 2
    assert "'--bins': 1000000 is not in the range 1<=x<=10000" in capsys.readouterr().err
    assert main([*words, "--resamples", "1000000000"]) == 2
    assert "'--resamples'" in capsys.readouterr().err


@pytest.mark.parametrize("name", SCORERS)
def test_a_pair_of_npy_files(name, tmp_path, arrays, capsys):
    files = [str(tmp_path / "test_logits.npy"), str(tmp_path / "test_labels.npy")]
    for path, array in zip(files, arrays.values(), strict=True):
        np.save(path, array)
    out = ["-o", str(tmp_path / "r.html")] if name == "report" else []
    assert main([name, *files, "--resamples", "20", *out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", SCORERS)
def test_top1_columns_and_ignored_labels_anywhere(name, tmp_path, capsys):
    path = tmp_path / "top.csv"
    lines = [f"{row % 2 if row else 255},{row % 3 % 2},0.{5 + row % 5}" for row in range(100)]
    path.write_text("\n".join(["t,said,sure", *lines]) + "\n")
    words = ["--labels", "t", "--predicted", "said", "--confidence", "sure", "--ignore-index", "255"]
    words += ["--class-names", "cat, dog", "--resamples", "20"]
    out = ["-o", str(tmp_path / "r.html")] if name == "report" else []
    assert main([name, str(path), *words, *out]) == 0, capsys.readouterr().err


def test_the_report_tells_how_to_make_it_again(file, tmp_path):
    out = tmp_path / "r.html"
    words = ["--logits", "scores", "--labels", "truth", "--class-names", "a,b,c"]
    assert main(["report", file, *words, "--resamples", "20", "-o", str(out)]) == 0
    assert "--logits scores --labels truth --class-names a,b,c" in out.read_text()


@pytest.mark.parametrize(("text", "answer"), [("4GB", 0), ("500 mb", 0), ("1000", 2), ("much", 2), ("-1", 2)])
def test_sizes(text, answer, file, capsys):
    words = ["--logits", "scores", "--labels", "truth", "--resamples", "20", "--max-bytes", text]
    assert main(["score", file, *words]) == answer
    assert ("--max-bytes" in capsys.readouterr().err) == (answer == 2)


@pytest.mark.parametrize("read", [read_predictions, iter_predictions])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lables": "y"}, r"there is no argument lables=. Did you mean labels=\?"),
        ({"labels": 3}, "`labels` must name a column, got int"),
        ({"logits": np.zeros(3)}, r"`logits` must hold names, got ndarray.*Predictions\(logits=\.\.\.\)"),
        ({"n_classes": 0}, "`n_classes` must be 1 or more, got 0"),
        ({"n_classes": True}, "`n_classes` must be an integer, got True"),
        ({"ignore_index": "255"}, "`ignore_index` must be an integer"),
        ({"class_names": [1, 2]}, "`class_names` must hold names"),
        ({"split": ["test"]}, "`split` must be one of"),
    ],
)
def test_arguments_that_are_none(read, arguments, message, file):
    with pytest.raises((TypeError, ValueError), match=rf"^{read.__name__}: .*{message}"):
        read(file, **arguments)


@pytest.mark.parametrize("name", ["split=test/y.csv", "labels=1.npz", "probs=[...]/x.npz"])
def test_a_path_that_looks_like_an_argument_is_printed_as_it_is(capsys, name):
    assert main(["score", name]) == 2
    assert name in capsys.readouterr().err


def test_messages_name_the_options_of_the_command(tmp_path, capsys):
    path = tmp_path / "probs=a.npz"
    np.savez(path, scores=np.zeros((4, 2)), labels=[0, 1, 0, 1])
    assert main(["score", str(path)]) == 2
    error = capsys.readouterr().err
    assert "probs=a.npz" in error
    assert "--logits 'scores' or --probs 'scores'" in error
