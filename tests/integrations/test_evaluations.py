"""Evaluations that break off, and batches in which every label is ignored, in the adapters; no training is needed."""

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from equipoise.losses import AdaFocalLoss, FocalLoss
from equipoise.metrics import CalibrationState

GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(4, 6, 3, generator=GENERATOR)
LABELS = torch.randint(0, 3, (4, 6), generator=GENERATOR)
IGNORED = torch.full((6,), -100)


@pytest.fixture
def huggingface(monkeypatch):
    """The adapter, with a callback class in place of transformers where that is not installed."""
    return _adapter(monkeypatch, "huggingface", "transformers", {"transformers": {"TrainerCallback": object}})


@pytest.fixture
def lightning(monkeypatch):
    """The adapter, with a callback class in place of Lightning where that is not installed."""
    stubs = {"lightning": {}, "lightning.pytorch": {"Callback": object}}
    return _adapter(monkeypatch, "lightning", "lightning", stubs)


def _adapter(monkeypatch, name, package, stubs):
    if importlib.util.find_spec(package) is None:
        for path, content in stubs.items():
            module = ModuleType(path)
            vars(module).update(content)
            monkeypatch.setitem(sys.modules, path, module)
        # Imported for this test only: others must still find the package missing.
        monkeypatch.delitem(sys.modules, f"equipoise.integrations.{name}", raising=False)
        module = importlib.import_module(f"equipoise.integrations.{name}")
        monkeypatch.delitem(sys.modules, f"equipoise.integrations.{name}")
        return module
    return importlib.import_module(f"equipoise.integrations.{name}")


def batch(number, labels=None):
    given = LABELS[number] if labels is None else labels
    return SimpleNamespace(predictions=LOGITS[number].numpy(), label_ids=given.numpy())


def evaluation_loop(compute_metrics, batches, *, stop_after=None):
    """Call the metrics as the Trainer's loop of this name does with ``batch_eval_metrics``."""
    for number, one in enumerate(batches):
        if number == stop_after:
            raise KeyboardInterrupt
        found = compute_metrics(one, compute_result=number == len(batches) - 1)
    return found


@pytest.mark.parametrize("wrapped", [False, True])
def test_rows_of_an_evaluation_that_broke_off_are_dropped(wrapped, huggingface):
    batches = [batch(number) for number in range(4)]
    expected = evaluation_loop(huggingface.CalibrationMetrics(), batches)
    metrics = huggingface.CalibrationMetrics()
    call = (lambda *args, **options: dict(metrics(*args, **options))) if wrapped else metrics
    for stop_after in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            evaluation_loop(call, batches, stop_after=stop_after)
    assert evaluation_loop(call, batches) == expected
    assert evaluation_loop(call, batches) == expected


def test_an_adaptive_loss_learns_only_from_the_evaluation_that_was_finished(huggingface):
    batches = [batch(number) for number in range(4)]
    seen = []
    for stops in ((), (3,)):
        loss = AdaFocalLoss()
        adapt = huggingface.AdaptLoss(loss)
        for stop_after in stops:
            with pytest.raises(KeyboardInterrupt):
                evaluation_loop(adapt.compute_metrics, batches, stop_after=stop_after)
        evaluation_loop(adapt.compute_metrics, batches)
        assert sum(len(labels) for _, labels in adapt._rows) == 24
        adapt.on_evaluate(None, SimpleNamespace(epoch=1), None)
        seen.append(loss.bins.gammas.clone())
    assert torch.equal(*seen)


def test_calls_by_hand_are_one_evaluation_until_its_last_batch(huggingface):
    metrics = huggingface.CalibrationMetrics(metrics=("nll",))
    for _ in range(2):
        for number in range(3):
            assert metrics(batch(number), compute_result=False) == {}
        found = metrics(batch(3))
        logits, labels = LOGITS.reshape(-1, 3), LABELS.reshape(-1)
        assert found["nll"] == pytest.approx(
            float(torch.nn.functional.cross_entropy(logits, labels)), rel=1e-6
        )


def test_ignored_batches_change_nothing(huggingface):
    plain = evaluation_loop(huggingface.CalibrationMetrics(), [batch(0), batch(1)])
    ignored = [batch(2, IGNORED), batch(0), batch(3, IGNORED), batch(1), batch(2, IGNORED)]
    assert evaluation_loop(huggingface.CalibrationMetrics(), ignored) == plain


