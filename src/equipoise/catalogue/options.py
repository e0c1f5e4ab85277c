"""The options of a method, read from its source: name, default and meaning, without importing torch."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from equipoise.catalogue.entry import Entry, split_address
from equipoise.catalogue.sums import SumFactory

__all__ = ["MethodOption", "options_of"]

_REFERENCE = re.compile(r":(?:func|class):`~?([\w.]+)`")
_STRENGTH = "Factor of the term that is added to the loss."


class MethodOption(NamedTuple):
    """An option of a method.

    Attributes:
        name: Keyword by which it is passed.
        default: As written in Python; empty if it must be given.
        meaning: Its documentation, without markup.
    """

    name: str
    default: str
    meaning: str


class _Definition(NamedTuple):
    """A class, function or constant, the module that it is written in, and what is said of it."""

    module: str
    node: ast.stmt
    text: str = ""


def options_of(entry: Entry) -> list[MethodOption]:
    """Return the options of an entry's factory, in the order of its signature.

    Example:
        >>> from equipoise.catalogue import CATALOGUE
        >>> for option in options_of(CATALOGUE["losses"]["ce"]):
        ...     print(*option, sep=" | ")
        weight | None | Weight of each class, (k,).
        ignore_index | -100 | Label of samples that do not count.
        reduction | 'mean' | "mean" (over weights, as cross-entropy does), "sum" or "none".
    """
    if isinstance(entry.made_by, SumFactory):
        factors = [factor for _, factor in entry.made_by.terms if factor is not None]
        found = (
            {"strength": MethodOption("strength", repr(factors[0]), _STRENGTH)} if len(factors) == 1 else {}
        )
        for term, _ in entry.made_by.terms:
            found |= {option.name: option for option in options_of(term) if option.name not in found}
        return list(found.values())
    if not isinstance(entry.made_by, str):  # a plugin's, and imported already
        known = inspect.signature(entry.made_by).parameters.values()
        return [
            MethodOption(one.name, "" if one.default is one.empty else repr(one.default), "") for one in known
        ]
    package, (name, *method) = split_address(entry.made_by)
    definition = _find(package, name)
    if definition is None:
        return []
    meanings = _meanings(definition)
    if method:
        definition = _method(definition, method[0])
        meanings |= _section(definition.text)
    return [MethodOption(name, default, meanings.get(name, "")) for name, default in _signature(definition)]


def _method(definition: _Definition, name: str) -> _Definition:
    """Return a class method, without its first argument."""
    assert isinstance(definition.node, ast.ClassDef)
    for node in definition.node.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            bound = ast.FunctionDef(
                **{**vars(node), "args": ast.arguments(**{**vars(node.args), "args": node.args.args[1:]})}
            )
            return _Definition(definition.module, bound, ast.get_docstring(node) or "")
    raise AttributeError(f"{definition.node.name} has no method {name!r}")


@cache
def _parse(module: str) -> ast.Module | None:
    """Return the source of one of our modules as a tree; None for everyone else's."""
    root, *path = module.split(".")
    if root != "equipoise":
        return None
    package = files("equipoise").joinpath(*path, "__init__.py")
    place = package if package.is_file() else files("equipoise").joinpath(*path[:-1], f"{path[-1]}.py")
    return ast.parse(place.read_text(encoding="utf-8"))


def _find(module: str, name: str) -> _Definition | None:
    """Return what a name stands for in a module, through as many imports as it takes."""
    tree = _parse(module)
    for node in tree.body if tree else ():
        match node:
            case ast.ClassDef(name=found) | ast.FunctionDef(name=found) if found == name:
                return _Definition(module, node, ast.get_docstring(node) or "")
            case ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found)) if (
                found == name
            ):
                return _made(module, node) or _Definition(module, node)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for left, right in zip(names, values, strict=True):
                    if isinstance(left, ast.Name) and left.id == name:
                        return _Definition(module, ast.Assign([left], right))
            case ast.ImportFrom(module=str(source), names=names):
                for alias in names:
                    if name == (alias.asname or alias.name):
                        return _find(source, alias.name)
    return None


