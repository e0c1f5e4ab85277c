"""``equipoise doctor``: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from equipoise import __version__
from equipoise.cli.options import json_option
from equipoise.cli.output import print_json
from equipoise.core.tables import Table
from equipoise.kernels.cache import cache_folder
from equipoise.kernels.dispatch import is_ready, why_fallback

__all__ = ["command"]

_CORE = ("numpy", "scipy", "numba", "click", "jinja2")
#: What each extra is for, and the packages that it brings.
_EXTRAS = {
    "torch": ("losses, networks and tensors", ("torch",)),
    "parquet": ("read and write .parquet", ("pyarrow",)),
    "remote": ("read files by address", ("pyarrow", "fsspec")),
    "safetensors": ("read and write .safetensors", ("safetensors",)),
    "data": ("datasets by name", ("scikit-learn", "pillow")),
    "train": ("training and comparisons", ("lightning-fabric", "filelock", "latex2mathml")),
    "plots": ("figures", ("matplotlib",)),
    "pandas": ("data frames", ("pandas",)),
    "ray": ("runs and audits on a cluster", ("ray",)),
    "optuna": ("search of hyperparameters", ("optuna",)),
    "sklearn": ("scikit-learn estimators", ("scikit-learn",)),
    "torchmetrics": ("TorchMetrics", ("torchmetrics",)),
    "skorch": ("skorch callbacks", ("skorch",)),
    "onnx": ("export to ONNX", ("onnx", "onnxruntime", "onnxscript")),
    "lightning": ("Lightning callbacks", ("lightning",)),
    "huggingface": ("Hugging Face models and trainers", ("transformers", "accelerate")),
    "tensorboard": ("logs for TensorBoard", ("tensorboard",)),
    "mlflow": ("logs for MLflow", ("mlflow-skinny", "sqlalchemy", "alembic")),
    "wandb": ("logs for Weights & Biases", ("wandb",)),
}


@click.command("doctor", epilog="Example:  equipoise doctor")
@json_option
def command(as_json: bool) -> int:
    """Explain the installation: versions, extras, threads, and the cache of compiled code.

    Exit codes: 0 the core works, 1 it does not. Missing extras are not a problem.
    """
    found = _examine()
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 0 if not found["problems"] else 1


def _examine() -> dict[str, Any]:
    problems: list[str] = []
    found: dict[str, Any] = {
        "equipoise": __version__,
        "installed_at": str(Path(__file__).resolve().parents[1]),
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": platform.platform(),
        "core": {name: _version(name) for name in _CORE},
        "extras": {
            extra: {
                "purpose": purpose,
                "packages": {name: _version(name) for name in packages},
                "install": f"pip install 'equipoise[{extra}]'",
            }
            for extra, (purpose, packages) in _EXTRAS.items()
        },
        "torch": _torch(problems),
        "numba": _numba(problems),
    }
    # Without numba everything runs, but slower; `compiled_pass` reports it.
    missing = [name for name, number in found["core"].items() if number is None and name != "numba"]
    problems += [f"{name} is missing. Run: pip install {name}" for name in missing]
    found["problems"] = problems
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _torch(problems: list[str]) -> dict[str, Any]:
    if _version("torch") is None:
        return {}
    import torch

    from equipoise.training.bfloat16 import why_no_bfloat16

    cuda = torch.version.cuda
    if cuda is not None and not torch.cuda.is_available():
        # This works, but slower than the user may expect.
        device = f"built for CUDA {cuda}, but no such device was found"
    elif torch.cuda.is_available():
        device = torch.cuda.get_device_name(0)
    else:
        device = "CPU only"
    if float(torch.softmax(torch.zeros(2), 0)[0]) != 0.5:
        problems.append("torch computes a wrong softmax. Install it again.")
    # A machine without bfloat16 is not a problem of the installation.
    lacking = why_no_bfloat16()
    return {
        "build": torch.__version__,
        "device": device,
        "threads": torch.get_num_threads(),
        "bfloat16": f"not on this CPU: {lacking}" if lacking else "works",
    }


def _numba(problems: list[str]) -> dict[str, Any]:
    from equipoise.metrics import CalibrationState

    try:
        state = CalibrationState(2)
        state.update(probs=[[0.75, 0.25]], labels=[0])
        works = state.n_samples == 1
    except Exception as error:  # noqa: BLE001 - whatever the compiler raises is the finding
        works = False
        problems.append(f"the compiled pass does not run: {type(error).__name__}: {error}")
    return {"compiled_pass": _compiled_pass() if works else "does not run", "cache": _cache()}


def _compiled_pass() -> str:
    """Return whether passes over predictions are compiled."""
    reason = why_fallback()
    if reason:
        return f"off, so slower code is used: {reason}"
    return "works" if is_ready("state", "f") else "works; compiled at the first large input"


def _cache() -> str:
    """Return where compiled code is cached."""
    folder = cache_folder()
    if folder is None:
        return (
            "no writable folder; every start compiles again unless NUMBA_CACHE_DIR is set to a writable one"
        )
    return f"cached in {folder}"


def _print(found: dict[str, Any]) -> None:
    click.echo(f"equipoise {found['equipoise']}, {found['installed_at']}")
    rows = [("Python", found["python"]), ("system", found["system"])]
    rows += [(name, number or "missing") for name, number in found["core"].items()]
    rows += [
        (name, str(found["torch"][name])) for name in ("device", "threads", "bfloat16") if found["torch"]
    ]
    rows += [
        ("compiled pass", found["numba"]["compiled_pass"]),
        ("compiled code", found["numba"]["cache"]),
    ]
    click.echo(Table.of(("", ""), rows, align="ll").to_text(indent=2))
    click.echo("\nextras")
    lines = []
    for extra, about in found["extras"].items():
        packages = about["packages"]
        absent = [name for name, number in packages.items() if number is None]
        have = ", ".join(f"{name} {number}" for name, number in packages.items() if number is not None)
        lines.append((extra, about["purpose"], f"missing: {about['install']}" if absent else have))
    click.echo(Table.of(("", "", ""), lines, align="lll").to_text(indent=2))
    click.echo("")
    for problem in found["problems"]:
        click.echo(f"Problem: {problem}")
    if not found["problems"]:
        click.echo("The core works.")
