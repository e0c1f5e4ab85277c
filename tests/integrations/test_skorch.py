"""skorch trains with our losses and answers with probabilities."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from torch import nn

from equipoise.integrations.sklearn import CalibratedClassifier
from equipoise.integrations.skorch import AdaptLoss, make_classifier
from equipoise.losses import AdaFocalLoss, FocalLoss
from helpers.host_training import rows


def net(criterion=FocalLoss, **options):
    torch.manual_seed(0)
    return make_classifier(nn.Linear(4, 3), criterion, max_epochs=3, lr=0.3, verbose=0, **options)


@pytest.fixture(scope="module")
def data():
    inputs, labels = rows(200)
    return inputs.numpy(), labels.numpy()


@pytest.mark.parametrize("criterion", [FocalLoss, nn.CrossEntropyLoss])
def test_rows_sum_to_one(criterion, data):
    fitted = net(criterion).fit(*data)
    np.testing.assert_allclose(fitted.predict_proba(data[0]).sum(axis=1), 1, rtol=1e-5)
    assert fitted.score(*data) > 0.6


def test_the_loss_learns_from_the_rows_held_out_each_epoch(data):
    calls = []

    class Counting(AdaFocalLoss):
        def update(self, logits, labels):
            calls.append((id(self), len(labels)))
            super().update(logits, labels)

    fitted = net(Counting, callbacks=[AdaptLoss()]).fit(*data)
    assert [n_rows for loss, n_rows in calls if loss == id(fitted.criterion_)] == [40, 40, 40]
    assert (fitted.criterion_.bins.gammas != 1).any()


def test_what_the_loss_learned_is_kept(data, tmp_path):
    fitted = net(AdaFocalLoss, callbacks=[AdaptLoss()]).fit(*data)
    fitted.save_params(f_params=tmp_path / "net.pt", f_criterion=tmp_path / "loss.pt")
    twin = net(AdaFocalLoss).initialize()
    twin.load_params(f_params=tmp_path / "net.pt", f_criterion=tmp_path / "loss.pt")
    assert torch.equal(twin.criterion_.bins.gammas, fitted.criterion_.bins.gammas)
    np.testing.assert_array_equal(twin.predict_proba(data[0]), fitted.predict_proba(data[0]))
    fitted.set_params(callbacks__print_log=None)  # which holds the `print` of its time; others replace that
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(data[0]), fitted.predict_proba(data[0]))


def test_grid_search_and_calibration_take_it(data):
    search = GridSearchCV(net(), {"criterion__gamma": [0.0, 3.0]}, scoring="neg_log_loss", cv=2).fit(*data)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    calibrated = CalibratedClassifier(FrozenEstimator(net().fit(*data))).fit(*data)
    np.testing.assert_allclose(calibrated.predict_proba(data[0]).sum(axis=1), 1)


def test_what_cannot_be_meant_is_refused(data):
    with pytest.raises(TypeError, match="adapts"):
        net(nn.CrossEntropyLoss, callbacks=[AdaptLoss()]).fit(*data)
    with pytest.raises(ValueError, match="train_split"):
        net(AdaFocalLoss, callbacks=[AdaptLoss()], train_split=None).fit(*data)


class OwnAdaptive(nn.Module):
    """A loss that inherits nothing of ours; its state is a buffer, or an attribute that nothing saves."""

    def __init__(self, saved=True):
        super().__init__()
        self.saved, self.steps = saved, 0
        self.register_buffer("smoothing", torch.tensor(0.0))

    def forward(self, logits, labels):
        return nn.functional.cross_entropy(logits, labels, label_smoothing=float(self.smoothing))

    def update(self, logits, labels):
        self.smoothing += 0.05
        if not self.saved:
            self.steps += 1


def own_rows():
    generator = np.random.default_rng(0)
    return generator.normal(size=(60, 2)).astype(np.float32), np.arange(60) % 2


def test_a_loss_of_ones_own_is_updated_by_its_method():
    net = make_classifier(nn.Linear(2, 2), OwnAdaptive, callbacks=[AdaptLoss()], max_epochs=2, verbose=0)
    net.set_params(callbacks__print_log=None).fit(*own_rows())
    assert float(net.criterion_.smoothing) == pytest.approx(0.1)


def test_state_that_is_not_saved_is_refused_before_the_first_step():
    net = make_classifier(
        nn.Linear(2, 2), OwnAdaptive, criterion__saved=False, callbacks=[AdaptLoss()], max_epochs=1, verbose=0
    )
    with pytest.raises(TypeError, match=r"OwnAdaptive\.update changes `steps`"):
        net.set_params(callbacks__print_log=None).fit(*own_rows())
    assert len(net.history) == 0


def test_a_network_of_one_output_gives_probabilities_of_two_classes():
    net = make_classifier(nn.Linear(2, 1), FocalLoss, max_epochs=1, verbose=0)
    found = net.set_params(callbacks__print_log=None).fit(*own_rows()).predict_proba(own_rows()[0])
    assert found.shape == (60, 2)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
