"""`auto` with trainings: the ladder, the budget, resuming, and that `test` decides nothing."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

import equipoise
from equipoise.core.errors import DataError, SpecError
from equipoise.experiments import Execution, Spec, auto
from equipoise.experiments.auto import Budget, climb, held_out_rows, parse_budget
from equipoise.experiments.comparison import Runs

EXECUTION = Execution(quiet=True, threads=1)
RECIPE = {"name": "quick", "epochs": 2}


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    return (x[:900] / 16).astype(np.float32), y[:900]


def spec(**recipe):
    options = {"hidden": [16]}
    model = {"name": "mlp", "options": options}
    return Spec.from_table({"data": "digits", "model": model, "recipe": {**RECIPE, **recipe}})


def train(folder, budget, given=None, *, workers=1, **options):
    lines = []
    found = climb(
        given or spec(),
        folder,
        budget=parse_budget(budget),
        execution=EXECUTION,
        workers=workers,
        report=lines.append,
        **options,
    )
    return found, lines


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        (5, Budget(runs=5)),
        ("5runs", Budget(runs=5)),
        ("90s", Budget(seconds=90)),
        ("1.5h", Budget(seconds=5400)),
    ],
)
def test_budgets(given, budget):
    assert parse_budget(given) == budget


@pytest.mark.parametrize("given", ["0", 0, "0m", "-3", "soon", "2.5", "30 weeks", ""])
def test_what_is_not_a_budget(given):
    with pytest.raises(SpecError, match="budget"):
        parse_budget(given)


def test_the_first_five_trainings_are_one_ensemble(tmp_path):
    found, lines = train(tmp_path, 5)
    assert found.planned == "ensemble of 5"
    assert {name: len(runs) for name, runs in found.members.items()} == {
        "ce": 1,
        "ema": 1,
        "ensemble of 5": 5,
        "3 x ce": 3,
        "2 x ema": 2,
    }
    assert len({run.spec().seed for run in found.members["ensemble of 5"]}) == 5
    assert found.trainings == 5
    assert "best so far" in lines[-1]
    assert "0 of 5 trainings left" in lines[-1]
    rows = held_out_rows(found.members["ensemble of 5"])
    assert len(rows) == sum(len(found.members["ce"][0].predictions(part)) for part in ("tune", "calib"))


def test_an_interrupted_call_continues(tmp_path, monkeypatch):
    done, real = [], Runs.do

    def stopping(self, specs, **options):
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(len(specs))
        return real(self, specs, **options)

    monkeypatch.setattr(Runs, "do", stopping)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, 3)
    monkeypatch.setattr(Runs, "do", real)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*/last.pt")}
    assert len(before) == 2
    found, _ = train(tmp_path, 3)
    assert found.trainings == 3
    assert all(file.stat().st_mtime_ns == time for file, time in before.items())
    whole, _ = train(tmp_path / "whole", 3)
    for name, runs in found.members.items():
        assert np.array_equal(held_out_rows(runs).probs, held_out_rows(whole.members[name]).probs)
    # Nothing is left to do, so that no time is added.
    again, _ = train(tmp_path, 3)
    assert again.seconds == pytest.approx(found.seconds, abs=2e-3)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(("engine", "workers"), [("local", 2), ("ray", None)])
def test_processes_and_clusters_give_the_same_networks(tmp_path, engine, workers, request):
    if engine == "ray":
        request.addfinalizer(pytest.importorskip("ray").shutdown)
    found, _ = train(tmp_path / "several", 3, engine=engine, workers=workers)
    single, _ = train(tmp_path / "single", 3)
    assert list(found.members) == list(single.members)
    for name, runs in found.members.items():
        assert np.array_equal(held_out_rows(runs).probs, held_out_rows(single.members[name]).probs)


def test_a_time_budget_stops_before_what_does_not_fit(tmp_path, monkeypatch):
    clock = [0.0]
    real = Runs.do

    def slow(self, specs, **options):
        clock[0] += 10.0 * len(specs)
        return real(self, specs, **options)

    monkeypatch.setattr(Runs, "do", slow)
    monkeypatch.setattr(auto.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(auto, "usable_cores", lambda: 1)
    found, lines = train(tmp_path, "35s")
    assert found.trainings == 3
    assert found.seconds == 30
    assert "0:05 of 0:35 left" in lines[-1]
    # The first training is done even if it takes longer than the budget, and the answer says so.
    found, _ = train(tmp_path / "short", "5s")
    assert found.trainings == 1
    assert found.left == "0:00 of 0:05"


def test_more_budget_tries_losses_by_halving(tmp_path):
    found, _ = train(tmp_path, 8, spec(epochs=4))
    assert [one.share for one in found.short] == [0.25] * 4 + [0.5] * 2
    assert {one.method for one in found.short[:4]} == {"label_smoothing", "focal", "cutmix", "regmixup"}
    ranked = sorted(found.short[:4], key=lambda one: one.nll)
    assert {one.method for one in found.short[4:]} == {one.method for one in ranked[:2]}
    winner = min(found.short[4:], key=lambda one: one.nll).method
    assert winner in found.members
    assert len(found.members["ensemble of 6"]) == 6
    assert found.planned == "ensemble of 5"
    assert found.trainings == 8


def test_rows_that_chose_an_epoch_choose_nothing_else(tmp_path):
    found, _ = train(tmp_path, 1, spec(keep="best"))
    run = found.members["ce"][0]
    assert len(held_out_rows([run])) == len(run.predictions("calib"))


def test_a_failed_first_training_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(Runs, "do", lambda self, specs, **_: [None] * len(specs))
    with pytest.raises(DataError, match="first training failed"):
        train(tmp_path, 1)


def answer(folder, data, budget=3, **options):
    return equipoise.auto(
        data,
        {"name": "mlp", "options": {"hidden": [16]}},
        budget=budget,
        folder=folder,
        recipe=RECIPE,
        execution=EXECUTION,
        workers=1,
        quiet=True,
        **options,
    )


def test_the_answer_is_a_model_with_its_evidence(tmp_path, digits):
    found = answer(tmp_path / "model", digits)
    stored = json.loads((tmp_path / "model/auto.json").read_text())
    assert stored["statement"] == found.statement
    assert "Cost: 3 trainings" in found.statement
    assert {one["label"] for one in stored["tried"]} >= {"ce + temperature", "ensemble of 3 + temperature"}
    assert found.statement.split(".")[0] in (tmp_path / "model/report.html").read_text()
    model = equipoise.load_model(found.artifact)
    probs = model.predict_proba(digits[0][:50])
    assert probs.shape == (50, 10)
    again = answer(tmp_path / "model", digits)
    assert again.statement == found.statement
    assert np.array_equal(equipoise.load_model(again.artifact).predict_proba(digits[0][:50]), probs)


def test_an_ensemble_is_one_file(tmp_path, digits):
    from equipoise.calibrators import TemperatureScaling
    from equipoise.integrations.run_model import save_members

    found, _ = train(tmp_path, 3)
    runs = found.members["ensemble of 3"]
    rows = held_out_rows(runs)
    fitted = TemperatureScaling().fit(rows)
    model = equipoise.load_model(save_members(runs, fitted, tmp_path))
    assert len(model.network.networks) == 3
    stored = fitted(
        equipoise.Predictions(probs=np.mean([run.predictions("test").probs for run in runs], axis=0))
    )
    from equipoise.experiments.build.data import data_of

    data = data_of(spec())
    inputs = data.inputs[data.rows("test")]
    np.testing.assert_allclose(model.predict_proba(inputs), stored.probs, atol=1e-5)


def test_test_rows_decide_nothing(tmp_path):
    """Other inputs and labels in ``test``: the same candidates, tests, answer and model, to the last bit."""
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    rng = np.random.default_rng(0)
    arrays = {"x_train": x[:900], "y_train": y[:900], "x_test": x[900:1100], "y_test": y[900:1100]}
    poisoned = arrays | {
        "x_test": rng.normal(size=(200, 64)).astype(np.float32),
        "y_test": rng.integers(0, 10, 200),
    }
    found = []
    for name, content in (("clean", arrays), ("poisoned", poisoned)):
        np.savez(tmp_path / f"{name}.npz", **content)
        found.append(answer(tmp_path / name, tmp_path / f"{name}.npz", budget=2))
    clean, other = (one.test.as_dict() for one in found)
    assert clean == other
    models = [equipoise.load_model(one.artifact).predict_proba(x[:100]) for one in found]
    assert np.array_equal(*models)


def test_a_folder_of_something_else_is_left_alone(tmp_path, digits):
    answer(tmp_path / "model", digits, budget=1)
    with pytest.raises(SpecError, match=r"other data, another model or recipe\. Pass another folder"):
        equipoise.auto(digits, "mlp", budget=1, folder=tmp_path / "model", execution=EXECUTION, quiet=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("all of it")
    with pytest.raises(SpecError, match="not a folder of `auto`"):
        answer(tmp_path / "mine", digits, budget=1)


@pytest.mark.parametrize(
    ("data", "model", "options", "message"),
    [
        ("digits", "mpl", {}, "no model 'mpl'; did you mean 'mlp'"),
        ("digits", "mlp", {"budget": 0}, "above 0"),
        ("digitz", "mlp", {}, "no dataset 'digitz'; did you mean 'digits'"),
        ("digits", "sklearn:LogisticRegresion", {}, "did you mean 'LogisticRegression'"),
        ("digits", "sklearn:LinearSVC", {}, "no probabilities"),
        ("digits", {"name": "sklearn:GaussianNB", "options": {"depth": 3}}, {}, "depth"),
        (
            "digits",
            "mlp",
            {"overrides": [("data.calib", 20), ("data.tune", 20)]},
            "at least 60 rows in tune and calib",
        ),
        (np.zeros((9, 2)), "mlp", {}, "expected a file, a name"),
        ((np.zeros((9, 2)), np.zeros(9)), None, {}, "need a model"),
    ],
)
def test_errors_have_remedies(data, model, options, message, tmp_path):
    with pytest.raises((SpecError, DataError), match=message):
        equipoise.auto(data, model, folder=tmp_path / "model", execution=EXECUTION, quiet=True, **options)


def test_a_classifier_of_scikit_learn(tmp_path, digits):
    joblib = pytest.importorskip("joblib")
    from sklearn.pipeline import Pipeline

    fits = []
    real = Pipeline.fit

    def counting(self, *rows, **options):
        fits.append(len(rows[1]))
        return real(self, *rows, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pipeline, "fit", counting)
        tree = {"name": "sklearn:DecisionTreeClassifier", "options": {"max_depth": 6}}
        found = equipoise.auto(digits, tree, budget=4, folder=tmp_path / "model", quiet=True)
        assert len(fits) == 4
        again = equipoise.auto(digits, tree, budget=6, folder=tmp_path / "model", quiet=True)
        assert len(fits) == 6  # four members are reused
    # Single trees are far worse than their mean.
    assert found.test.answer.source == "ensemble of 4"
    assert again.test.answer.source.startswith("ensemble of")
    model = joblib.load(again.artifact)
    assert model.predict_proba(digits[0][:5]).shape == (5, 10)
    assert (model.predict(digits[0]) == digits[1]).mean() > 0.9
