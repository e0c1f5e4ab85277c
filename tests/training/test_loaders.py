"""Anybody's batches and networks: loaders, dictionaries, outputs with logits, one logit for two classes."""

from collections import UserDict
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from equipoise.objectives import DeepEnsemble, GammaNet, MutualLearning, Supervised
from equipoise.training import Recipe, fit
from equipoise.training.network_call import as_logits, call_network
from helpers import toys

INPUTS, LABELS = toys.TRAIN.inputs, toys.TRAIN.labels
PLAIN = Recipe(optimizer=toys.RECIPE.optimizer)


def supervised(network=None):
    return Supervised(network or toys.make_network(0, plain=True), nn.CrossEntropyLoss(), recipe=PLAIN)


def weights(objective):
    return [parameter.detach() for parameter in objective.network().parameters()]


def train(batches, network=None, **options):
    objective = supervised(network)
    history = fit(objective, batches, epochs=2, hardware=toys.CPU, **options)
    return objective, history


class Named(nn.Module):
    """Takes tensors by name and gives an object with logits, as transformers do."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, first=None, second=None, labels=None):
        assert labels is None, "the model must not compute a loss of its own"
        return SimpleNamespace(loss=None, logits=self.inner(torch.stack([first, second], 1)))


def parts(batch_size=16):
    return list(zip(INPUTS.split(batch_size), LABELS.split(batch_size), strict=True))


FORMS = {
    "tuples": parts(),
    "lists": [list(part) for part in parts()],
    "with an index": [(x, y, torch.arange(len(y))) for x, y in parts()],
    "loader": DataLoader(TensorDataset(INPUTS, LABELS), batch_size=16),
    "labels by name": [{"x": x, "labels": y} for x, y in parts()],
    "label by name, user's mapping": [UserDict(image=x, label=y) for x, y in parts()],
    "objects": [SimpleNamespace(inputs=x, targets=y, index=torch.arange(len(y))) for x, y in parts()],
}


@pytest.mark.parametrize("form", FORMS)
def test_all_usual_batches_train_the_same(form):
    wanted, _ = train(FORMS["tuples"])
    found, history = train(FORMS[form], tune=FORMS[form])
    toys.assert_equal(weights(wanted), weights(found))
    assert history.column("samples") == [40, 40]


@pytest.mark.parametrize("mapping", [dict, UserDict])
def test_inputs_by_name_and_outputs_with_logits(mapping):
    batches = [mapping(first=x[:, 0], second=x[:, 1], labels=y) for x, y in parts()]
    wanted, scores = train(FORMS["tuples"], tune=FORMS["tuples"])
    found, named = train(batches, Named(toys.make_network(0, plain=True)), tune=batches)
    toys.assert_equal(weights(wanted), weights(found))
    toys.assert_equal(toys.without_clock(scores), toys.without_clock(named))


def test_inputs_by_name_reach_every_objective():
    batches = [{"first": x[:, 0], "second": x[:, 1], "labels": y} for x, y in parts()]
    networks = [Named(toys.make_network(seed, plain=True)) for seed in range(2)]
    for objective in (MutualLearning(networks), DeepEnsemble([supervised(n) for n in networks])):
        history = fit(objective, batches, epochs=1, tune=batches, hardware=toys.CPU)
        assert 0 <= history[-1]["tune_accuracy"] <= 1


def test_a_shuffling_loader_is_resumed_bit_for_bit(tmp_path):
    def loader():
        return DataLoader(TensorDataset(INPUTS, LABELS), batch_size=16, shuffle=True)

    straight, _ = train(loader())
    with pytest.raises(RuntimeError, match="power cut"):
        train(Failing(loader(), after=4), folder=tmp_path)
    resumed, _ = train(loader(), folder=tmp_path)
    toys.assert_equal(weights(straight), weights(resumed))


class Failing:
    def __init__(self, loader, *, after):
        self.loader, self.left = loader, after

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            self.left -= 1
            if not self.left:
                toys.crash()
            yield batch


BINARY = [(x, (y > 0).long()) for x, y in parts()]


def test_one_logit_is_the_log_odds_of_class_one():
    """Steps on the cross-entropy of [0, z] are steps on the binary cross-entropy of z."""
    torch.manual_seed(0)
    network = nn.Linear(2, 1)
    expected = nn.Linear(2, 1)
    expected.load_state_dict(network.state_dict())
    optimizer = torch.optim.SGD(expected.parameters(), lr=1.0)
    for inputs, labels in BINARY:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(expected(inputs)[:, 0], labels.float())
        loss.backward()
        optimizer.step()
    objective = Supervised(network, nn.CrossEntropyLoss(), recipe=toys.PLAIN_STEP)
    history = fit(objective, BINARY, epochs=1, tune=BINARY, hardware=toys.CPU)
    for one, two in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one, two)
    right = torch.cat([(expected(x)[:, 0] > 0) == (y == 1) for x, y in BINARY]).double().mean()
    assert history[-1]["tune_accuracy"] == pytest.approx(float(right))


def test_one_logit_in_a_bilevel_objective():
    network = toys.make_network(0, plain=True)
    network.head = nn.Linear(6, 1)
    history = fit(GammaNet(network, BINARY), BINARY, epochs=1, tune=BINARY, hardware=toys.CPU)
    assert history[-1]["tune_accuracy"] > 0.3


@pytest.mark.parametrize("column", [torch.tensor([0.5, -1.0]), torch.tensor([[0.5], [-1.0]])])
def test_a_column_becomes_two(column):
    assert as_logits(column).tolist() == [[0.0, 0.5], [0.0, -1.0]]
    assert as_logits({"logits": torch.zeros(2, 1, 4, 4)}).shape == (2, 2, 4, 4)


def test_names_a_network_does_not_know_stay_together():
    class Together(nn.Module):
        def forward(self, inputs):
            return inputs["one"]

    assert call_network(Together(), {"one": torch.ones(1)}).tolist() == [1.0]


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([torch.zeros(2, 2)], r"got tensor of shape \(2, 2\)\. Give the loader a collate_fn"),
        ([(torch.zeros(2, 2),)], "a batch must be"),
        ([{"x": torch.zeros(2, 2)}], "a dictionary of 'x': tensor"),
        ([{"labels": torch.tensor([0, 1])}], "a dictionary with 'labels'"),
        ([{"text": ["a", "b"], "labels": torch.tensor([0, 1])}], "'text': list of str, str"),
        ([(torch.zeros(2, 2), [0, 1])], "list of int, int"),
        ([(torch.zeros(3, 2), torch.tensor([0, 1]))], "equally long"),
        ([(torch.zeros(2, 2), torch.tensor([0.0, 1.0]))], r"labels\.long\(\)"),
        (TensorDataset(INPUTS, LABELS), r"got TensorDataset\. Pass a DataLoader"),
        (iter(parts()), "which is empty after the first"),
        (3, "got int"),
    ],
)
def test_everything_else_gets_one_sentence(batches, message):
    with pytest.raises((TypeError, ValueError), match=message):
        train(batches)


def test_an_output_without_logits_gets_one_sentence():
    class Pair(nn.Linear):
        def forward(self, inputs):
            return inputs, inputs

    with pytest.raises(TypeError, match=r"got tuple\. Wrap it in a module that returns its logits"):
        train(FORMS["tuples"], Pair(2, 3))


def test_a_binary_loss_is_answered_with_its_equal():
    with pytest.raises(ValueError, match=r"Pass nn\.CrossEntropyLoss\(\), which is the same"):
        Supervised(nn.Linear(2, 1), nn.BCEWithLogitsLoss())
