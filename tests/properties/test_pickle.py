"""One law over every public class: a pickle and a deep copy compute what the original computes.

A new class is met here by itself. If it cannot be made without arguments, it needs an example below; if it must not be
copied, a reason.
"""

import ast
import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType

import numpy as np
import pytest
import torch
from torch import nn

import equipoise
from equipoise import (
    data,
    decisions,
    evaluate,
    experiments,
    integrations,
    losses,
    metrics,
    objectives,
    report,
    theory,
    training,
)
from equipoise.calibrators import (
    CalibrationByGroup,
    Calibrator,
    CalibratorModule,
    OwnCalibrator,
    PriorShift,
    TemperatureScaling,
    choose,
)
from equipoise.catalogue import CATALOGUE, SumTerm, options_of
from equipoise.core import MissingExtraError, Predictions, Rows
from equipoise.data import load
from helpers import toys

#: Public classes that hold what cannot be in two places, and what it is.
EXCUSED = {
    "equipoise.integrations.tensorboard.TensorBoardLog": "an open file",
    "equipoise.integrations.mlflow.MlflowLog": "a connection",
    "equipoise.integrations.wandb.WandbLog": "a connection",
    "equipoise.integrations.auto.Trained": "functions that save what was trained",
}

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(60, 3)) * 2
LABELS = (LOGITS + RNG.gumbel(size=LOGITS.shape)).argmax(1)
SITE = np.array(["a", "b"])[np.arange(60) % 2]
ROWS = Predictions(logits=2 * LOGITS, labels=LABELS, groups={"site": SITE}, class_names=["x", "y", "z"])
TENSORS = torch.tensor(LOGITS), torch.tensor(LABELS)
SCORE = evaluate.Score(0.5, 0.4, 0.6)


def public_classes():
    """Return every class that a package or an adapter offers, as module and name; adapters are not loaded for it."""
    packages = [
        package.name
        for package in pkgutil.iter_modules(equipoise.__path__)
        if package.name not in ("__main__", "cli")
    ]
    found = {}
    for name in ("equipoise", *(f"equipoise.{package}" for package in packages)):
        package = importlib.import_module(name)
        for attribute in getattr(package, "__all__", ()):
            kind = getattr(package, attribute)
            if inspect.isclass(kind) and not is_only_a_form(kind):
                found.setdefault(kind, (name, attribute))
    return [*found.values(), *adapters()]


