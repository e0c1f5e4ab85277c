"""Published checkpoints, read by the names their authors gave to layers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from equipoise.core.errors import DataError

__all__ = ["load_published"]

NetworkT = TypeVar("NetworkT", bound=nn.Module)

#: Under which key training scripts put the weights among other things.
_ENVELOPES = ("state_dict", "model_state_dict", "model", "net")
#: What wrappers put before every name.
_PREFIXES = ("module.", "_orig_mod.")
#: What authors call the last layer.
_HEADS = ("linear.", "fc.", "fc2.", "classifier.", "head.")


def load_published(network: NetworkT, source: str | os.PathLike[str] | Mapping[str, Any]) -> NetworkT:
    """Fill a network with the weights of a published checkpoint.

    Reads the 6n+2 ResNets of akamaster/pytorch_resnet_cifar10 (built with ``shortcut="A"``), the networks of
    torrvision/focal_calibration, and torchvision's ResNet-50 for :func:`resnet50_imagenet`. Names are mapped
    (``linear`` or ``fc`` to the head, ``downsample`` to ``shortcut``); envelopes such as
    ``{"state_dict": ...}`` and prefixes such as ``module.`` are taken off. A file is read as tensors only:
    none of its code runs.

    Args:
        network: The network to fill, in place; or a part without a head, such as the encoder of a segmentation
            network (``network.body.encoder``), which leaves the head of the file aside. Nothing changes unless all
            fits.
        source: A checkpoint file, or the mapping that one holds.

    Returns:
        The same network.

    Raises:
        DataError: If a weight is missing, unexpected or of the wrong shape; the message names it.
        FileNotFoundError: If there is no such file.

    Example:
        >>> theirs = {"module.0.weight": torch.ones(2, 2), "module.0.bias": torch.ones(2)}
        >>> theirs |= {"module.fc.weight": torch.ones(3, 2), "module.fc.bias": torch.ones(3)}
        >>> from equipoise.models import Network
        >>> network = Network(torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.nn.Linear(2, 3))
        >>> load_published(network, {"state_dict": theirs})(torch.ones(1, 2))
        tensor([[7., 7., 7.]], grad_fn=<AddmmBackward0>)
    """
    where = "load_published" if isinstance(source, Mapping) else f"load_published: {os.fspath(source)}"
    published = _tensors(source if isinstance(source, Mapping) else _read(Path(source)), where=where)
    own = network.state_dict()
    places = {_plain_name(key): key for key in own}
    named = {_plain_name(_strip(key)): key for key in published}
    if not any(name.startswith("head.") for name in places):
        published = {key: value for key, value in published.items() if not _is_of_head(key)}
        named = {name: key for name, key in named.items() if key in published}
    if len(named) < len(published):
        twins = [key for key in published if key not in named.values()]
        raise DataError(f"{where} must hold one weight per place, got two for {_some(twins)}. Remove one.")
    _check_names(places, named, where=where)
    filled = {places[name]: published[key] for name, key in named.items()}
    _check_shapes(own, filled, where=where)
    network.load_state_dict({**own, **filled})
    return network


def _read(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"load_published: no file {path}. Download the checkpoint and pass its path.")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # a reader that meets broken bytes raises whatever comes
        raise DataError(
            f"load_published: {path} must hold tensors and nothing else, got {type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'an unreadable file'} "
            "Download it again, or save its state_dict alone and load that."
        ) from error


def _tensors(held: Any, *, where: str) -> dict[str, Tensor]:
    while isinstance(held, Mapping):
        inner = next((held[key] for key in _ENVELOPES if isinstance(held.get(key), Mapping)), None)
        if inner is None:
            break
        held = inner
    if not isinstance(held, Mapping) or not held:
        raise DataError(
            f"{where} must hold named weights, got {type(held).__name__}. "
            "Save model.state_dict(), not the model."
        )
    others = [str(key) for key, value in held.items() if not isinstance(value, Tensor)]
    if others:
        raise DataError(
            f"{where} must hold tensors only, got others under {_some(others)}. Pass the inner state_dict."
        )
    return {str(key): value for key, value in held.items()}


def _strip(name: str) -> str:
    while name.startswith(_PREFIXES):
        name = name.partition(".")[2]
    return name


def _is_of_head(key: str) -> bool:
    return _plain_name(_strip(key)).startswith("head.")


def _plain_name(name: str) -> str:
    """Return the name that ours and theirs have in common; only the head has a word of its own."""
    if name.startswith(_HEADS):
        return "head." + name.partition(".")[2]
    name = name.removeprefix("body.")
    return name.replace(".downsample.", ".shortcut.").replace(".block.", ".")


def _check_names(places: Mapping[str, str], named: Mapping[str, str], *, where: str) -> None:
    # Files older than 2018 do not count batches; that number only matters to averages without momentum.
    missing = [name for name in places if name not in named and not name.endswith("num_batches_tracked")]
    unexpected = [key for name, key in named.items() if name not in places]
    if not missing and not unexpected:
        return
    said = [f"missing {_some(missing)}"] * bool(missing) + [f"unexpected {_some(unexpected)}"] * bool(
        unexpected
    )
    remedy = "Is it another depth or family?"
    if all(".shortcut." in name for name in (*missing, *unexpected)):
        remedy = f"Build the network with shortcut={'A' if missing else 'B'!r}."
    raise DataError(f"{where} must hold the weights of this network, got {' and '.join(said)}. {remedy}")


def _check_shapes(own: Mapping[str, Tensor], filled: Mapping[str, Tensor], *, where: str) -> None:
    wrong = [
        f"{key} {tuple(value.shape)} for {tuple(own[key].shape)}"
        for key, value in filled.items()
        if value.shape != own[key].shape
    ]
    if wrong:
        raise DataError(
            f"{where} must hold weights of this network's shapes, got {_some(wrong)}. "
            "Check `n_classes`, `in_channels` and the width."
        )


def _some(names: list[str]) -> str:
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")
