"""Lightning trains with losses that adapt, resumes bit for bit, and logs what the scorecard says."""

import copy
import logging
import socket
import warnings

import pytest
import torch

pl = pytest.importorskip("lightning.pytorch")
pytestmark = [pytest.mark.hosts, pytest.mark.filterwarnings("ignore")]

from equipoise import Predictions, score  # noqa: E402
from equipoise.calibrators import TemperatureScaling  # noqa: E402
from equipoise.core.errors import DataError  # noqa: E402
from equipoise.integrations.lightning import AdaptLoss, CalibrationLogger, fit_temperature  # noqa: E402
from equipoise.losses import AdaFocalLoss, ClassAdaptiveLoss, MarginLoss  # noqa: E402
from helpers.host_training import loader, make_module, rows, train_in_two  # noqa: E402

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def trained(module, epochs, folder, callbacks, *, resume=None, **options):
    warnings.simplefilter("ignore")
    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=epochs, logger=False, default_root_dir=folder, enable_progress_bar=False,
        enable_model_summary=False, callbacks=callbacks, **options,
    )  # fmt: skip
    trainer.fit(module, loader(*rows()), loader(*rows(60, seed=1)), ckpt_path=resume)
    return trainer


LOSSES = {
    "adafocal": lambda: AdaFocalLoss(n_bins=4),
    "cals": lambda: ClassAdaptiveLoss(n_classes=3),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_resumed_run_equals_the_straight_one_bit_for_bit(name, tmp_path):
    straight = make_module(LOSSES[name]())
    trained(straight, 6, tmp_path, [AdaptLoss()], enable_checkpointing=False)
    first = make_module(LOSSES[name]())
    trained(first, 3, tmp_path, [AdaptLoss()]).save_checkpoint(tmp_path / "half.ckpt")
    second = make_module(LOSSES[name]())
    adapt = AdaptLoss()
    trained(second, 6, tmp_path, [adapt], resume=tmp_path / "half.ckpt")
    assert adapt.epoch == 5
    for key, value in straight.state_dict().items():
        assert torch.equal(value, second.state_dict()[key]), key
    fresh = make_module(LOSSES[name]()).state_dict()
    assert any(
        not torch.equal(value, fresh[key]) for key, value in straight.state_dict().items() if "loss" in key
    )


def test_the_loss_learns_once_per_epoch_and_not_from_the_sanity_check(tmp_path):
    loss, calls = AdaFocalLoss(n_bins=4), []
    update = loss.update
    loss.update = lambda logits, labels: (calls.append(len(labels)), update(logits, labels))
    trained(
        make_module(loss), 3, tmp_path, [AdaptLoss()], enable_checkpointing=False, val_check_interval=0.34
    )
    assert calls == [60, 60, 60]


def test_validation_alone_changes_nothing(tmp_path):
    module = make_module(AdaFocalLoss(n_bins=4))
    before = copy.deepcopy(module.state_dict())
    trainer = pl.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, callbacks=[AdaptLoss()])
    trainer.validate(module, loader(*rows(60, seed=1)), verbose=False)
    assert all(torch.equal(before[key], value) for key, value in module.state_dict().items())


def test_two_processes_learn_the_same_from_all_rows(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (tmp_path / "port").write_text(str(free.getsockname()[1]))
    torch.multiprocessing.spawn(train_in_two, (str(tmp_path),), nprocs=2)
    one, two = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert torch.equal(one["gammas"], two["gammas"])
    assert one["ece"] == two["ece"]
    whole = AdaFocalLoss(n_bins=3)
    whole.update(one["logits"], rows(60, seed=1)[1])
    torch.testing.assert_close(whole.bins.gammas, one["gammas"])
    wanted = score(Predictions(logits=one["logits"], labels=rows(60, seed=1)[1]))["ece"].value
    assert float(one["ece"]) == pytest.approx(wanted, abs=1e-6)


def test_scores_and_figures_of_each_validation(tmp_path):
    module = make_module(MarginLoss())
    trainer = trained(
        module, 2, tmp_path, [CalibrationLogger(figures=tmp_path / "figures")], enable_checkpointing=False
    )
    inputs, labels = rows(60, seed=1)
    with torch.no_grad():
        card = score(Predictions(logits=module.network(inputs), labels=labels))
    for name in ("accuracy", "nll", "brier", "ece"):
        assert float(trainer.callback_metrics[f"val_{name}"]) == pytest.approx(card[name].value, rel=1e-5)
    assert len(list((tmp_path / "figures").glob("reliability-*.png"))) == 2


def test_a_validation_step_without_logits_is_told_what_to_return(tmp_path):
    module = make_module(AdaFocalLoss())
    module.validation_step = lambda batch, batch_idx: None
    with pytest.raises(DataError, match="validation_step must return"):
        trained(module, 1, tmp_path, [AdaptLoss()], enable_checkpointing=False)


def test_a_loss_that_does_not_adapt_is_refused(tmp_path):
    with pytest.raises(TypeError, match="must be a loss that adapts"):
        trained(make_module(torch.nn.CrossEntropyLoss()), 1, tmp_path, [AdaptLoss()])


def test_a_temperature_from_a_loader():
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5))
    inputs, labels = rows()
    found = fit_temperature(network, loader(inputs, labels))
    assert network.training
    with torch.no_grad():
        wanted = TemperatureScaling().fit(network[0](inputs), labels)
    assert found.temperature == pytest.approx(wanted.temperature)
    with pytest.raises(DataError, match="at least one batch"):
        fit_temperature(network, [])