def adapters():
    for path in sorted(Path(integrations.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text())
        classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                names = ast.literal_eval(node.value)
                yield from (
                    (f"equipoise.integrations.{path.stem}", name) for name in names if name in classes
                )


def is_only_a_form(kind):
    """Whether nothing can be an instance of this class alone."""
    return inspect.isabstract(kind) or getattr(kind, "_is_protocol", False) or issubclass(kind, Exception)


def audited():
    return evaluate.audit(ROWS, n_resamples=9)


def state():
    made = metrics.CalibrationState(3)
    made.update(ROWS)
    return made


def sums():
    made = evaluate.SliceSums()
    made.update(ROWS, SITE)
    return made


def compared():
    return evaluate.compare(ROWS, ROWS.with_scores(logits=LOGITS), n_resamples=9)


def compared_seeds():
    return experiments.compare_seeds({"a": [ROWS], "b": [ROWS.with_scores(logits=LOGITS)]}, n_resamples=9)


def reported():
    return report.report_of({"mine": ROWS}, n_resamples=9)


def dataset():
    return load("digits")


def spec():
    return experiments.Spec.from_table(
        {"data": "digits", "model": {"name": "mlp", "options": {"hidden": [4]}}}
    )


def run_scores():
    return experiments.RunScores(calibrator="identity", cards={"test": evaluate.score(ROWS, n_resamples=9)})


def loader():
    return training.Loader([(torch.zeros(2, 2), torch.tensor([0, 1]))])


def batches():
    return data.batches(dataset(), "test", batch_size=8)


def module():
    return TemperatureScaling().fit(LOGITS, LABELS).as_module()


def dense_scores():
    return training.DenseScores(
        state=state(), near=state(), inside=state(), sample=ROWS, places=np.arange(60), share=0.5,
        intersections=np.array([[3, 1]]), unions=np.array([[4, 2]]),
        near_images=np.zeros((1, 15, 2, 4)), inside_images=np.ones((1, 15, 2, 4)),
    )  # fmt: skip


def saved_model():
    from equipoise.integrations.saved_model import SavedModel

    return SavedModel(
        network=toys.make_network(0).eval(), calibrator=TemperatureScaling().fit(LOGITS, LABELS)
    )


def estimator():
    from sklearn.naive_bayes import GaussianNB

    from equipoise.integrations.sklearn import CalibratedClassifier

    return CalibratedClassifier(GaussianNB(), cv=2).fit(LOGITS, LABELS)


def objective(name):
    made = toys.OBJECTIVES[name](0)
    made.step(step_rows())  # one that is at work
    return made


def step_rows():
    torch.manual_seed(0)
    return toys.TRAIN(epoch=0, indices=None, start=0, rank=0, world_size=1, device=None)[0]


def certified():
    rows = Predictions(probs=np.linspace(0.6, 1, 300), labels=np.ones(300, int))
    return decisions.certify_threshold(rows, max_error=0.05, confidence=0.95)


def set_report():
    return decisions.PredictionSets("lac", coverage=0.8).fit(ROWS.take(slice(0, 30)))(
        ROWS.take(slice(30, 60))
    )


def trend():
    days = {
        name: evaluate.AuditState.of(ROWS.take(slice(start, start + 20)))
        for name, start in (("a", 0), ("b", 20))
    }
    return evaluate.find_trend(days, n_resamples=20)


def run_model():
    from equipoise.integrations.run_model import RunModel

    return RunModel(
        rule=None,
        label="a run",
        network=toys.make_network(0, plain=True).eval(),
        calibrator=TemperatureScaling().fit(LOGITS, LABELS),
        calibrator_name="temperature",
        class_names=("x", "y", "z"),
        raw_inputs=raw_inputs(),
        input_shape=(4,),
        architecture=None,
        options={},
        example=torch.zeros(1, 4),
        difference=0.0,
    )


def raw_inputs():
    from equipoise.integrations.raw_inputs import RawInputs

    return RawInputs("features", center=[1.0, 2.0, 3.0, 4.0], spread=[1.0, 2.0, 3.0, 4.0])


def scaled_network():
    from equipoise.integrations.raw_inputs import ScaledNetwork

    return ScaledNetwork(raw_inputs(), toys.make_network(0, plain=True)).eval()


class Halved:
    """A calibrator of someone's own."""

    def learn(self, logits, labels):
        return {"factor": 0.5}

    def map(self, logits, parameters):
        return logits * parameters["factor"]


def selective_classifier():
    from sklearn.naive_bayes import GaussianNB

    from equipoise.integrations.sklearn import SelectiveClassifier

    return SelectiveClassifier(GaussianNB(), max_error=0.5, holdout=0.5).fit(LOGITS, LABELS)


def selective_network():
    from equipoise.integrations.calibrated import SelectiveNetwork

    return SelectiveNetwork(nn.Identity(), certified())


def mean_classifier():
    from sklearn.naive_bayes import GaussianNB

    from equipoise.integrations.auto_estimators import MeanClassifier

    return MeanClassifier([GaussianNB().fit(LOGITS[start:], LABELS[start:]) for start in (0, 5)])


def auto_result():
    from equipoise.integrations.auto import auto

    return auto(ROWS, folder=Path(tempfile.mkdtemp()) / "model", calibrators=["temperature"], quiet=True)


EXAMPLES = {
    "AcceptRule": certified,
    "MeanClassifier": mean_classifier,
    "AutoResult": auto_result,
    "Alarm": lambda: decisions.Alarm("calibration", "", 25.0, "2026-03-01", 0.8, 0.7, 100),
    "DecisionCheck": lambda: decisions.DecisionCheck(True, "kept", {"n": 3}),
    "Evidence": lambda: decisions.Evidence([0.1, -0.2]),
    "LabelPlan": lambda: decisions.plan_labels(ROWS, width=0.2),
    "PoweredRate": lambda: decisions.PoweredRate(0.8, 0.7, 0.9, 0.6, 0.95, 50, 1000, 0.9),
    "ShiftReport": lambda: decisions.ShiftReport(9, 9, {"confidence": 0.5}, 0.05, False, 0.8, 0.8, 1600),
    "WatchedDay": lambda: decisions.WatchedDay("2026-03-01", 9, (), {"calibration": 1.0}, 1.0, 20.0, ()),
    "Certificate": lambda: certified().certificate,
    "PromiseCheck": lambda: certified().check(Predictions(probs=[0.9, 0.99], labels=[1, 1])),
    "Shortfall": lambda: (
        decisions.certify_threshold(ROWS, max_error=0.001, confidence=0.95).certificate.shortfall
    ),
    "CostedActions": lambda: decisions.least_cost_actions(ROWS, wrong=10, abstain=1),
    "CostSummary": lambda: decisions.least_cost_actions(ROWS, wrong=10, abstain=1).summary(),
    "ClassSets": set_report,
    "SetReport": lambda: set_report().report(),
    "CoverageRow": lambda: set_report().report().by_class[0],
    "CorpSplit": lambda: metrics.corp_split(ROWS),
    "CorpCurve": lambda: metrics.corp_curve(ROWS),
    "Trend": trend,
    "Change": lambda: trend().changes[0],
    "RawInputs": raw_inputs,
    "ScaledNetwork": scaled_network,
    "RunModel": run_model,
    "OwnCalibrator": lambda: OwnCalibrator(own=Halved()).fit(3 * LOGITS, LABELS),
    "Predictions": lambda: ROWS,
    "Rows": lambda: Rows(np.arange(3, dtype=np.uint64), named=False),
    "Scorecard": lambda: evaluate.score(ROWS, n_resamples=9),
    "PairedDifferences": compared,
    "StandardError": lambda: evaluate.StandardError(0.3, 99.0, 0.4, 2.0),
    "UnpairedDifferences": lambda: evaluate.compare_states(state(), state(), n_resamples=9),
    "Audit": audited,
    "AuditState": lambda: evaluate.AuditState.of(ROWS),
    "Caution": lambda: evaluate.Caution("few_rows", "few"),
    "Difference": lambda: compared()[0],
    "Gate": lambda: evaluate.check_limits(audited().card, [evaluate.Limit("ece", "max", 0.1)])[0],
    "Limit": lambda: evaluate.Limit("ece", "max", 0.1),
    "Score": lambda: SCORE,
    "Slice": lambda: audited().groups["site"][0],
    "SliceSums": sums,
    "Sweep": lambda: evaluate.Sweep("focal", "nll", ({"gamma": 1.0},), (SCORE,), (SCORE,), (0,), ""),
    "ShiftScores": lambda: evaluate.ShiftScores("ce", "identity", {"noise": {1: {"ece": SCORE}}}, {}),
    "CalibratorModule": module,
    "Choice": lambda: choose(ROWS, candidates=["temperature"], folds=2),
    "Trial": lambda: choose(ROWS, candidates=["temperature"], folds=2).trials[0],
    "FitResult": lambda: TemperatureScaling().fit(ROWS).result,
    "Batch": lambda: next(iter(batches())),
    "Batches": batches,
    "Dataset": dataset,
    "FileRecord": lambda: data.FileRecord(path="a", size=1, sha256="0"),
    "GaussianMixture": lambda: data.GaussianMixture(means=torch.eye(3), priors=torch.ones(3) / 3, spread=1.0),
    "ImageFiles": lambda: data.ImageFiles(folder="folder", paths=("a.png",), size=8),
    "OodPair": lambda: data.OodPair(inside=dataset(), outside=dataset()),
    "Shift": lambda: data.Shift(name="svhn", kind="ood", data="svhn"),
    "ComparisonResult": lambda: experiments.ComparisonResult(experiments.RunSummary(), [], Path("a.csv")),
    "ComparisonSpec": lambda: experiments.ComparisonSpec(
        name="c", specs=(spec(),), calibrators=(), baseline="ce", methods=("ce",)
    ),
    "DataSpec": lambda: experiments.DataSpec(name="npz", options={"path": "mine.npz"}),
    "Entry": lambda: CATALOGUE["losses"]["focal"],
    "MethodSpec": lambda: experiments.MethodSpec(name="focal", options={"gamma": 2.0}),
    "Component": lambda: experiments.Component(name="mlp", options={"hidden": (4,)}),
    "ModelSpec": lambda: experiments.ModelSpec(name="mlp", options={"hidden": (4,)}),
    "PaperResult": lambda: experiments.PaperResult(*range(len(experiments.PaperResult._fields))),
    "ResultTable": lambda: compared_seeds().table,
    "RunFolder": lambda: experiments.RunFolder(Path("runs/a")),
    "RunGroup": lambda: experiments.RunGroup(
        "d", "m", "", {}, {"ce": spec()}, {"ce": {"identity": run_scores()}}
    ),
    "RunScores": run_scores,
    "CalibrationByGroup": lambda: CalibrationByGroup(base=TemperatureScaling(), by="site").fit(
        Predictions(logits=LOGITS, labels=LABELS, groups={"site": ["a"] * len(LABELS)})
    ),
    "PriorShift": lambda: PriorShift(before=TemperatureScaling().fit(LOGITS, LABELS)).set_priors([1, 1, 2]),
    "ScoringOptions": lambda: experiments.ScoringOptions(calibrators=["vector"], n_resamples=9),
    "SeedComparison": compared_seeds,
    "Spec": spec,
    "ClassAdaptiveHeuristicLoss": lambda: losses.ClassAdaptiveHeuristicLoss(n_classes=3),
    "ClassAdaptiveLoss": lambda: losses.ClassAdaptiveLoss(n_classes=3),
    "MethodOption": lambda: options_of(CATALOGUE["losses"]["focal"])[0],
    "SumTerm": lambda: SumTerm("0.5", "mdca"),
    "Optimizer": lambda: training.Optimizer("SGD", lr=0.1, options={"momentum": 0.9}),
    "AveragedWeights": lambda: training.AveragedWeights(nn.Linear(2, 3)),
    "DistilledEnsemble": lambda: toys.OBJECTIVES["distilled_ensemble"](0),
    "LaplaceNetwork": lambda: objectives.LaplaceNetwork(toys.make_network(0)),
    "LastLayerLaplace": lambda: toys.OBJECTIVES["last_layer_laplace"](0),
    "MCDropout": lambda: toys.OBJECTIVES["mc_dropout"](0),
    "MonteCarloNetwork": lambda: objectives.MonteCarloNetwork(toys.make_network(0)),
    "SnapshotEnsemble": lambda: toys.OBJECTIVES["snapshot_ensemble"](0),
    "SnapshotNetwork": lambda: objectives.SnapshotNetwork(nn.Linear(2, 3), 2),
    "WeightAverage": lambda: toys.OBJECTIVES["ema"](0),
    "SumFactory": lambda: CATALOGUE["losses"]["focal+mdca"].factory,
    "Scaled": lambda: 0.5 * losses.MMCE(),
    "Sum": lambda: losses.FocalLoss() + 0.5 * losses.MMCE(),
    "BrierSplit": lambda: metrics.BrierSplit(0.1, 0.2),
    "CalibrationState": state,
    "ConsistencyTest": lambda: audited().card.consistency,
    "ReliabilityCurve": lambda: state().curve(),
    "RiskCoverage": lambda: audited().risk,
    "SmoothCurve": lambda: metrics.smooth_curve(ROWS),
    "TemperatureSweep": lambda: metrics.sweep_temperatures(ROWS),
    "Network": lambda: toys.make_network(0, plain=True),
    "DeepEnsemble": partial(objective, "deep_ensemble"),
    "DifferentiatedMutualLearning": lambda: objectives.DifferentiatedMutualLearning(
        toys.make_network(0), [toys.make_network(1)]
    ),
    "GammaMap": lambda: objectives.GammaMap(4),
    "GammaNet": partial(objective, "gamma_net"),
    "MemberCalibration": lambda: objectives.MemberCalibration(2),
    "MeanNetwork": lambda: objectives.MeanNetwork([toys.make_network(0, plain=True)]),
    "MetaLabelSmoothing": partial(objective, "meta_label_smoothing"),
    "MutualLearning": partial(objective, "mutual_learning"),
    "Parts": lambda: objectives.Parts(make_network=partial(nn.Linear, 2, 3)),
    "Pruned": partial(objective, "pruned"),
    "SampleAdaptive": partial(objective, "sample_adaptive"),
    "Smoothing": lambda: objectives.Smoothing(3),
    "Supervised": partial(objective, "supervised"),
    "Advice": lambda: report.Advice(recommendation="none"),
    "AfterCalibrator": lambda: report.AfterCalibrator(
        name="t", scores=(evaluate.score(ROWS, n_resamples=9),)
    ),
    "MethodCard": lambda: report.MethodCard(title="t"),
    "MethodResult": lambda: reported().methods[0],
    "Option": lambda: report.Option(name="t", n_parameters=1, log_loss=0.5, improvement=0.1, ece=0.1),
    "Report": reported,
    "RunResult": lambda: report.RunResult(scores=evaluate.score(ROWS, n_resamples=9)),
    "ConfidenceRegions": lambda: theory.ConfidenceRegions(v_m=0.1, v_prime=0.2, v_uc=0.3),
    "GradientWeight": lambda: theory.GradientWeight(np.array([0.5]), np.array([1.0])),
    "Cycle": lambda: training.Cycle(loader()),
    "DenseScores": dense_scores,
    "History": lambda: training.History([{"epoch": 0, "loss": 1.0}]),
    "Learner": lambda: training.Learner(nn.Linear(2, 3)),
    "Loader": loader,
    "Step": lambda: training.Step(torch.zeros(2, 3), {"loss": torch.tensor(1.0)}),
    "CalibratedClassifier": estimator,
    "SelectiveClassifier": selective_classifier,
    "SelectiveNetwork": selective_network,
    "SavedModel": saved_model,
    "RunLog": lambda: importlib.import_module("equipoise.integrations.run_log").RunLog(
        "a", "b", {}, [], {}, True
    ),
    "equipoise.integrations.calibrated.CalibratedNetwork": lambda: importlib.import_module(
        "equipoise.integrations.calibrated"
    ).CalibratedNetwork(nn.Identity(), TemperatureScaling().fit(LOGITS, LABELS)),
    "CalibrationScorer": lambda: importlib.import_module("equipoise.integrations.sklearn").CalibrationScorer(
        "nll"
    ),
    "equipoise.integrations.huggingface.AdaptLoss": lambda: importlib.import_module(
        "equipoise.integrations.huggingface"
    ).AdaptLoss(losses.AdaFocalLoss()),
}


def example_of(name, kind):
    make = EXAMPLES.get(name) or EXAMPLES.get(name.rpartition(".")[2])
    if make is not None:
        return make()
    if name.startswith("equipoise.integrations.torchmetrics."):
        metric = kind(3, inputs="logits")
        metric.update(*TENSORS)
        return metric
    needed = [
        parameter.name
        for parameter in inspect.signature(kind).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    assert not needed, (
        f"give an example of {name}, which needs {needed}, or say in EXCUSED why it is not copied"
    )
    return kind().fit(LOGITS, LABELS) if issubclass(kind, Calibrator) else kind()


def computed(one):
    """What an object answers, if it is one that can be asked."""
    if isinstance(one, CalibrationByGroup):
        return one(Predictions(logits=LOGITS, groups={"site": ["a"] * len(LOGITS)})).logits
    if isinstance(one, Calibrator):
        return one(LOGITS)
    if isinstance(one, losses.Term):
        return one(*TENSORS)
    if isinstance(one, CalibratorModule):
        return one(TENSORS[0])
    if isinstance(one, training.Objective):
        return one.step(step_rows()).scalars
    if hasattr(one, "compute"):
        return one.compute()
    if hasattr(one, "predict_proba"):
        return one.predict_proba(
            LOGITS[:, : 2 if isinstance(one, saved_model().__class__) else 3].astype(np.float32)
        )
    return repr(one) if type(one).__repr__ is not object.__repr__ else None


CLASSES = public_classes()


@pytest.mark.parametrize(("module", "name"), CLASSES, ids=lambda text: text.removeprefix("equipoise."))
def test_pickle_and_deep_copy_keep_everything(module, name):
    if f"{module}.{name}" in EXCUSED:
        pytest.skip(EXCUSED[f"{module}.{name}"])
    try:
        kind = getattr(importlib.import_module(module), name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    if is_only_a_form(kind):
        return
    one = example_of(f"{module}.{name}", kind)
    assert type(one) is kind
    for copied in (lambda thing: pickle.loads(pickle.dumps(thing)), copy.deepcopy):
        again = copied(one)
        same(again, one, {})
        same(computed(again), computed(one), {})


@pytest.mark.parametrize("name", [name for name in equipoise.core.__all__ if name.endswith("Error")])
def test_errors_cross_processes(name):
    kind = getattr(equipoise.core, name)
    again = pickle.loads(pickle.dumps(kind("what to do")))
    assert type(again) is kind
    assert str(again) == "what to do"


def test_no_excuse_is_left_over():
    assert EXCUSED.keys() <= {f"{module}.{name}" for module, name in CLASSES}


def same(one, two, seen):
    """Fail unless two things are alike to the last bit, through everything they hold."""
    if (id(one), id(two)) in seen:
        return
    seen[id(one), id(two)] = one, two
    assert type(one) is type(two)
    if isinstance(one, torch.Tensor):
        torch.testing.assert_close(one, two, rtol=0, atol=0, equal_nan=True)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, two)
    elif isinstance(one, Mapping):
        assert one.keys() == two.keys()
        for key in one:
            same(one[key], two[key], seen)
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for first, second in zip(one, two, strict=True):
            same(first, second, seen)
    elif isinstance(one, torch.optim.Optimizer):
        same(one.state_dict(), two.state_dict(), seen)
    elif isinstance(one, partial):
        same((one.func, one.args, one.keywords), (two.func, two.args, two.keywords), seen)
    elif isinstance(one, MethodType):
        assert one.__name__ == two.__name__
        same(one.__self__, two.__self__, seen)
    elif isinstance(one, FunctionType):
        assert one.__qualname__ == two.__qualname__
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            same(getattr(one, field.name), getattr(two, field.name), seen)
    elif hasattr(one, "__dict__"):
        same(*(kept(part.__dict__) for part in (one, two)), seen)
    else:
        assert one == two or one != one


def kept(attributes):
    """Processes, devices and batches under way are not copied; a copy finds its own."""
    return {name: value for name, value in attributes.items() if name not in ("_attached", "_batches")}
