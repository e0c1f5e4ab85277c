"""skorch: a classifier whose probabilities are probabilities, and a callback for losses that adapt."""

from __future__ import annotations

from typing import Any, final

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message

# isort: split
import torch
from torch import Tensor, nn

from equipoise.core.errors import needs
from equipoise.losses.adaptive import check_saved_state, is_adaptive, made_up_rows
from equipoise.losses.base import log_odds_as_logits

with needs("skorch", extra="skorch", purpose="train with skorch"):
    from skorch import NeuralNetClassifier
    from skorch.callbacks import Callback

__all__ = ["AdaptLoss", "make_classifier", "softmax_of"]


def softmax_of(logits: Tensor) -> Tensor:
    """Return the softmax over classes, on axis 1; what ``predict_nonlinearity`` must be for our losses.

    One column of log-odds stands for two classes.

    Example:
        >>> softmax_of(torch.zeros(1, 4))
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return log_odds_as_logits(logits).softmax(1)


def make_classifier(module: Any, criterion: type[nn.Module], **options: Any) -> Any:
    """Return a ``NeuralNetClassifier`` that trains with one of our losses and answers with probabilities.

    Left alone, skorch applies the softmax for ``nn.CrossEntropyLoss`` only; with any other loss ``predict_proba``
    gives logits without a word.

    Args:
        module: A module, or a class of modules, that gives logits.
        criterion: The loss's class; its settings are ``criterion__...`` among the options.
        **options: Arguments of ``NeuralNetClassifier``.

    Returns:
        The classifier; grid search, cloning and pipelines work as with any other.

    Example:
        >>> import numpy as np
        >>> from equipoise.losses import FocalLoss
        >>> net = make_classifier(nn.Linear(2, 2), FocalLoss, criterion__gamma=3.0, max_epochs=1, verbose=0)
        >>> net = net.set_params(callbacks__print_log=None)
        >>> X, y = np.zeros((10, 2), np.float32), np.arange(10) % 2
        >>> net.fit(X, y).predict_proba(X).sum(axis=1)[:2].round(3)
        array([1., 1.], dtype=float32)
    """
    return NeuralNetClassifier(module, criterion=criterion, predict_nonlinearity=softmax_of, **options)


@final
class AdaptLoss(Callback):  # type: ignore[misc]
    """Re-tune a loss that adapts at the end of every epoch, from the rows that ``train_split`` holds out.

    These are what this package calls ``tune``: the loss learns from them, so that results must be judged by other
    rows. ``net.save_params(f_criterion=...)`` keeps what the loss has learned.

    Example:
        >>> import numpy as np
        >>> from equipoise.losses import AdaFocalLoss
        >>> net = make_classifier(nn.Linear(2, 2), AdaFocalLoss, callbacks=[AdaptLoss()], max_epochs=1, verbose=0)
        >>> net = net.set_params(callbacks__print_log=None)
        >>> X, y = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32), np.arange(50) % 2
        >>> bool((net.fit(X, y).criterion_.bins.gammas != 1).any())
        True
    """

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:  # noqa: N803
        """Refuse a loss that does not adapt, and a net that holds no rows out."""
        if not is_adaptive(net.criterion_) or not isinstance(net.criterion_, nn.Module):
            raise TypeError(
                "AdaptLoss: the criterion must be a loss that adapts, a torch module with update(logits, labels), got "
                f"{type(net.criterion_).__name__}. Others need no callback."
            )
        if y is not None:
            n_classes = int(torch.as_tensor(y).max()) + 1
            check_saved_state(net.criterion_, *made_up_rows(max(n_classes, 2)), where="AdaptLoss")
        if net.train_split is None:
            raise ValueError("AdaptLoss: `train_split` must hold rows out to learn from, got None.")

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        """Forget the rows of the epoch before."""
        self.rows_: list[tuple[Tensor, Tensor]] = []

    def on_batch_end(
        self, net: Any, batch: Any = None, training: bool = False, y_pred: Any = None, **kwargs: Any
    ) -> None:
        """Keep the logits of held-out rows."""
        if not training:
            self.rows_.append((y_pred.detach(), batch[1].to(y_pred.device)))

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Re-tune the loss."""
        logits, labels = (torch.cat(part) for part in zip(*self.rows_, strict=True))
        net.criterion_.update(logits, labels)
        self.rows_ = []