def test_a_step_without_labels_has_loss_and_gradient_zero(huggingface):
    logits = LOGITS[0].clone().requires_grad_()
    function = huggingface.compute_loss_func(FocalLoss())
    for n_items in (0, torch.tensor(0), 5):
        loss = function({"logits": logits}, IGNORED, num_items_in_batch=n_items)
        loss.backward()
        assert loss == 0
        assert logits.grad.eq(0).all()


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("convert", [torch.Tensor.clone, torch.Tensor.numpy, torch.Tensor.tolist])
def test_a_state_takes_a_batch_of_ignored_labels(kind, convert):
    scores = LOGITS[0] if kind == "logits" else LOGITS[0].softmax(-1)
    state = CalibrationState(3)
    state.update(**{kind: convert(scores)}, labels=convert(IGNORED), ignore_index=-100)
    assert state.n_samples == 0
    state.update(**{kind: convert(scores)}, labels=convert(LABELS[0]), ignore_index=-100)
    assert state.n_samples == 6


def test_torchmetrics_gives_nan_for_an_ignored_batch_and_goes_on():
    torchmetrics = pytest.importorskip("torchmetrics")
    from equipoise.integrations.torchmetrics import ECE, SmECE

    metrics = torchmetrics.MetricCollection(
        [ECE(3, inputs="logits", ignore_index=-100), SmECE(3, inputs="logits", ignore_index=-100)]
    )
    assert all(value.isnan() for value in metrics(LOGITS[0], IGNORED).values())
    metrics(LOGITS[1], LABELS[1])
    alone = ECE(3, inputs="logits")
    alone.update(LOGITS[1], LABELS[1])
    assert metrics.compute()["ECE"] == alone.compute()


def test_the_lightning_logger_takes_ignored_batches(lightning):
    logged = {}
    trainer = SimpleNamespace(sanity_checking=False, world_size=1)
    module = SimpleNamespace(log_dict=logged.update)
    logger = lightning.CalibrationLogger(metrics=("nll",), ignore_index=-100)
    logger.on_validation_epoch_start(trainer, module)
    for logits, labels in ((LOGITS[0], IGNORED), (LOGITS[1], LABELS[1])):
        logger.on_validation_batch_end(trainer, module, {"logits": logits, "labels": labels}, None, 0)
    logger.on_validation_epoch_end(trainer, module)
    expected = torch.nn.functional.cross_entropy(LOGITS[1], LABELS[1])
    assert logged["val_nll"] == pytest.approx(float(expected), rel=1e-6)


def test_a_temperature_is_fitted_without_ignored_rows(lightning):
    identity = torch.nn.Identity()
    logits, labels = (
        torch.randn(200, 3, generator=GENERATOR) * 3,
        torch.randint(0, 3, (200,), generator=GENERATOR),
    )
    fitted = lightning.fit_temperature(identity, [(logits, labels), (LOGITS[0], IGNORED)])
    assert fitted.temperature == lightning.fit_temperature(identity, [(logits, labels)]).temperature


def test_skorch_learns_from_epochs_with_ignored_batches():
    pytest.importorskip("skorch")
    from equipoise.integrations.skorch import AdaptLoss, make_classifier

    inputs = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    net = make_classifier(
        torch.nn.Linear(3, 3), AdaFocalLoss, callbacks=[AdaptLoss()], max_epochs=1, verbose=0, batch_size=6
    )
    net.set_params(callbacks__print_log=None, callbacks__valid_acc=None)
    net.initialize()
    adapt = next(callback for name, callback in net.callbacks_ if isinstance(callback, AdaptLoss))
    adapt.on_epoch_begin(net)
    adapt.on_batch_end(net, (inputs[:6], IGNORED), training=False, y_pred=LOGITS[0])
    adapt.on_batch_end(net, (inputs[:6], LABELS[1]), training=False, y_pred=LOGITS[1])
    adapt.on_epoch_end(net)
    alone = AdaFocalLoss()
    alone.update(LOGITS[1], LABELS[1])
    assert torch.equal(net.criterion_.bins.gammas, alone.bins.gammas)
