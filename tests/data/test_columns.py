"""Data frames, columns and datasets by split as data of one's own."""

import io
import zipfile

import numpy as np
import pytest
import torch

from equipoise.core.errors import DataError
from equipoise.data import from_columns
from equipoise.data.folders import read_npy, read_npz_arrays
from equipoise.experiments import Spec
from equipoise.experiments.build.data import data_of
from equipoise.experiments.code.adapters import as_dataset


def columns(n=40, seed=0):
    generator = np.random.default_rng(seed)
    return {
        "age": generator.normal(40, 10, n),
        "income": generator.normal(5e4, 1e4, n),
        "label": ["no", "yes"] * (n // 2),
    }


def images(n, side=6):
    return {"image": np.full((n, side, side, 3), 7, np.uint8), "label": np.arange(n) % 2}


def test_a_data_frame_is_standardized_and_split():
    pandas = pytest.importorskip("pandas")
    data = as_dataset(pandas.DataFrame(columns()), name="mine", seed=0)
    assert (data.kind, data.class_names, len(data.rows("test"))) == ("features", ("no", "yes"), 8)
    assert data.inputs.shape == (40, 2)
    torch.testing.assert_close(data.mean, data.inputs[data.rows("train")].mean(0), rtol=1e-4, atol=1e-3)


def test_a_spec_takes_a_function_that_returns_a_frame(tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "mine.py").write_text(
        "import pandas as pd\n\ndef rows():\n"
        "    return pd.DataFrame({'a': range(40), 'label': ['x', 'y'] * 20})\n"
    )
    spec = Spec.from_table({"data": "mine.py:rows", "model": "mlp"}, base_dir=str(tmp_path))
    assert data_of(spec).class_names == ("x", "y")


def test_splits_keep_their_rows_and_missing_ones_are_drawn_from_train():
    data = as_dataset(
        {"train": images(40), "validation": images(10), "test": images(20)}, name="mine", seed=0
    )
    assert (data.kind, tuple(data.inputs.shape)) == ("image", (70, 3, 6, 6))
    assert {split: len(rows) for split, rows in data.splits.items()} == {
        "train": 36, "tune": 10, "calib": 4, "test": 20,
    }  # fmt: skip
    assert data.rows("test").tolist() == list(range(50, 70))


class Datasets:
    """The interface of `datasets`: names of columns, columns by name, and names of class numbers."""

    def __init__(self, table, names):
        self._table, self.column_names = table, list(table)
        self.features = {"label": type("ClassLabel", (), {"names": names})()}

    def __getitem__(self, name):
        return self._table[name]


def test_an_object_of_datasets_names_its_classes():
    pixels = [np.zeros((4, 4), np.uint8)] * 20
    table = Datasets({"image": pixels, "label": [0, 1] * 10}, ["cat", "dog"])
    data = as_dataset({"train": table, "test": table}, name="mine", seed=0)
    assert (data.class_names, tuple(data.inputs.shape)) == (("cat", "dog"), (40, 1, 4, 4))


def test_a_folder_of_images_by_class(tmp_path):
    pil = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(10):
            pil.new("RGB", (8 + number, 9)).save(tmp_path / "pets" / name / f"{number}.png")
    data = as_dataset(tmp_path / "pets", name="mine", seed=0)
    assert (data.class_names, len(data)) == (("cat", "dog"), 20)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({"x": [[1.0]] * 4, "lable": [0] * 4}, "label"),
        (
            {"train": images(10), "testing": images(4)},
            "expected the splits train, tune, calib, test .* got 'testing'",
        ),
        ({"train": images(10)}, "expected the splits 'train' and 'test'"),
        ({"train": images(10), "test": images(4, side=5)}, "inputs of all splits must have one shape"),
        (
            {"image": [np.zeros((4, 4), np.uint8), np.zeros((5, 4), np.uint8)], "label": [0, 1]},
            r"must have one shape, got \(4, 4\) and \(5, 4\).*Resize the images",
        ),
        ({"a": [1.0, 2.0], "label": [0.0, float("nan")]}, "the label of row 1 is missing"),
        ({"a": [1.0, 2.0], "label": ["x", None]}, "the label of row 1 is missing"),
        ({"a": [1.0, float("nan")], "label": [0, 1]}, "'a' must hold one finite number per row"),
        ({"a": ["u", "v"], "label": [0, 1]}, "'a' must hold numbers"),
        ({"a": [1.0, 2.0], "label": [0, 1], "y": [0, 1]}, "got several: label, y"),
        ({"label": [0, 1]}, "expected a column of inputs"),
    ],
)
def test_mistakes_are_named(found, sentence):
    with pytest.raises(DataError, match=sentence):
        from_columns(found, name="mine")


def forged_header(shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue() + bytes(8)


def test_a_false_header_does_not_take_memory(tmp_path):
    forged = forged_header((1 << 40,))
    (tmp_path / "a.npy").write_bytes(forged)
    with pytest.raises(DataError, match="header claims 8796093022208 bytes"):
        read_npy(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", forged)
    with pytest.raises(DataError, match="header claims 8796093022208 bytes"):
        read_npz_arrays(tmp_path / "a.npz")
    np.savez_compressed(tmp_path / "zeros.npz", x=np.zeros(50_000_000))
    with pytest.raises(DataError, match="would grow from"):
        read_npz_arrays(tmp_path / "zeros.npz")
