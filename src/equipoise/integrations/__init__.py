"""Thin adapters to other libraries, each behind its own extra."""

from typing import TYPE_CHECKING

from equipoise.core.lazy import lazy_names as _lazy_names

__all__: list[str] = []

if TYPE_CHECKING:
    from equipoise.integrations import huggingface as huggingface
    from equipoise.integrations import lightning as lightning
    from equipoise.integrations import mlflow as mlflow
    from equipoise.integrations import onnx as onnx
    from equipoise.integrations import raw_inputs as raw_inputs
    from equipoise.integrations import ray as ray
    from equipoise.integrations import run_model as run_model
    from equipoise.integrations import saved_model as saved_model
    from equipoise.integrations import sklearn as sklearn
    from equipoise.integrations import skorch as skorch
    from equipoise.integrations import tensorboard as tensorboard
    from equipoise.integrations import torchmetrics as torchmetrics
    from equipoise.integrations import wandb as wandb
else:
    # Each needs a library of its own, which is loaded when its adapter is used.
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {},
        modules=(
            "huggingface",
            "lightning",
            "mlflow",
            "onnx",
            "raw_inputs",
            "ray",
            "run_model",
            "saved_model",
            "sklearn",
            "skorch",
            "tensorboard",
            "torchmetrics",
            "wandb",
        ),
    )
