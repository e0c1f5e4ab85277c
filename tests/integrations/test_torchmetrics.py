"""Our metrics keep the promises of torchmetrics, share one state, and agree with its own where it has them."""

import copy
import pickle

import pytest
import torch
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassCalibrationError

from equipoise import Predictions, score
from equipoise.core.errors import DataError
from equipoise.integrations.torchmetrics import (
    ECE,
    KS,
    MCE,
    NLL,
    AdaptiveECE,
    Brier,
    CalibrationMetric,
    ClasswiseECE,
    SmECE,
)
from helpers.host_processes import PARTS, batch, measure

ALL = {
    "ece": ECE,
    "mce": MCE,
    "classwise_ece": ClasswiseECE,
    "nll": NLL,
    "brier": Brier,
    "ada_ece": AdaptiveECE,
    "smece": SmECE,
    "ks": KS,
}


def collection(**options):
    return MetricCollection({key: make(5, inputs="logits", **options) for key, make in ALL.items()})


@pytest.mark.parametrize("key", ALL)
def test_streaming_gives_the_numbers_of_the_scorecard(key):
    logits, labels = batch()
    metric = ALL[key](5, inputs="logits")
    for part in PARTS:
        metric.update(logits[part], labels[part])
    wanted = score(Predictions(logits=logits, labels=labels))[key].value
    assert float(metric.compute()) == pytest.approx(
        wanted, rel=1e-6 if key not in ("ada_ece", "smece", "ks") else 2e-3
    )


@pytest.mark.parametrize(("norm", "ours"), [("l1", ECE), ("max", MCE)])
def test_it_agrees_with_the_hosts_own(norm, ours):
    logits, labels = batch()
    theirs = MulticlassCalibrationError(5, n_bins=15, norm=norm)
    probs = logits.softmax(-1)
    assert float(ours(5, inputs="probs")(probs, labels)) == pytest.approx(
        float(theirs(probs, labels)), abs=1e-6
    )


def test_a_collection_updates_one_state_for_all(monkeypatch):
    calls = []
    update = CalibrationMetric.update
    monkeypatch.setattr(
        CalibrationMetric, "update", lambda self, *rows: (calls.append(1), update(self, *rows))
    )
    metrics = collection()
    logits, labels = batch()
    metrics.update(logits[PARTS[0]], labels[PARTS[0]])
    assert [sorted(group) for group in metrics.compute_groups.values()] == [sorted(ALL)]
    calls.clear()
    metrics.update(logits[PARTS[1]], labels[PARTS[1]])
    assert len(calls) == 1
    found = metrics.compute()
    wanted = collection(compute_on_cpu=False)(logits, labels)
    assert found == {key: pytest.approx(float(value)) for key, value in wanted.items()}


def test_forward_gives_the_batch_and_keeps_the_sum():
    logits, labels = batch()
    metric, alone = NLL(5, inputs="logits"), NLL(5, inputs="logits")
    values = [metric(logits[part], labels[part]) for part in PARTS]
    assert [float(alone(logits[part], labels[part])) for part in PARTS] == [float(value) for value in values]
    assert metric.compute() == pytest.approx(float(NLL(5, inputs="logits")(logits, labels)))
    metric.reset()
    assert metric.state().n_samples == 0


def test_merge_pickle_copy_and_state_dict_keep_the_rows():
    logits, labels = batch()
    one, two = ECE(5, inputs="logits"), ECE(5, inputs="logits")
    one.update(logits[PARTS[0]], labels[PARTS[0]])
    two.update(logits[PARTS[1]], labels[PARTS[1]])
    one.merge_state(two)
    wanted = float(ECE(5, inputs="logits")(logits, labels))
    one.persistent(mode=True)
    loaded = ECE(5, inputs="logits")
    loaded.persistent(mode=True)
    loaded.load_state_dict(one.state_dict())
    for twin in (one, copy.deepcopy(one), pickle.loads(pickle.dumps(one)), one.clone(), loaded):
        assert twin.state().n_samples == len(labels)
        assert twin.state().curve().expected_error() == pytest.approx(wanted)


@pytest.mark.slow
def test_two_processes_have_what_one_has(tmp_path):
    torch.multiprocessing.spawn(measure, (str(tmp_path),), nprocs=len(PARTS))
    logits, labels = batch()
    metrics = MetricCollection([one(5, inputs="logits") for one in (ECE, NLL, SmECE)])
    for part in PARTS:
        metrics.update(logits[part], labels[part])
    wanted = metrics.compute()
    for rank in range(len(PARTS)):
        assert torch.load(tmp_path / f"{rank}.pt") == wanted


def test_ignored_rows_do_not_exist():
    logits, labels = batch()
    hidden = labels.clone()
    hidden[::2] = -1
    metric = Brier(5, inputs="logits", ignore_index=-1)
    metric.update(logits, torch.full_like(labels, -1))
    metric.update(logits, hidden)
    assert float(metric.compute()) == pytest.approx(
        float(Brier(5, inputs="logits")(logits[1::2], labels[1::2]))
    )


