"""Arrays from NumPy, torch or plain lists, as NumPy, without copies where that is possible."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import first_line

if TYPE_CHECKING:
    import torch

__all__ = [
    "Array",
    "array_namespace",
    "as_floats",
    "as_integers",
    "as_numpy",
    "as_tensor",
    "freeze",
    "has_bad_text",
    "is_tensor",
    "label_remedy",
    "round_to_bfloat16",
]

Array: TypeAlias = NDArray[Any]

#: Beyond this, floats skip whole numbers.
_LARGEST_WHOLE = 2.0**53


def is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """Return whether a value is a torch tensor, without importing torch: without it, there are no tensors.

    Example:
        >>> is_tensor(np.zeros(1))
        False
    """
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(value, tensor)


def array_namespace(*arrays: object) -> Any:
    """Return the module whose functions compute on these arrays, with the names of the array API standard.

    A formula written as ``xp = array_namespace(x); xp.sum(xp.exp(x), axis=-1)`` serves NumPy arrays and tensors on any
    device. NumPy is that module for everything but tensors, for which it is ``array_api_compat.torch``.

    Args:
        arrays: The inputs of the formula; one tensor among them makes it torch's.

    Example:
        >>> array_namespace(np.zeros(1)).__name__
        'numpy'
    """
    if any(is_tensor(array) for array in arrays):
        import array_api_compat.torch as namespace

        return namespace
    return np


def as_numpy(values: Any) -> Array:
    """Return NumPy's view of an array, tensor (any device), data frame, its column, or nested list.

    bfloat16, which NumPy does not know, becomes float32; that loses nothing.

    Example:
        >>> as_numpy([0.5])
        array([0.5])
    """
    if is_tensor(values):
        tensor = values.detach()
        if str(tensor.dtype) == "torch.bfloat16":
            tensor = tensor.float()
        return tensor.cpu().resolve_conj().resolve_neg().numpy()
    array = np.asarray(values)
    if array.dtype.kind == "O" and not isinstance(values, np.ndarray | list | tuple):
        return _typed(array)
    return array


def _typed(objects: Array) -> Array:
    """Return the objects that a data frame gave as numbers or text, if all are of one kind."""
    try:
        fresh = np.array(objects.tolist())
    except ValueError:  # cells that hold lists of several lengths
        return objects
    if fresh.dtype.kind in "iubf" or (
        fresh.dtype.kind == "U" and all(isinstance(value, str) for value in objects.flat)
    ):
        return fresh
    return objects


def as_tensor(array: Array) -> torch.Tensor:
    """Return a tensor that shares an array's memory, be the array read-only or not. This imports torch.

    The tensor must not be written to. Only a layout that torch does not know, such as rows in reverse, is copied.

    Example:
        >>> as_tensor(freeze(np.zeros(2)))
        tensor([0., 0.], dtype=torch.float64)
    """
    import torch

    if any(step < 0 or step % array.itemsize for step in array.strides):
        array = np.ascontiguousarray(array)
    if not array.flags.writeable:
        # torch warns about read-only memory although we only read; an alias marked writable avoids the copy.
        interface = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}
        array = np.asarray(SimpleNamespace(__array_interface__=interface, keep_alive=array))
    return torch.from_numpy(array)


def round_to_bfloat16(values: Array) -> Array:
    """Return float32 numbers rounded to the nearest bfloat16, which NumPy does not have; of two nearest, the even one.

    Example:
        >>> round_to_bfloat16(np.array([0.3]))
        array([0.30078125], dtype=float32)
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


def as_floats(values: Any, *, where: str, name: str) -> Array:
    """Return real numbers as float32 or float64; half precision is widened, integers become float64.

    Raises:
        TypeError: For text, objects, complex numbers or times.

    Example:
        >>> as_floats([1, 2], where="doc", name="logits").dtype
        dtype('float64')
    """
    array = _as_array(values, where=where, name=name)
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype.kind in "iubf":
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    remedy = (
        "Missing values or text? Drop such rows, or convert them."
        if array.dtype.kind == "O"
        else "Convert it with .astype(float)."
    )
    raise TypeError(f"{where}: `{name}` must hold real numbers, got dtype {array.dtype}. {remedy}")


