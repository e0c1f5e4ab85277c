import signal
import subprocess
import sys
import textwrap
from itertools import count

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from equipoise.core.errors import DivergenceError, MissingExtraError
from equipoise.losses import AdaFocalLoss, ClassAdaptiveLoss
from equipoise.objectives import Supervised
from equipoise.training import (
    Cosine,
    History,
    Learner,
    Loader,
    Objective,
    Optimizer,
    Recipe,
    Selection,
    Step,
    fit,
    read_checkpoint,
)
from helpers import toys


def make(seed=0, loss=None, recipe=toys.RECIPE):
    return Supervised(toys.make_network(seed), loss or nn.CrossEntropyLoss(), recipe=recipe)


def run(objective=None, train=toys.TRAIN, *, epochs=2, **options):
    options = {"tune": toys.TUNE, "hardware": toys.CPU, **options}
    return fit(objective or make(), train, epochs=epochs, **options)


class TestHistory:
    def test_columns(self):
        history = run()
        wanted = ["epoch", "loss", "lr", "samples", "tune_accuracy", "tune_nll", "tune_ece"]
        wanted += ["tune_nll_scaled", "tune_temperature", "seconds", "cpu_seconds"]
        assert history.columns == wanted
        assert history.column("epoch") == [0, 1]
        assert history.column("samples") == [40, 40]

    def test_time_is_told_by_the_clock_and_by_the_processor(self, monkeypatch):
        clock, processor = count(0, 5), count(0, 2)
        monkeypatch.setattr("equipoise.training.loop.time.monotonic", lambda: next(clock))
        monkeypatch.setattr("equipoise.training.loop.time.process_time", lambda: next(processor))
        history = run()
        assert history.column("seconds") == [5, 5]
        assert history.column("cpu_seconds") == [2, 2]

    def test_what_losses_adapt_is_summarized(self):
        row = run(make(loss=AdaFocalLoss(n_bins=3)))[-1]
        assert row["gammas_min"] <= row["gammas_mean"] <= row["gammas_max"]
        row = run(make(loss=ClassAdaptiveLoss(n_classes=3, margin=0.5)))[-1]
        assert {"multipliers_mean", "rho_max"} <= set(row)

    def test_the_loss_is_the_mean_over_samples(self):
        # Batches of 16, 16 and 8 samples: a rate of zero leaves the network, so the mean is that of all 40.
        still = Recipe(optimizer=Optimizer("SGD", lr=0.0, options={"momentum": 0.9, "weight_decay": 5e-4}))
        network = toys.make_network(0, plain=True)
        history = fit(
            Supervised(network, nn.CrossEntropyLoss(), recipe=still), toys.TRAIN, epochs=1, hardware=toys.CPU
        )
        expected = nn.functional.cross_entropy(network(toys.TRAIN.inputs), toys.TRAIN.labels)
        assert history[0]["loss"] == pytest.approx(expected.item(), rel=1e-6)

    def test_tune_scores_are_those_of_the_network_in_evaluation_mode(self):
        objective = make()
        row = run(objective)[-1]
        logits = objective.network().eval()(toys.TUNE.inputs)
        assert row["tune_nll"] == pytest.approx(nn.functional.cross_entropy(logits, toys.TUNE.labels).item())
        assert row["tune_accuracy"] == (logits.argmax(1) == toys.TUNE.labels).double().mean().item()

    def test_it_is_written_as_a_table(self, tmp_path):
        history = run(folder=tmp_path)
        lines = (tmp_path / "history.csv").read_text().splitlines()
        assert lines[0] == ",".join(history.columns)
        assert len(lines) == 3


def test_the_rate_moves_within_an_epoch():
    rates = []

    class Watching(Objective):
        def __init__(self):
            super().__init__()
            self.learner = Learner(
                nn.Linear(2, 3),
                recipe=Recipe(
                    optimizer=Optimizer("SGD", lr=1.0, options={"momentum": 0.9, "weight_decay": 5e-4}),
                    schedule=Cosine(),
                ),
            )

        def step(self, batch):
            rates.append(self.learner.lr)
            return Step(torch.zeros(len(batch.index), 3), {"loss": torch.tensor(0.0)})

        def network(self):
            return self.learner.network

    run(Watching(), epochs=2)
    assert rates == [pytest.approx(Cosine().factor(k / 3, epochs=2)) for k in range(6)]


def test_held_out_predictions_are_made_once_per_epoch():
    calls = []

    def tune(**where):
        calls.append(where["epoch"])
        return toys.TUNE(**where)

    run(make(loss=AdaFocalLoss(n_bins=3)), epochs=3, tune=tune)
    assert len(calls) == 3


