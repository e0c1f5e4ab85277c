"""Learner: the only place where an optimizer steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import torch
from torch import Tensor, nn

from equipoise.training.batch_norm import keep_batch_norm_statistics, synchronize_batch_norm
from equipoise.training.hardware import Hardware
from equipoise.training.network_call import as_logits, call_network
from equipoise.training.recipes import Recipe
from equipoise.training.sam import sam_perturbation

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Learner"]

NetworkT = TypeVar("NetworkT", bound=nn.Module)


@final
class Learner(nn.Module, Generic[NetworkT]):
    """A network and what moves it: optimizer, schedule, clipping, mixed precision, accumulation, processes.

    Its ``state_dict`` holds the optimizer's state and gradients not yet stepped on beside the weights, so
    whoever saves the module saves the run.

    Args:
        network: What is moved; any module.
        recipe: How.

    Example:
        >>> learner = Learner(nn.Linear(2, 2), recipe=Recipe())
        >>> loss = learner(torch.ones(4, 2)).square().mean()
        >>> learner.step(loss, n_samples=4)
        >>> bool(learner(torch.ones(4, 2)).square().mean() < loss)
        True
    """

    network: NetworkT

    def __init__(self, network: NetworkT, *, recipe: Recipe | None = None) -> None:
        super().__init__()
        self.network = network
        self.recipe = recipe or Recipe()
        self._optimizer = self.recipe.optimizer.make(network.parameters())
        self._waiting = 0
        # A tuple, so that the wrapped network does not become a second child beside the network itself.
        self._attached: tuple[Fabric, Any, Any] | None = None

    def attach(self, fabric: Fabric, *, compile: bool = False, sync_batchnorm: bool = False) -> None:
        """Move to a device and take part in its processes; the loop does this before the first epoch.

        Args:
            fabric: The processes and devices.
            compile: Whether :meth:`forward` goes through ``torch.compile``; ``network`` itself stays as it is.
            sync_batchnorm: Whether batch norms take their statistics over all processes.
        """
        if sync_batchnorm and fabric.world_size > 1:
            synchronized: Any = synchronize_batch_norm(self.network, device=fabric.device)
            self.network = synchronized
        network: Any = torch.compile(self.network, dynamic=False) if compile else self.network
        module, optimizer = fabric.setup(network, self._optimizer)
        self._attached = (fabric, module, optimizer)

    def __getstate__(self) -> dict[str, Any]:
        """Leave processes and devices behind when pickled or copied; the copy finds its own at its first step."""
        return {**self.__dict__, "_attached": None}

    def _running(self) -> tuple[Fabric, Any, Any]:
        if self._attached is None:
            device = next(self.network.parameters()).device
            self.attach(Hardware(accelerator=device.type, devices=1, nodes=1).make_fabric())
        assert self._attached is not None
        return self._attached

    @property
    def fabric(self) -> Fabric:
        """The processes and devices it runs on; outside the loop, the device its network is on."""
        return self._running()[0]

    @property
    def lr(self) -> float:
        """The learning rate of the next step."""
        return float(self._optimizer.param_groups[0]["lr"])

    def set_lr(self, epoch: float, *, epochs: int) -> None:
        """Set the learning rate for a time of the run; the loop does this before every batch."""
        lr = self.recipe.optimizer.lr * self.recipe.schedule.factor(epoch, epochs=epochs)
        for group in self._optimizer.param_groups:
            group["lr"] = lr

    @property
    def is_accumulating(self) -> bool:
        """Whether gradients are waiting for further batches before the optimizer steps."""
        return self._waiting > 0

    @property
    def _completes(self) -> bool:
        return self._waiting + 1 >= self.recipe.accumulate

    def forward(self, inputs: Any) -> Any:
        """Return the network's output, in the precision and over the processes it is attached to."""
        fabric, module, _ = self._running()
        with fabric.no_backward_sync(module, enabled=not self._completes):
            return call_network(module, inputs, like=self.network)

    def logits(self, inputs: Any) -> Tensor:
        """Return the network's logits, whatever it wraps them in; one column of log-odds becomes two."""
        return as_logits(self(inputs))

    def step(self, loss: Tensor, *, n_samples: int, recompute: Callable[[], Tensor] | None = None) -> None:
        """Take an optimizer step on a loss: clear the last gradient, backward, clip, step.

        Args:
            loss: A mean over the batch, by convention; the recipe says whether it is used as it is.
            n_samples: Size of the batch over all processes.
            recompute: Computes the same loss again from a forward pass of its own; needed for sharpness-aware
                minimization, which takes the gradient at other weights.

        Raises:
            ValueError: If the recipe is sharpness-aware and the loss cannot be computed again.
        """
        fabric, module, optimizer = self._running()
        recipe, steps = self.recipe, self._completes
        if self._waiting == 0:
            # Not at the end of the step before: what was allocated last keeps the C library from handing the
            # memory below back to the system, only to fetch it page by page in the next forward pass.
            optimizer.zero_grad(set_to_none=True)
        scale = n_samples if recipe.reduction == "sum" else 1 / recipe.accumulate
        with fabric.no_backward_sync(module, enabled=not steps):
            fabric.backward(loss * scale if scale != 1 else loss, model=module)
        self._waiting = 0 if steps else self._waiting + 1
        if not steps:
            return
        if recipe.sam:
            self._step_from_perturbed_weights(recompute, scale=scale)
        if recipe.clip_norm is not None:
            fabric.clip_gradients(module, optimizer, max_norm=recipe.clip_norm, error_if_nonfinite=False)
        optimizer.step()

    def _step_from_perturbed_weights(self, recompute: Callable[[], Tensor] | None, *, scale: float) -> None:
        """Replace the gradient by that at the weights of the highest loss nearby; the weights stay as they are."""
        if recompute is None:
            raise ValueError(
                "Learner: sharpness-aware minimization needs the loss at other weights, and this objective computes it "
                "once. Set `sam` to 0."
            )
        fabric, module, optimizer = self._running()
        if getattr(fabric.strategy.precision, "scaler", None) is not None:
            raise ValueError(
                "Learner: sharpness-aware minimization needs unscaled gradients, and '16-mixed' scales them. Use "
                "'bf16-mixed' or '32-true'."
            )
        weights = [weight for weight in self.network.parameters() if weight.grad is not None]
        before = [weight.detach().clone() for weight in weights]
        steps = sam_perturbation(
            before,
            [weight.grad for weight in weights if weight.grad is not None],
            rho=self.recipe.sam,
            adaptive=self.recipe.sam_adaptive,
        )
        with torch.no_grad():
            torch._foreach_add_([weight.data for weight in weights], steps)
        optimizer.zero_grad(set_to_none=True)
        with keep_batch_norm_statistics(self.network):
            loss = recompute()
            fabric.backward(loss * scale if scale != 1 else loss, model=module)
        with torch.no_grad():
            for weight, old in zip(weights, before, strict=True):
                weight.copy_(old)  # the very bits, which adding and subtracting would not give

    def get_extra_state(self) -> dict[str, Any]:
        """Return what moves the network: the optimizer's state, and gradients that wait for a step."""
        gradients = [p.grad for p in self.network.parameters()] if self._waiting else []
        return {"optimizer": self._optimizer.state_dict(), "waiting": self._waiting, "gradients": gradients}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        self._optimizer.load_state_dict(state["optimizer"])
        self._waiting = state["waiting"]
        parameters = list(self.network.parameters())
        for parameter, gradient in zip(
            parameters, state["gradients"] or [None] * len(parameters), strict=True
        ):
            parameter.grad = None if gradient is None else torch.as_tensor(gradient).to(parameter, copy=True)
