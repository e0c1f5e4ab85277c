"""Lightning trains with losses that adapt, resumes bit for bit, and logs what the scorecard says."""

import copy
import logging
import socket
import warnings

import pytest
import torch

pl = pytest.importorskip("lightning.pytorch")
pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

from equipoise import Predictions, score  # noqa: E402
from equipoise.calibrators import TemperatureScaling  # noqa: E402
from equipoise.core.errors import DataError  # noqa: E402
from equipoise.integrations.lightning import (  # noqa: E402
    AdaptLoss,
    CalibrationLogger,
    SeedEpochs,
    fit_temperature,
)
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


def trained_with_chance(epochs, folder, *, resume=None):
    """Train with dropout and shuffled rows, from another random state each time."""
    torch.seed()
    module = make_module(AdaFocalLoss(n_bins=4))
    module.network = torch.nn.Sequential(module.network, torch.nn.Dropout(0.5))
    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=epochs, logger=False, default_root_dir=folder, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[AdaptLoss(), SeedEpochs(3)],
    )  # fmt: skip
    data = torch.utils.data.TensorDataset(*rows())
    shuffled = torch.utils.data.DataLoader(data, batch_size=30, shuffle=True)
    trainer.fit(module, shuffled, loader(*rows(60, seed=1)), ckpt_path=resume)
    return trainer, module.state_dict()


def test_seeded_epochs_resume_bit_for_bit_with_shuffling_and_dropout(tmp_path):
    _, straight = trained_with_chance(4, tmp_path)
    half, _ = trained_with_chance(2, tmp_path)
    half.save_checkpoint(tmp_path / "half.ckpt")
    _, resumed = trained_with_chance(4, tmp_path, resume=tmp_path / "half.ckpt")
    for key, value in straight.items():
        assert torch.equal(value, resumed[key]), key


class OwnAdaptive(torch.nn.Module):
    """A loss that inherits nothing of ours; its state is a buffer, or an attribute that nothing saves."""

    def __init__(self, *, saved=True):
        super().__init__()
        self.saved, self.steps = saved, 0
        self.register_buffer("smoothing", torch.tensor(0.0))

    def forward(self, logits, labels):
        return torch.nn.functional.cross_entropy(logits, labels, label_smoothing=float(self.smoothing))

    def update(self, logits, labels):
        self.smoothing += 0.05
        if not self.saved:
            self.steps += 1


def test_a_loss_of_ones_own_is_updated_by_its_method(tmp_path):
    module = make_module(OwnAdaptive())
    trained(module, 3, tmp_path, [AdaptLoss()], enable_checkpointing=False)
    assert float(module.loss.smoothing) == pytest.approx(0.15)


def test_state_that_is_not_saved_is_refused_before_the_first_step(tmp_path):
    module = make_module(OwnAdaptive(saved=False))
    before = copy.deepcopy(module.state_dict())
    with pytest.raises(TypeError, match=r"OwnAdaptive.update changes `steps`.*register_buffer"):
        trained(module, 1, tmp_path, [AdaptLoss()], enable_checkpointing=False)
    assert all(torch.equal(before[key], value) for key, value in module.state_dict().items())


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