def test_a_module_frozen_in_evaluation_mode_stays_so():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(2)
            self.head = nn.Linear(2, 3)

        def train(self, mode=True):
            super().train(mode)
            self.norm.eval()
            return self

        def forward(self, inputs):
            return self.head(self.norm(inputs))

    network = Frozen()
    run(Supervised(network, nn.CrossEntropyLoss()))
    assert network.training
    assert not network.norm.training
    assert network.norm.num_batches_tracked == 0


class TestSelection:
    def test_best_and_last_are_kept(self, tmp_path):
        history = run(folder=tmp_path, epochs=4, selection=Selection(metric="tune_accuracy"))
        best = read_checkpoint(tmp_path / "best.pt")
        accuracy = history.column("tune_accuracy")
        assert best["epoch"] == accuracy.index(max(accuracy))
        network = toys.make_network(9)
        network.load_state_dict(best["network"])
        found = (network.eval()(toys.TUNE.inputs).argmax(1) == toys.TUNE.labels).float().mean()
        assert found.item() == pytest.approx(max(accuracy))

    def test_patience_ends_the_run(self):
        still = Recipe(optimizer=Optimizer("SGD", lr=0.0, options={"momentum": 0.9}))
        network = toys.make_network(0, plain=True)
        objective = Supervised(network, nn.CrossEntropyLoss(), recipe=still)
        assert len(run(objective, epochs=9, selection=Selection(patience=3))) == 4

    def test_a_run_that_is_over_is_not_run_again(self, tmp_path):
        first = run(folder=tmp_path)
        never = toys.Interrupting(toys.TRAIN, after=1, action=toys.crash)
        assert list(run(train=never, folder=tmp_path)) == list(first)

    def test_refusals(self):
        with pytest.raises(ValueError, match="Did you mean 'tune_ece'"):
            Selection(metric="tune_ecee")
        with pytest.raises(ValueError, match="None never stops early"):
            Selection(patience=0)


class TestDivergence:
    def test_steps_too_large(self):
        objective = Supervised(
            toys.make_network(0, plain=True),
            nn.MSELoss(),
            recipe=Recipe(
                optimizer=Optimizer("SGD", lr=1e20, options={"momentum": 0.9, "weight_decay": 5e-4})
            ),
        )
        objective.loss = Explosive()
        with pytest.raises(
            DivergenceError, match=r"epoch 0, batch \d.*learning rate 1e\+20 without clipping"
        ):
            run(objective)

    def test_bad_inputs_are_named(self):
        bad = Loader(
            [(torch.ones(2, 2), torch.tensor([0, 1])), (torch.full((2, 2), torch.nan), torch.tensor([0, 1]))]
        )
        with pytest.raises(DivergenceError, match=r"epoch 0, batch 1.*inputs of this batch hold NaN"):
            run(train=bad)

    def test_nothing_broken_is_saved(self, tmp_path):
        bad = toys.Interrupting(toys.TRAIN, after=5, action=lambda: None)
        objective = make()
        bad.action = lambda: nn.init.constant_(objective.network().head.weight, torch.nan)
        with pytest.raises(DivergenceError, match="epoch 1, batch 1"):
            run(objective, bad, folder=tmp_path)
        saved = read_checkpoint(tmp_path / "last.pt")
        assert saved["epoch"] == 1
        assert all(value.isfinite().all() for value in saved["objective"].values() if torch.is_tensor(value))


class Explosive(nn.Module):
    def forward(self, logits, labels):
        return logits.square().sum()