def as_integers(values: Any, *, where: str, name: str) -> Array:
    """Return class numbers as int64; floats that are whole numbers are class numbers too.

    Raises:
        TypeError: For other floats or text, with the conversion to use.

    Example:
        >>> as_integers(np.array([1, 2], dtype=np.uint8), where="doc", name="labels")
        array([1, 2])
        >>> as_integers([1.0, 2.0], where="doc", name="labels")
        array([1, 2])
    """
    array = _as_array(values, where=where, name=name)
    if array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        raise ValueError(
            f"{where}: `{name}` must hold class numbers, got {array.max()}. Cast from -1? Pass int64."
        )
    if array.dtype.kind in "iub":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f" and array.ndim < 2 and np.isfinite(array).all():
        whole = np.floor(array)
        if np.array_equal(whole, array) and np.abs(whole).max(initial=0) < _LARGEST_WHOLE:
            return whole.astype(np.int64)
    raise TypeError(
        f"{where}: `{name}` must hold integer class numbers, got dtype {array.dtype}. {label_remedy(array)}"
    )


def label_remedy(labels: Any) -> str:
    """Say what to do with labels that are no class number per row; only for those that are one-hot is it argmax.

    Args:
        labels: What was given, in any shape; classes of one-hot labels are on axis 1.

    Example:
        >>> label_remedy([[0, 1], [1, 0]])
        'These are one-hot: pass labels.argmax(1).'
        >>> label_remedy([[1, 1], [0, 0]])
        'Several labels per row are not supported: treat each label as a binary problem of its own.'
    """
    try:
        array = as_numpy(labels)
    except (TypeError, ValueError, RuntimeError):  # a tensor without values, as under vmap or on no device
        return "Give one class number per row."
    if array.dtype.kind == "f" and np.isnan(array).any():
        return "Missing values? Drop such rows."
    if array.dtype.kind not in "iubf":
        return "Class names? Pass `class_names` too, or their positions in it."
    if array.dtype.kind == "f" and array.ndim < 2 and not np.array_equal(array, np.floor(array)):
        return "Regression is not supported, nor are soft labels: labels name one class per row."
    if array.dtype.kind == "f" and array.ndim < 2:
        cast = ".long()" if is_tensor(labels) else ".astype(int)"
        return f"Class numbers stored as floats? Pass {cast}."
    if array.ndim < 2:
        return "Give one class number per row, as int64."
    if array.shape[1] == 1:
        return "Pass labels[:, 0]."
    if not np.isin(array, (0, 1)).all():
        return "Soft labels are not supported here, nor are several per row: give one class number per row."
    if (array.sum(axis=1) == 1).all():
        return "These are one-hot: pass labels.argmax(1)."
    return "Several labels per row are not supported: treat each label as a binary problem of its own."


def _as_array(values: Any, *, where: str, name: str) -> Array:
    """Return an argument as an array.

    Raises:
        TypeError: For what cannot become one without guessing.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise TypeError(f"{where}: `{name}` must have no masked values. Drop such rows.")
    try:
        return as_numpy(values)
    except (TypeError, ValueError, RuntimeError) as error:
        # Ragged lists; tensors that are sparse, quantized, on no device, or of eight bits.
        raise TypeError(
            f"{where}: `{name}` must be an array, a tensor or a list of rows of one length, got "
            f"{type(values).__name__} that is none ({first_line(error)}). "
            "Convert it first; a tensor with .to_dense() or .float()."
        ) from None


def has_bad_text(column: Array) -> bool:
    r"""Say whether text holds half of a pair of surrogates, which no file can keep.

    Example:
        >>> has_bad_text(np.array(["a"])), has_bad_text(np.array(["\ud800"]))
        (False, True)
    """
    if column.dtype.kind != "U" or not column.size or not column.dtype.itemsize:
        return False
    codes = (
        np.ascontiguousarray(column)
        .reshape(-1)
        .astype(column.dtype.newbyteorder("="), copy=False)
        .view(np.uint32)
    )
    return bool(((codes >= 0xD800) & (codes < 0xE000)).any())


def freeze(array: Array) -> Array:
    """Return a read-only view; the caller's own array keeps its flags.

    Example:
        >>> freeze(np.zeros(1)).flags.writeable
        False
    """
    view = array.view()
    view.flags.writeable = False
    return view