def _made(module: str, node: ast.Assign | ast.AnnAssign) -> _Definition | None:
    """Return the function that ``name = maker(...)`` stands for: the one that the maker defines and documents."""
    maker = node.value.func if isinstance(node.value, ast.Call) else None
    found = _find(module, maker.id) if isinstance(maker, ast.Name) else None
    made, text = None, ""
    for part in found.node.body if found and isinstance(found.node, ast.FunctionDef) else ():
        match part:
            case ast.FunctionDef():
                made = part
            case ast.Assign(targets=[ast.Attribute(attr="__doc__")], value=ast.JoinedStr(values=pieces)):
                text = "".join(str(piece.value) for piece in pieces if isinstance(piece, ast.Constant))
    return _Definition(found.module, made, inspect.cleandoc(text)) if found and made else None


def _signature(definition: _Definition) -> list[tuple[str, str]]:
    """Return names and defaults of what a function, or a class through whichever ``__init__`` it has, takes."""
    module, node, _ = definition
    if isinstance(node, ast.FunctionDef):
        return _arguments(module, node.args)
    if not isinstance(node, ast.ClassDef):
        return []
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return _arguments(module, part.args)[1:]
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return list(_fields(module, node))
    return next(filter(None, map(_signature, _bases(definition))), [])


def _arguments(module: str, arguments: ast.arguments) -> list[tuple[str, str]]:
    places = [*arguments.posonlyargs, *arguments.args]
    given: list[ast.expr | None] = [*[None] * (len(places) - len(arguments.defaults)), *arguments.defaults]
    pairs = [*zip(places, given, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [(argument.arg, _default(module, value)) for argument, value in pairs]


def _fields(module: str, node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            written = "" if part.value is None else ast.unparse(part.value)
            if not part.target.id.startswith("_") and "init=False" not in written:
                yield part.target.id, "..." if "default_factory" in written else _default(module, part.value)


def _default(module: str, value: ast.expr | None) -> str:
    """Return a default as written, or the value of the constant that it names."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        value = next((word.value for word in value.keywords if word.arg == "default"), value)
    if isinstance(value, ast.Name):
        named = _find(module, value.id)
        if named and isinstance(named.node, ast.Assign | ast.AnnAssign) and named.node.value:
            return ast.unparse(named.node.value)
    return "" if value is None else ast.unparse(value)


def _bases(definition: _Definition) -> Iterator[_Definition]:
    for base in definition.node.bases if isinstance(definition.node, ast.ClassDef) else ():
        found = _find(definition.module, base.id) if isinstance(base, ast.Name) else None
        if found:
            yield found


def _meanings(definition: _Definition) -> dict[str, str]:
    """Return what is said of each parameter: here, in what the text refers to, or in a base."""
    said: dict[str, str] = {}
    waiting, seen = [definition], set()
    while waiting:
        definition = waiting.pop(0)
        module, node, text = definition
        if node in seen or not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        seen.add(node)
        for name, meaning in _section(text).items():
            said[name] = said.get(name) or meaning
        elsewhere = [_find(*_place(module, name)) for name in _REFERENCE.findall(text)]
        waiting += [*filter(None, elsewhere), *_bases(definition), *_result(module, node)]
    return said


def _result(module: str, node: ast.stmt) -> Iterator[_Definition]:
    """Give the class that a function builds: its docstring describes the options that the function passes on."""
    if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name):
        found = _find(module, node.returns.id)
        if found:
            yield found


def _place(module: str, name: str) -> tuple[str, str]:
    package, _, last = name.rpartition(".")
    return (package, last) if package.startswith("equipoise") else (module, last)


def _section(text: str) -> dict[str, str]:
    """Return the parameters that a docstring lists; an empty meaning where it only points elsewhere."""
    found: dict[str, str] = {}
    section = re.search(r"^(?:Args|Attributes):\n((?:[ ]+.*\n?|\n)+)", text, re.MULTILINE)
    for line in re.split(r"\n(?=\S)", inspect.cleandoc("\n" + section[1]) if section else ""):
        names, _, meaning = line.partition(":")
        plain = _plain(" ".join(meaning.split()))
        for name in names.split(","):
            found[name.strip(" `*")] = "" if plain.startswith("As in") else plain
    return found


def _plain(text: str) -> str:
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text)
    text = re.sub(r"(?<!\w)\*(\w+)\*(?!\w)", r"\1", text)
    return text.replace("``", "").replace("`", "")