class TestSignals:
    def test_handlers_are_put_back(self):
        found = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        run()
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == found
        with pytest.raises(SystemExit):
            run(train=toys.Interrupting(toys.TRAIN, after=1, action=toys.send(signal.SIGTERM)))
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == found

    def test_sigterm_saves_in_mid_epoch_and_leaves_with_143(self, tmp_path):
        interrupting = toys.Interrupting(toys.TRAIN, after=5, action=toys.send(signal.SIGTERM))
        with pytest.raises(SystemExit) as caught:
            run(train=interrupting, folder=tmp_path)
        assert caught.value.code == 143
        saved = read_checkpoint(tmp_path / "last.pt")
        assert (saved["epoch"], saved["batch"]) == (1, 2)

    def test_a_script_dies_of_ctrl_c_after_saving(self, tmp_path):
        script = f"""
            import sys; sys.path[:0] = {sys.path!r}
            from helpers import toys
            from equipoise.training import fit
            source = toys.Interrupting(toys.TRAIN, after=2, action=toys.send())
            fit(toys.OBJECTIVES["supervised"](0), source, epochs=2, folder={str(tmp_path)!r}, hardware=toys.CPU)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            check=False,
            capture_output=True,
            # A shell starts jobs in the background with the signal ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        # A shell shows 130; or 1, where a package imports something at exit, which makes Python forget the reason.
        assert done.returncode in (-signal.SIGINT, 1)
        assert done.stderr.decode().rstrip().endswith("KeyboardInterrupt")
        assert read_checkpoint(tmp_path / "last.pt")["batch"] == 2


class TestOtherRuns:
    def test_another_seed_is_refused(self, tmp_path):
        run(folder=tmp_path, seed=1)
        with pytest.raises(ValueError, match=r"seed 1, not 2.*resume=False"):
            run(folder=tmp_path, seed=2)
        assert len(run(folder=tmp_path, seed=2, resume=False)) == 2

    def test_a_run_started_over_leaves_nothing_of_the_old_one(self, tmp_path):
        run(make(5), folder=tmp_path)
        crashing = toys.Interrupting(toys.TRAIN, after=1, action=toys.crash)
        with pytest.raises(RuntimeError, match="power cut"):
            run(train=crashing, folder=tmp_path, resume=False)
        assert toys.without_clock(run(folder=tmp_path)) == toys.without_clock(run())

    def test_another_objective_is_refused(self, tmp_path):
        run(folder=tmp_path)
        with pytest.raises(ValueError, match="Supervised, not GammaNet"):
            run(toys.OBJECTIVES["gamma_net"](0), folder=tmp_path)

    def test_another_network_is_refused(self, tmp_path):
        run(folder=tmp_path)
        with pytest.raises(ValueError, match="networks of other shapes"):
            run(Supervised(nn.Linear(2, 3), nn.CrossEntropyLoss()), folder=tmp_path)

    def test_more_epochs_go_on(self, tmp_path):
        objective = make(recipe=Recipe())
        run(objective, folder=tmp_path, epochs=1)
        longer = run(make(5, recipe=Recipe()), folder=tmp_path, epochs=3)
        straight = run(make(recipe=Recipe()), epochs=3)
        assert toys.without_clock(longer) == toys.without_clock(straight)


def test_anybodys_loader_resumes_with_its_own_random_numbers(tmp_path):
    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return toys.N_TRAIN

        def __getitem__(self, row):
            return toys.TRAIN.inputs[row] + torch.randn(2), toys.TRAIN.labels[row]

    def loader():
        return Loader(torch.utils.data.DataLoader(Noisy(), batch_size=16, shuffle=True))

    expected = run(train=loader(), epochs=2)
    with pytest.raises(KeyboardInterrupt):
        run(train=toys.Interrupting(loader(), after=5, action=toys.send()), folder=tmp_path)
    assert toys.without_clock(run(make(9), loader(), folder=tmp_path)) == toys.without_clock(expected)


def test_the_seed_decides_every_draw():
    torch.manual_seed(1)
    one = run(seed=5)
    torch.manual_seed(2)
    two = run(seed=5)
    other = run(seed=6)
    assert toys.without_clock(one) == toys.without_clock(two)
    assert toys.without_clock(one) != toys.without_clock(other)


def test_without_the_extra_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'equipoise\[train\]'"):
        run()


@pytest.mark.slow
def test_importing_training_does_not_import_lightning():
    code = "import sys, equipoise.training, equipoise.objectives; print('lightning_fabric' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        check=True,
    )
    assert done.stdout.strip() == b"False"


def test_a_step_without_a_loss_is_refused():
    with pytest.raises(ValueError, match="`scalars` must hold 'loss', got kl"):
        Step(torch.zeros(1, 2), {"kl": torch.tensor(0.0)})


def test_refuses_no_epochs():
    with pytest.raises(ValueError, match="`epochs` must be at least 1"):
        run(epochs=0)


def test_refuses_to_train_on_no_batches():
    rows = TensorDataset(torch.zeros(3, 2), torch.tensor([0, 1, 0]))
    loader = DataLoader(rows, batch_size=4, drop_last=True)
    with pytest.raises(ValueError, match=r"no batch in epoch 0.*drop_last=True"):
        fit(Supervised(nn.Linear(2, 2), nn.CrossEntropyLoss()), loader, epochs=1)


def test_history_is_a_sequence():
    history = History([{"epoch": 0, "loss": 1.0}])
    history.add({"epoch": 1, "loss": 0.5, "tune_nll": 0.7})
    assert history[-1]["loss"] == 0.5
    assert history.columns == ["epoch", "loss", "tune_nll"]
    assert str(history.column("tune_nll")[0]) == "nan"


def test_each_epoch_is_told_once_it_is_saved(tmp_path):
    told = []

    def note(row):
        told.append((row["epoch"], (tmp_path / "history.csv").read_text().count("\n") - 1))
        row.clear()  # it is a copy

    history = run(epochs=2, folder=tmp_path, on_epoch=note)
    assert told == [(0, 1), (1, 2)]
    assert [row["epoch"] for row in history] == [0, 1]
    run(epochs=3, folder=tmp_path, on_epoch=note)
    assert told[2:] == [(2, 3)]
