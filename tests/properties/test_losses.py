"""Laws that every loss of the catalogue keeps; a new entry is tested without a new line here."""

from __future__ import annotations

import copy
import pickle
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from equipoise.catalogue import CATALOGUE
from equipoise.losses import Adaptive, Loss, Penalty, Sum
from helpers.daily import daily

LOSSES = {**CATALOGUE["losses"], **CATALOGUE["penalties"]}
LEAVE_ONE_OUT = {"kde"}  # a repeated sample is its own neighbor there, a heavy one is not
K = 4
VOID = 9
CROSS = list(product([False, True], repeat=3))


def make(key: str, **overrides: object) -> nn.Module:
    """Build an entry; the state of adaptive ones is moved off its start, where many are cross-entropy."""
    needed = {"n_classes": K} if "n_classes" in LOSSES[key].needs else {}
    loss = LOSSES[key].make(**needed, **overrides)
    if isinstance(loss, Adaptive):
        logits, labels = held_out()
        for epoch in range(3):
            loss.update((epoch + 1) * logits, labels)
    return loss


def held_out() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return 9 * torch.randn(40, K, generator=generator), torch.randint(0, K, (40,), generator=generator)


def batch(*sizes: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(len(sizes))
    logits = 6 * torch.randn(sizes[0], K, *sizes[1:], generator=generator, dtype=dtype)
    return logits, torch.randint(0, K, sizes, generator=generator)


KINDS = {key: make(key) for key in LOSSES}
# What a pixel's loss depends on beyond its own logits cannot be compared with the loss of flat samples.
FLAT = {key: loss for key, loss in KINDS.items() if "pixels" not in LOSSES[key].needs}
PER_SAMPLE = [key for key, loss in FLAT.items() if isinstance(loss, Loss)]
PENALTIES = [key for key, loss in FLAT.items() if isinstance(loss, Penalty)]
ADAPTIVE = [key for key, entry in LOSSES.items() if "held_out" in entry.needs]
SOFT = [key for key in PER_SAMPLE if KINDS[key].soft_targets]
every = pytest.mark.parametrize("key", LOSSES)
QUIET = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, from inside its transforms


def differentiated(loss: nn.Module, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.detach().requires_grad_()
    value = loss(logits, labels)
    return value.detach(), torch.autograd.grad(value.sum(), logits)[0]


class Case:
    """A batch with or without class weights, void labels and dense axes, and what counts of it by hand."""

    def __init__(self, *, weighted: bool, ignored: bool, dense: bool) -> None:
        self.dense = dense
        self.logits, self.labels = batch(5, 2, 3) if dense else batch(30)
        if ignored:
            self.labels.view(-1)[::4] = VOID
        weight = torch.tensor([0.5, 3.0, 1.0, 0.25] if weighted else [1.0] * K, dtype=torch.float64)
        self.options = {"weight": weight if weighted else None, "ignore_index": VOID if ignored else -100}
        self.kept = [i for i, label in enumerate(self.labels.flatten().tolist()) if label != VOID]
        self.kept_labels = self.labels.flatten()[self.kept]
        self.kept_weights = weight[self.kept_labels]

    def flat(self, tensor: Tensor) -> Tensor:
        return (tensor.movedim(1, -1) if self.dense else tensor).reshape(-1, K)


@every
def test_it_is_a_finite_scalar_with_a_gradient(key: str) -> None:
    value, grad = differentiated(make(key), *batch(7))
    assert value.shape == ()
    assert value.isfinite()
    assert grad.isfinite().all()
    assert grad.abs().sum() > 0


@pytest.mark.parametrize("key", PER_SAMPLE)
@pytest.mark.parametrize(("weighted", "ignored", "dense"), CROSS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_signature_equals_computation_by_hand(
    key: str, weighted: bool, ignored: bool, dense: bool, reduction: str
) -> None:
    case = Case(weighted=weighted, ignored=ignored, dense=dense)
    value, grad = differentiated(make(key, reduction=reduction, **case.options), case.logits, case.labels)

    rows = case.flat(case.logits).requires_grad_()
    each = make(key).per_sample(rows[case.kept], case.kept_labels) * case.kept_weights
    none = torch.zeros(case.labels.numel(), dtype=torch.float64).index_put((torch.tensor(case.kept),), each)
    wanted = {
        "mean": each.sum() / case.kept_weights.sum(),
        "sum": each.sum(),
        "none": none.reshape(case.labels.shape),
    }[reduction]
    torch.testing.assert_close(value, wanted.detach())
    torch.testing.assert_close(case.flat(grad), torch.autograd.grad(wanted.sum(), rows)[0])


@pytest.mark.parametrize("key", PENALTIES)
@pytest.mark.parametrize(("weighted", "ignored", "dense"), CROSS)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_penalty_equals_term_of_what_counts(
    key: str, weighted: bool, ignored: bool, dense: bool, reduction: str
) -> None:
    case = Case(weighted=weighted, ignored=ignored, dense=dense)
    value = make(key, reduction=reduction, **case.options)(case.logits, case.labels)
    term = make(key).term(case.flat(case.logits)[case.kept], case.kept_labels, case.kept_weights)
    torch.testing.assert_close(value, term * case.kept_weights.sum() if reduction == "sum" else term)


@pytest.mark.parametrize("key", sorted(set(PENALTIES) - LEAVE_ONE_OUT))
def test_penalty_counts_weight_as_repetition(key: str) -> None:
    logits, labels = batch(12)
    weight = torch.tensor([1.0, 3.0, 1.0, 2.0], dtype=torch.float64)
    repeats = weight[labels].long()
    repeated = make(key)(logits.repeat_interleave(repeats, 0), labels.repeat_interleave(repeats))
    torch.testing.assert_close(make(key, weight=weight)(logits, labels), repeated)


@pytest.mark.parametrize("key", PENALTIES)
def test_penalty_refuses_one_value_per_sample(key: str) -> None:
    with pytest.raises(ValueError, match="no value per sample"):
        make(key, reduction="none")


@every
def test_nothing_to_count_is_zero_with_gradient_zero(key: str) -> None:
    logits, labels = batch(6)
    value, grad = differentiated(make(key), logits, torch.full_like(labels, -100))
    assert value == 0
    assert not grad.any()
    assert make(key)(logits[:0], labels[:0]) == 0


@pytest.mark.parametrize("key", PER_SAMPLE)
def test_one_sample_without_batch_axis(key: str) -> None:
    logits, labels = batch(3)
    loss = make(key, reduction="none")
    assert loss(logits[0], labels[0]).shape == ()
    torch.testing.assert_close(loss(logits[0], labels[0]), loss(logits, labels)[0])


@every
def test_order_of_samples_does_not_matter(key: str) -> None:
    logits, labels = batch(9)
    loss = make(key)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(loss(logits[order], labels[order]), loss(logits, labels))


@every
def test_the_gradient_is_the_derivative_unless_the_entry_says_otherwise(key: str) -> None:
    logits, labels = batch(6)
    loss, entry = make(key).double(), LOSSES[key]
    agrees = torch.autograd.gradcheck(
        lambda z: loss(z, labels), logits.requires_grad_(), raise_exception=entry.stops_gradient is False
    )
    assert agrees is not entry.stops_gradient


@pytest.mark.parametrize("key", [key for key in PER_SAMPLE if not LOSSES[key].stops_gradient])
def test_gradient_of_the_gradient(key: str) -> None:
    logits, labels = batch(3)
    loss = make(key).double()
    assert torch.autograd.gradgradcheck(lambda z: loss(z, labels), logits.requires_grad_())


@every
@pytest.mark.parametrize("scale", [1e4, -1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_finite_at_extreme_logits(key: str, scale: float, dtype: torch.dtype) -> None:
    extreme = scale * torch.eye(K, dtype=dtype).repeat(2, 1)
    for labels in (torch.arange(K).repeat(2), torch.zeros(2 * K, dtype=torch.long)):
        value, grad = differentiated(make(key), extreme, labels)
        assert value.isfinite()
        assert grad.isfinite().all()
        value, grad = differentiated(make(key), torch.zeros_like(extreme), labels)
        assert value.isfinite()
        assert grad.isfinite().all()


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(key: str, dtype: torch.dtype) -> None:
    logits, labels = batch(8, dtype=torch.float32)
    logits = logits.to(dtype)
    loss = make(key)
    wanted, wanted_grad = differentiated(loss, logits.float(), labels)
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            value, grad = differentiated(loss, logits, labels)
        assert value.dtype == torch.float32
        assert grad.dtype == dtype
        torch.testing.assert_close(value, wanted)
        torch.testing.assert_close(grad, wanted_grad.to(dtype))


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_follows_the_logits(key: str, dtype: torch.dtype) -> None:
    logits, labels = batch(5, dtype=dtype)
    assert make(key)(logits, labels).dtype == dtype
    assert make(key)(logits, labels.int()).dtype == dtype


@every
def test_device_follows_the_logits(key: str) -> None:
    """On the meta device nothing has a value, so reading one would raise."""
    weight = torch.ones(K)
    logits, labels = torch.zeros(5, K, device="meta"), torch.zeros(5, dtype=torch.long, device="meta")
    loss = make(key, weight=weight).to("meta")
    assert loss(logits, labels).device.type == "meta"


@pytest.mark.parametrize("key", SOFT)
def test_one_hot_soft_targets_equal_class_numbers(key: str) -> None:
    for sizes in ((6,), (2, 3)):
        logits, labels = batch(*sizes)
        targets = nn.functional.one_hot(labels, K).double().movedim(-1, 1)
        loss = make(key, weight=torch.tensor([1.0, 2.0, 3.0, 0.5]))
        torch.testing.assert_close(loss(logits, targets), loss(logits, labels))


@pytest.mark.parametrize("key", SOFT)
def test_soft_targets_can_be_anything_between(key: str) -> None:
    logits, _ = batch(6)
    targets = torch.full_like(logits, 1 / K)
    assert make(key)(logits, targets).isfinite()
    if not LOSSES[key].stops_gradient:
        assert torch.autograd.gradcheck(lambda z: make(key).double()(z, targets), logits.requires_grad_())


@pytest.mark.parametrize("key", sorted({*PER_SAMPLE, *PENALTIES} - set(SOFT)))
def test_soft_targets_are_refused_with_the_remedy(key: str) -> None:
    logits, _ = batch(6)
    if not make(key).soft_targets:
        with pytest.raises(ValueError, match="Soft labels are not supported here"):
            make(key)(logits, torch.full_like(logits, 1 / K))
        with pytest.raises(ValueError, match=r"argmax\(1\)"):
            make(key)(logits, torch.eye(K)[torch.zeros(len(logits), dtype=torch.long)].to(logits))


@every
def test_wrong_inputs_are_refused_with_the_remedy(key: str) -> None:
    loss, (logits, labels) = make(key), batch(6)
    with pytest.raises(ValueError, match=r"one-hot: pass labels\.argmax\(1\)"):
        loss(logits, nn.functional.one_hot(labels, K))
    with pytest.raises(ValueError, match="Several labels per row are not supported"):
        loss(logits, torch.ones_like(logits).long())
    with pytest.raises(ValueError, match="axis 1"):
        loss(logits, labels[:-1])
    with pytest.raises(ValueError, match=r"labels\.long\(\)"):
        loss(logits, labels.double())
    with pytest.raises(TypeError, match="in this order"):
        loss(labels, logits)
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        make(key, weight=torch.ones(K + 1))(logits, labels)
    with pytest.raises(ValueError, match="Did you mean 'mean'"):
        make(key, reduction="meen")


@every
@pytest.mark.parametrize("label", [-1, -2, K, 255, 2**40, -(2**40)])
def test_a_label_that_is_no_class_is_refused(key: str, label: int) -> None:
    for sizes in ((6,), (2, 3)):
        logits, labels = batch(*sizes)
        labels.view(-1)[-1] = label
        with pytest.raises(ValueError, match=rf"from 0 to 3, or -100.* got labels .*{label}.*ignore_index"):
            make(key)(logits, labels)
        assert make(key, ignore_index=label)(logits, labels).isfinite()


@pytest.mark.parametrize("key", ADAPTIVE)
def test_held_out_labels_that_are_no_class_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="from 0 to 3"):
        make(key).update(held_out()[0], held_out()[1] - 1)


class NothingIsRead(TorchDispatchMode):
    """Raises where a number would be taken out of a tensor, for which a step would wait for the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is not torch.ops.aten._local_scalar_dense.default, "a value is read"
        assert func is not torch.ops.aten.equal.default, "a value is read"
        return func(*args, **(kwargs or {}))


@every
@pytest.mark.parametrize("ignored", [False, True])
def test_a_step_reads_no_value(key: str, ignored: bool) -> None:
    logits, labels = batch(6)
    loss = make(key, weight=torch.ones(K))
    if ignored:
        labels[0] = -100
    with NothingIsRead():
        loss(logits.requires_grad_(), labels).backward()
    with pytest.raises(AssertionError, match="is read"), NothingIsRead():
        bool(labels[0])


@QUIET
@every
def test_derivative_in_forward_mode(key: str) -> None:
    logits, labels = batch(6)
    loss, direction = make(key).double(), torch.linspace(-1, 1, logits.numel(), dtype=torch.float64)
    direction = direction.reshape(logits.shape)
    value, rise = torch.func.jvp(lambda z: loss(z, labels), (logits,), (direction,))
    wanted, grad = differentiated(loss, logits, labels)
    torch.testing.assert_close(value, wanted)
    torch.testing.assert_close(rise, (grad * direction).sum())


@QUIET
@pytest.mark.parametrize("key", PER_SAMPLE)
def test_forward_over_reverse_is_reverse_over_reverse(key: str) -> None:
    logits, labels = batch(3)
    loss, direction = make(key).double(), batch(3)[0].flip(0)
    gradient = torch.func.grad(lambda z: loss(z, labels))
    _, ahead = torch.func.jvp(gradient, (logits,), (direction,))
    _, pull = torch.func.vjp(gradient, logits)
    torch.testing.assert_close(ahead, pull(direction)[0])


@pytest.mark.parametrize("key", PER_SAMPLE)
def test_maps_over_batches_and_looks_at_labels_there_too(key: str) -> None:
    logits, labels = batch(6)
    pairs, answers = logits.reshape(3, 2, K), labels.reshape(3, 2)
    loss = make(key)
    wanted = torch.stack([loss(z, y) for z, y in zip(pairs, answers, strict=True)])
    torch.testing.assert_close(torch.vmap(loss)(pairs, answers), wanted)
    answers[1, 1] = K
    with pytest.raises(ValueError, match="from 0 to 3"):
        torch.vmap(loss)(pairs, answers)


@every
def test_its_name_says_its_parameters(key: str) -> None:
    shown = repr(make(key))
    for name in LOSSES[key].options:
        assert f"{name}=" in shown, shown


@every
def test_it_survives_pickling_and_copying(key: str) -> None:
    logits, labels = batch(6)
    loss = make(key)
    for again in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        assert torch.equal(again(logits, labels), loss(logits, labels))


@every
def test_state_survives_saving_in_mid_training(key: str) -> None:
    logits, labels = batch(8)
    straight = make(key)
    resumed = LOSSES[key].make(**({"n_classes": K} if "n_classes" in LOSSES[key].needs else {}))
    resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    for loss in (straight, resumed):
        if isinstance(loss, Adaptive):
            loss.update(*held_out())
    assert torch.equal(straight(logits, labels), resumed(logits, labels))


@pytest.mark.parametrize("key", ADAPTIVE)
def test_update_changes_the_loss_and_only_update_does(key: str) -> None:
    logits, labels = batch(8)
    loss = LOSSES[key].make(**({"n_classes": K} if "n_classes" in LOSSES[key].needs else {}))
    before = copy.deepcopy(loss.state_dict())
    first = loss(logits, labels)
    assert all(torch.equal(before[name], value) for name, value in loss.state_dict().items())
    for scale in (1.0, 3.0):
        loss.update(scale * held_out()[0], held_out()[1])
    assert not torch.equal(first, loss(logits, labels))


@pytest.mark.parametrize("key", ADAPTIVE)
def test_update_of_dense_predictions_with_void_equals_the_flat_ones(key: str) -> None:
    logits, labels = held_out()
    dense = logits.reshape(4, 10, K).movedim(-1, 1)
    labels[::3] = -100
    kept = labels != -100
    flat, shaped = make(key), make(key)
    flat.update(logits[kept], labels[kept])
    with torch.no_grad():
        shaped.update(dense, labels.reshape(4, 10))
    for name, value in flat.state_dict().items():
        torch.testing.assert_close(value, shaped.state_dict()[name], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("key", ADAPTIVE)
def test_update_takes_predictions_made_in_inference_mode(key: str) -> None:
    logits, labels = held_out()
    inside, outside, plain = make(key), make(key), make(key)
    with torch.inference_mode():
        predictions = 2 * logits
        inside.update(predictions, labels)
    outside.update(predictions, labels)
    plain.update(2 * logits, labels)
    for name, value in plain.state_dict().items():
        assert torch.equal(value, inside.state_dict()[name]), name
        assert torch.equal(value, outside.state_dict()[name]), name
    differentiated(inside, *batch(5))


@pytest.mark.parametrize("key", ADAPTIVE)
def test_update_without_predictions_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="all held-out predictions"):
        make(key).update(torch.zeros(2, K), torch.full((2,), -100))


GRAPHS = sorted(key for key, entry in LOSSES.items() if not entry.sum)  # their terms are tested each


@pytest.mark.parametrize("key", daily(GRAPHS, keep=["dual_focal", "mmce"]))
def test_compiles_to_one_graph(key: str) -> None:
    torch._dynamo.reset()
    loss = make(key)
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    for sizes in ((6,), (5,), (2, 3)):
        logits, labels = batch(*sizes, dtype=torch.float32)
        wanted, wanted_grad = differentiated(loss, logits, labels)
        value, grad = differentiated(compiled, logits, labels)
        torch.testing.assert_close(value, wanted)
        torch.testing.assert_close(grad, wanted_grad)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, from inside the compiler
@pytest.mark.parametrize("key", ["focal", "dual_focal", "cals_alm"])
def test_compiled_code_gives_the_same_numbers(key: str) -> None:
    torch._dynamo.reset()
    loss = make(key)
    logits, labels = batch(32, dtype=torch.float32)
    wanted, wanted_grad = differentiated(loss, logits, labels)
    value, grad = differentiated(torch.compile(loss, fullgraph=True), logits, labels)
    torch.testing.assert_close(value, wanted)
    torch.testing.assert_close(grad, wanted_grad)


@every
def test_terms_scale_and_add(key: str) -> None:
    logits, labels = batch(6)
    loss = make(key)
    total = nn.CrossEntropyLoss() + 0.5 * loss
    assert isinstance(total, Sum)
    wanted = nn.functional.cross_entropy(logits, labels) + 0.5 * loss(logits, labels)
    torch.testing.assert_close(total(logits, labels), wanted)