def test_rows_seen_in_inference_mode_are_added_to_later():
    logits, labels = batch()
    metric = ECE(5, inputs="logits")
    with torch.inference_mode():
        metric.update(logits, labels)
    metric.update(logits, labels)
    assert metric.state().n_samples == 400


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ValueError, match="`inputs` must be 'logits' or 'probs'"):
        ECE(5, inputs="scores")
    with pytest.raises(DataError, match="look like logits"):
        ECE(5, inputs="probs").update(*batch())
    metric = ECE(5, inputs="logits")
    with pytest.warns(UserWarning, match="before"), pytest.raises(DataError, match="no rows yet"):
        metric.compute()


def test_bounds_of_a_plot_are_the_facts_of_the_metric():
    assert (NLL.plot_lower_bound, NLL.plot_upper_bound, NLL.higher_is_better) == (0.0, None, False)
    assert (Brier.plot_lower_bound, Brier.plot_upper_bound) == (0.0, 2.0)
    assert (ECE.plot_lower_bound, ECE.plot_upper_bound) == (0.0, 1.0)


CASTS = {
    "to": lambda metric, dtype: metric.to(dtype),
    "to with a device": lambda metric, dtype: metric.to("cpu", dtype),
    "set_dtype": lambda metric, dtype: metric.set_dtype(dtype),
    "in a module": lambda metric, dtype: torch.nn.ModuleList([metric]).to(dtype)[0],
    "in a collection": lambda metric, dtype: MetricCollection({"ece": metric}).to(dtype)["ece"],
    "half": lambda metric, dtype: torch.nn.ModuleList([metric]).half()[0],
    "bfloat16": lambda metric, dtype: torch.nn.ModuleList([metric]).bfloat16()[0],
    "float": lambda metric, dtype: metric.float(),
}


@pytest.mark.parametrize("cast", CASTS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_sums_keep_their_types(cast, dtype):
    logits, labels = batch()
    metric, known = (ECE(5, inputs="logits") for _ in range(2))
    metric.update(logits, labels)
    metric = CASTS[cast](metric, dtype)
    for _ in range(30):
        metric.update(logits, labels)
    known.update(logits, labels)
    assert (metric.counts.dtype, metric.floats.dtype) == (torch.int64, torch.float64)
    assert float(metric.compute()) == pytest.approx(float(known.compute()), rel=1e-6)
    metric.reset()
    assert (metric.counts.dtype, metric.floats.dtype) == (torch.int64, torch.float64)


def saved(**options):
    metric = ECE(**{"num_classes": 5, "inputs": "logits", **options})
    metric.persistent(mode=True)
    metric.update(
        *batch() if metric.num_classes == 5 else (torch.zeros(2, metric.num_classes), torch.zeros(2).long())
    )
    return metric


@pytest.mark.parametrize("options", [{"n_bins": 7}, {"num_classes": 4}, {"num_classes": 20, "n_bins": 3}])
def test_sums_of_other_bins_or_classes_are_not_loaded(options):
    metric = saved()
    before = metric.floats.clone()
    with pytest.raises(
        ValueError, match=r"^CalibrationState: expected `\w+` of shape .* load a state of the same"
    ) as caught:
        metric.load_state_dict(saved(**options).state_dict())
    assert "\n" not in str(caught.value)
    assert torch.equal(metric.floats, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_sums_of_another_type_are_not_loaded(dtype):
    content = saved().state_dict()
    content["floats"] = content["floats"].to(dtype)
    with pytest.raises(ValueError, match=r"type float64, got"):
        saved().load_state_dict(content)


@pytest.mark.parametrize(("name", "value"), [("floats", float("nan")), ("floats", -5), ("counts", -5)])
def test_impossible_sums_are_not_loaded(name, value):
    metric, content = saved(), {key: part.clone() for key, part in saved().state_dict().items()}
    content[name][3] = value
    before = metric.state_dict()[name].clone()
    with pytest.raises(ValueError, match=f"expected `{name}` without NaN and negative numbers"):
        metric.load_state_dict(content)
    assert torch.equal(metric.state_dict()[name], before)


def test_loaded_sums_are_a_copy():
    content = saved().state_dict()
    known = content["floats"].clone()
    metric = ECE(5, inputs="logits")
    metric.persistent(mode=True)
    metric.load_state_dict(content)
    assert torch.equal(metric.floats, known)
    metric.update(*batch())
    assert torch.equal(content["floats"], known)


def test_sums_that_were_replaced_by_others_are_an_error():
    metric = saved()
    metric.floats = metric.floats.half()
    with pytest.raises(ValueError, match="expected `floats`"):
        metric.update(*batch())
