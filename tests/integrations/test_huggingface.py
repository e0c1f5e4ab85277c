"""The Trainer trains with our losses as with its own: the same gradient however a batch is cut, and it resumes."""

import pytest
import torch
from torch import nn

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

from equipoise import Predictions, score  # noqa: E402
from equipoise.core.errors import DataError  # noqa: E402
from equipoise.integrations.huggingface import AdaptLoss, CalibrationMetrics, compute_loss_func  # noqa: E402
from equipoise.losses import MDCA, AdaFocalLoss, FocalLoss  # noqa: E402

SMALL = {
    "vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8,
    "num_labels": 3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip


def sentences(n_rows, *, tokens, seed=0):
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(0, 20, (n_rows, 5), generator=generator)
    labels = words % 3 if tokens else words[:, 0] % 3
    if tokens:
        labels[torch.rand(n_rows, 5, generator=generator) < 0.3] = -100
    return [{"input_ids": word, "labels": label} for word, label in zip(words, labels, strict=True)]


def model(*, tokens=False):
    torch.manual_seed(0)
    kind = "BertForTokenClassification" if tokens else "BertForSequenceClassification"
    return getattr(transformers, kind)(transformers.BertConfig(**SMALL))


def trainer(folder, network, loss, *, rows, **options):
    callbacks = options.pop("callbacks", None)
    metrics = options.pop("compute_metrics", None)
    held_out = options.pop("eval_dataset", None)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), report_to="none", disable_tqdm=True, use_cpu=True, learning_rate=0.1, optim="sgd",
        lr_scheduler_type="constant", max_grad_norm=0.0, seed=0, **options,
    )  # fmt: skip
    made = transformers.Trainer(
        network, arguments, train_dataset=rows, eval_dataset=held_out, callbacks=callbacks,
        compute_loss_func=compute_loss_func(loss), compute_metrics=metrics,
    )  # fmt: skip
    made.remove_callback(transformers.PrinterCallback)
    return made


@pytest.mark.parametrize("tokens", [False, True])
def test_one_step_is_the_same_however_the_batch_is_cut(tokens, tmp_path):
    rows = sentences(16, tokens=tokens)
    found = {}
    for parts in (1, 2, 4):
        network = model(tokens=tokens)
        trainer(
            tmp_path, network, FocalLoss(gamma=2.0), rows=rows, max_steps=1, save_strategy="no",
            per_device_train_batch_size=16 // parts, gradient_accumulation_steps=parts,
        ).train()  # fmt: skip
        found[parts] = {name: value.clone() for name, value in network.state_dict().items()}
    whole = model(tokens=tokens)
    inputs = torch.stack([row["input_ids"] for row in rows])
    labels = torch.stack([row["labels"] for row in rows])
    FocalLoss(gamma=2.0)(whole(input_ids=inputs).logits.movedim(-1, 1), labels).backward()
    for name, parameter in whole.named_parameters():
        if parameter.grad is not None:
            wanted = parameter.detach() - 0.1 * parameter.grad
            for parts in found:
                torch.testing.assert_close(found[parts][name], wanted, atol=1e-6, rtol=1e-4)


def test_sums_of_terms_and_torchs_own_losses_go_in(tmp_path):
    rows = sentences(16, tokens=False)
    for loss in (FocalLoss() + 1.0 * MDCA(), nn.CrossEntropyLoss()):
        made = trainer(tmp_path, model(), loss, rows=rows, max_steps=1, save_strategy="no")
        assert made.train().training_loss > 0
    with pytest.raises(ValueError, match="reduction='mean'"):
        compute_loss_func(FocalLoss(reduction="sum"))


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
def test_metrics_are_those_of_the_scorecard(tokens, streaming, tmp_path):
    rows, network = sentences(50, tokens=tokens), model(tokens=tokens)
    made = trainer(
        tmp_path, network, FocalLoss(), rows=rows, eval_dataset=rows, compute_metrics=CalibrationMetrics(),
        batch_eval_metrics=streaming,
    )  # fmt: skip
    with torch.no_grad():
        logits = network.eval()(input_ids=torch.stack([row["input_ids"] for row in rows])).logits
    labels = torch.stack([row["labels"] for row in rows])
    card = score(Predictions(logits=logits.movedim(-1, 1), labels=labels, ignore_index=-100))
    for _ in range(2):  # nothing of the first is left in the second
        found = made.evaluate()
        for name in ("accuracy", "nll", "brier", "ece"):
            assert found[f"eval_{name}"] == pytest.approx(card[name].value, rel=1e-4)


def run(folder, epochs, *, resume=None):
    loss = AdaFocalLoss(n_bins=3)
    adapt = AdaptLoss(loss)
    network = model()
    made = trainer(
        folder, network, loss, rows=sentences(32, tokens=False), eval_dataset=sentences(30, tokens=False, seed=1),
        compute_metrics=adapt.compute_metrics, callbacks=[adapt], num_train_epochs=epochs, eval_strategy="epoch",
        save_strategy="epoch", per_device_train_batch_size=16,
    )  # fmt: skip
    made.train(resume_from_checkpoint=resume)
    return loss, network, adapt


def test_a_resumed_run_has_the_loss_and_the_weights_of_the_straight_one(tmp_path):
    straight, weights, adapt = run(tmp_path / "a", 4)
    assert adapt.epoch == 4
    run(tmp_path / "b", 2)
    resumed, again, _ = run(tmp_path / "b", 4, resume=str(tmp_path / "b" / "checkpoint-4"))
    assert torch.equal(straight.bins.gammas, resumed.bins.gammas)
    assert (straight.bins.gammas != 1).any()
    for name, value in weights.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_a_checkpoint_without_the_loss_is_refused(tmp_path):
    run(tmp_path, 1)
    (tmp_path / "checkpoint-2" / "equipoise_loss.pt").unlink()
    with pytest.raises(DataError, match="is missing"):
        run(tmp_path, 2, resume=str(tmp_path / "checkpoint-2"))


def test_a_loss_that_does_not_adapt_is_refused():
    with pytest.raises(TypeError, match="adapts"):
        AdaptLoss(nn.CrossEntropyLoss())


class OwnAdaptive(nn.Module):
    """A loss that inherits nothing of ours; its state is a buffer, or an attribute that nothing saves."""

    def __init__(self, *, saved=True):
        super().__init__()
        self.saved, self.steps = saved, 0
        self.register_buffer("smoothing", torch.tensor(0.0))

    def forward(self, logits, labels):
        return nn.functional.cross_entropy(logits, labels, label_smoothing=float(self.smoothing))

    def update(self, logits, labels):
        self.smoothing += 0.05
        if not self.saved:
            self.steps += 1


@pytest.mark.parametrize("saved", [True, False])
def test_a_loss_of_ones_own_is_updated_or_refused_before_the_first_step(saved, tmp_path):
    loss = OwnAdaptive(saved=saved)
    adapt = AdaptLoss(loss)
    made = trainer(
        tmp_path, model(), loss, rows=sentences(8, tokens=False), eval_dataset=sentences(8, tokens=False, seed=1),
        callbacks=[adapt], compute_metrics=adapt.compute_metrics, num_train_epochs=2, eval_strategy="epoch",
        save_strategy="no",
    )  # fmt: skip
    if saved:
        made.train()
        assert float(loss.smoothing) == pytest.approx(0.1)
    else:
        with pytest.raises(TypeError, match=r"OwnAdaptive\.update changes `steps`"):
            made.train()
        assert made.state.global_step == 0
