import json

import numpy as np
import pytest

from equipoise.core import Predictions, write_predictions
from equipoise.core.errors import DataError
from equipoise.core.reading import read_predictions
from equipoise.core.reading.rewriting import ScoreTable


def accept(rows):
    return rows.confidence >= 0.5


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".npz", ".parquet", ".safetensors"])
def test_a_column_joins_the_table_and_nothing_else_changes(ending, tmp_path):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    if ending == ".safetensors":
        pytest.importorskip("safetensors")
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], 40)
    rows = Predictions(probs=probs, labels=rng.integers(0, 3, 40))
    old, new = tmp_path / f"old{ending}", tmp_path / f"new{ending}"
    write_predictions(rows, old)
    made = ScoreTable(old, {}).add(new, "accept", accept)
    assert made.n_rows == 40
    back = read_predictions(new, groups="accept")
    assert (back.probs == read_predictions(old).probs).all()
    assert (back.labels == rows.labels).all()
    assert [str(one) in ("True", "1", "true") for one in back.groups["accept"]] == accept(rows).tolist()


def test_cells_of_csv_files_stay_as_they_are_written(tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text('code,"p, said",confidence,correct\r\n007,"a,b",0.10,\r\n8,"x",0.90,\r\n')
    ScoreTable(old, {}).add(new, "set", lambda rows: np.where(rows.confidence > 0.5, "a,b", "c"))
    want = b'code,"p, said",confidence,correct,set\r\n007,"a,b",0.10,,c\r\n8,"x",0.90,,"a,b"\r\n'
    assert new.read_bytes() == want


def test_notes_on_a_calibrator_are_kept(tmp_path):
    from equipoise.calibrators import TemperatureScaling
    from equipoise.calibrators.files import calibrate_file

    fitted = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
    (tmp_path / "a.csv").write_text("logit_cat,logit_dog\n3,0\n1,2\n")
    calibrate_file(fitted, tmp_path / "a.csv", tmp_path / "b.csv")
    made = ScoreTable(tmp_path / "b.csv", {}).add(tmp_path / "c.csv", "accept", accept)
    assert made.notes == tmp_path / "c.csv.equipoise.json"
    assert "temperature" in json.loads(made.notes.read_text())["calibrator"]


def test_a_name_that_is_taken_and_dense_rows_are_errors(tmp_path):
    (tmp_path / "a.csv").write_text("confidence,accept\n0.9,1\n")
    with pytest.raises(DataError, match="has a column 'accept' already"):
        ScoreTable(tmp_path / "a.csv", {}).add(tmp_path / "b.csv", "accept", accept)
    np.savez(tmp_path / "a.npz", probs=np.full((2, 3, 4, 4), 1 / 3))
    with pytest.raises(DataError, match="dense"):
        ScoreTable(tmp_path / "a.npz", {}).add(tmp_path / "b.npz", "accept", accept)
