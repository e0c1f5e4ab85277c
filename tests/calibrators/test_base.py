"""What all calibrators inherit: forms, errors, the guard, files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from equipoise import Predictions, score
from equipoise.calibrators import (
    FocalRecovery,
    Identity,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
    from_artifact,
    load,
)
from equipoise.core.errors import DataError, SplitError
from equipoise.core.rows import check_disjoint
from helpers.calibration_data import sample

ARTIFACTS = Path(__file__).parent / "artifacts"
STORED = json.loads((ARTIFACTS / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(STORED["answers"]))
def test_files_of_every_version_load_forever(name: str) -> None:
    calibrator = load(ARTIFACTS / name)
    np.testing.assert_allclose(
        calibrator(np.array(STORED["logits"])), STORED["answers"][name], rtol=1e-9, atol=1e-12
    )


def test_no_file_is_forgotten() -> None:
    assert {path.name for path in ARTIFACTS.iterdir()} == {"expected.json", *STORED["answers"]}


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    logits, labels = sample(50, 3)
    TemperatureScaling().fit(logits, labels).save(path)
    content = json.loads(path.read_text())
    content["parameters"]["temperature"]["values"] = [1.0]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="changed or damaged"):
        load(path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "other"}'])
@pytest.mark.parametrize("ending", ["json", "safetensors"])
def test_other_files_are_refused(text: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"map.{ending}"
    path.write_text(text)
    with pytest.raises(DataError, match="is not a"):
        load(path)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    content = Identity().fit([[1.0, 0.0]], [0]).to_artifact()
    content["version"] = 99
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="Upgrade equipoise"):
        load(path)


def test_pickles_and_giant_json_are_refused(tmp_path: Path) -> None:
    calibrator = TemperatureScaling().fit([[1.0, 0.0]] * 3, [0, 0, 1])
    with pytest.raises(ValueError, match="never pickled"):
        calibrator.save(tmp_path / "map.pkl")
    logits, labels = sample(40, 330)
    giant = MatrixScaling()._restored(MatrixScaling().fit(logits[:, :3], labels % 3).result, 3, None, None)
    content = giant.to_artifact()
    content["parameters"]["matrix"] = {"shape": [100_001], "values": [0.0] * 100_001}
    from equipoise.calibrators.artifact import write

    with pytest.raises(ValueError, match=r"Save it as \.safetensors"):
        write(tmp_path / "map.json", content)


def test_an_artifact_is_plain_json() -> None:
    calibrator = VectorScaling().fit(*sample(60, 3))
    again = from_artifact(json.loads(json.dumps(calibrator.to_artifact())))
    np.testing.assert_array_equal(again([[1.0, 2.0, 3.0]]), calibrator([[1.0, 2.0, 3.0]]))


def test_a_loaded_map_still_refuses_to_be_judged_on_its_rows(tmp_path: Path) -> None:
    logits, labels = sample(60, 3)
    calib = Predictions(logits=logits, labels=labels, split="calib")
    TemperatureScaling().fit(calib).save(tmp_path / "map.json")
    leaked = load(tmp_path / "map.json")(calib)
    with pytest.raises(SplitError):
        check_disjoint(leaked.rows, leaked.fitted_on, where="score")


@pytest.mark.parametrize("ending", [".json", ".safetensors"])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("n", [1000, 20_000])
def test_a_loaded_map_refuses_to_be_judged_on_some_of_its_rows(
    ending: str, named: bool, n: int, tmp_path: Path
) -> None:
    logits, labels = sample(n + 500, 3)
    ids = np.arange(n + 500) if named else None
    rows = Predictions(logits=logits, labels=labels, ids=ids)
    TemperatureScaling().fit(rows.take(slice(0, n))).save(tmp_path / f"map{ending}")
    loaded = load(tmp_path / f"map{ending}")
    with pytest.raises(SplitError, match="were used to fit the calibrator"):
        score(loaded(rows.take(slice(n - 250, n + 250))), n_resamples=1)
    score(loaded(rows.take(slice(n, n + 500))), n_resamples=1)
    assert (tmp_path / f"map{ending}").stat().st_size < 200_000
    loaded.save(tmp_path / f"again{ending}")
    assert (tmp_path / f"again{ending}").read_bytes() == (tmp_path / f"map{ending}").read_bytes()


def test_a_map_that_knows_no_rows_leaves_its_mark() -> None:
    logits, labels = sample(60, 3)
    raw = Predictions(logits=logits, labels=labels, ids=np.arange(60))
    mapped = FocalRecovery()(raw)
    assert mapped.fitted_on is not None
    assert len(mapped.fitted_on.hashes) == 0
    score(mapped, n_resamples=1)


def test_a_chain_remembers_the_rows_of_both_maps() -> None:
    logits, labels = sample(90, 3)
    first, second, fresh = (
        Predictions(logits=logits[part], labels=labels[part], ids=np.arange(90)[part])
        for part in (slice(0, 30), slice(30, 60), slice(60, 90))
    )
    one = TemperatureScaling().fit(first)
    two = VectorScaling().fit(one(second))
    for rows in (first, second):
        leaked = two(one(rows))
        with pytest.raises(SplitError):
            check_disjoint(leaked.rows, leaked.fitted_on, where="score")
    judged = two(one(fresh))
    check_disjoint(judged.rows, judged.fitted_on, where="score")


def test_probabilities_come_as_predictions() -> None:
    logits, labels = sample(200, 3)
    by_logits = TemperatureScaling().fit(logits, labels).temperature
    told = Predictions(probs=torch.from_numpy(logits).softmax(-1), labels=labels)
    assert TemperatureScaling().fit(told).temperature == pytest.approx(by_logits, rel=1e-9)


def test_labels_missing_or_twice() -> None:
    logits, labels = sample(20, 3)
    with pytest.raises(TypeError, match="`labels` are missing"):
        TemperatureScaling().fit(logits)
    with pytest.raises(TypeError, match="carry their own"):
        TemperatureScaling().fit(Predictions(logits=logits, labels=labels), labels)


def test_top_label_predictions_have_no_logits() -> None:
    told = Predictions(predicted=[0], confidence=[0.9], labels=[0])
    with pytest.raises(DataError, match="Save logits or probabilities"):
        TemperatureScaling().fit(told)


def test_a_single_number_is_refused() -> None:
    calibrator = TemperatureScaling().fit([[1.0, 0.0]] * 3, [0, 0, 1])
    with pytest.raises(ValueError, match="row per sample"):
        calibrator(1.0)


def test_the_module_moves_and_follows_gradients() -> None:
    calibrator = VectorScaling().fit(*sample(60, 3))
    module = calibrator.as_module()
    logits = torch.randn(4, 3, requires_grad=True)
    module(logits).sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().sum() > 0
    assert set(module.state_dict()) == {"scale", "offset"}
    torch.testing.assert_close(module.float()(logits), calibrator.as_module()(logits), rtol=1e-5, atol=1e-5)


def test_the_module_takes_one_column() -> None:
    logits, labels = sample(60, 2)
    column = torch.from_numpy(logits[:, 1] - logits[:, 0])
    calibrator = TemperatureScaling().fit(column, labels)
    module = calibrator.as_module()
    torch.testing.assert_close(module(column), calibrator(column))
    torch.testing.assert_close(module(column[:, None]), calibrator(column[:, None]))


def test_a_map_that_hurts_is_given_up_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from equipoise.calibrators import FitResult

    bad = FitResult(parameters={"temperature": np.array(0.01)}, words="")
    monkeypatch.setattr(TemperatureScaling, "_learn", lambda self, predictions: bad)
    logits, labels = sample(50, 3)
    calibrator = TemperatureScaling().fit(logits, labels)
    assert calibrator.result.identity
    assert calibrator.temperature == 1.0
    assert "given up" in calibrator.result.warnings[0]
    calibrator.save(tmp_path / "map.json")
    for one in (calibrator, load(tmp_path / "map.json")):
        np.testing.assert_array_equal(one(logits), logits)
        np.testing.assert_array_equal(one.as_module()(torch.from_numpy(logits)).numpy(), logits)
