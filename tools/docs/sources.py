"""Find public names in the source, without importing it: where each is written, how it is called, what it says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
Written = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Place:
    """A name where it is written."""

    module: str
    node: Written

    @property
    def name(self) -> str:
        if isinstance(self.node, ast.FunctionDef | ast.ClassDef):
            return self.node.name
        target = self.node.target if isinstance(self.node, ast.AnnAssign) else self.node.targets[0]
        return target.id

    @property
    def doc(self) -> str:
        """Its docstring, or the comment ``#:`` above a constant."""
        if isinstance(self.node, ast.FunctionDef | ast.ClassDef):
            return ast.get_docstring(self.node) or ""
        above = []
        for line in reversed(text_of(self.module).splitlines()[: self.node.lineno - 1]):
            if not line.startswith("#:"):
                break
            above.insert(0, line[2:].strip())
        return " ".join(above)

    def decorated(self, *names: str) -> bool:
        decorators = getattr(self.node, "decorator_list", [])
        return any(ast.unparse(one).split("(")[0].rpartition(".")[2] in names for one in decorators)


def path_of(module: str) -> Path:
    folder = SOURCE.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


@cache
def text_of(module: str) -> str:
    return path_of(module).read_text(encoding="utf-8")


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(text_of(module))


def public_names(module: str) -> list[str]:
    """Return what a module lists in ``__all__``; nothing if it lists nothing."""
    for node in tree_of(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


def find(module: str, name: str) -> Place | None:
    """Follow a name through imports, those for type checkers too, to where it is written."""
    for node in statements(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("equipoise"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return find(node.module, alias.name)
        elif isinstance(node, Written) and _named(node) == name:
            return Place(module, node)
    return None


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Give the statements of a module, those under ``if`` and ``with`` too."""
    for node in tree.body:
        yield node
        if isinstance(node, ast.If | ast.With):
            yield from node.body


def _named(node: Written) -> str:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def bases(place: Place) -> Iterator[Place]:
    """Give the classes of ours that a class is made from, nearest first."""
    for base in place.node.bases:
        found = find(place.module, ast.unparse(base).split("[")[0])
        if found is not None:
            yield found
            yield from bases(found)


def members(place: Place) -> Iterator[Place]:
    """Give the public methods and properties that a class writes itself, and says something about."""
    for node in place.node.body:
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__call__"):
            member = Place(place.module, node)
            if member.doc and not member.decorated("overload", "setter"):
                yield member


def signature(place: Place) -> str:
    """Write how a function or class is called, with types and defaults as its source has them."""
    node = place.node
    if isinstance(node, ast.FunctionDef):
        return _call(node.name, _parameters(node), returns=node.returns)
    if isinstance(node, ast.ClassDef):
        if node.name.endswith("Error"):
            return f"class {node.name}({', '.join(map(ast.unparse, node.bases))})"
        return _call(node.name, _of_class(place))
    annotation = getattr(node, "annotation", None)
    shown = "" if annotation is None else f": {_written(annotation)}"
    value = _written(node.value) if node.value is not None else ""
    return f"{place.name}{shown}" + (f" = {value}" if value and len(value) <= 80 else "")


def _written(node: ast.expr) -> str:
    """Write an expression with the quotes of our formatter."""
    line = ast.unparse(node)
    return line if '"' in line else line.replace("'", '"')


def _of_class(place: Place) -> list[str]:
    for one in (place, *bases(place)):
        for node in one.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                return _parameters(node)
        if one.decorated("dataclass") or "NamedTuple" in map(ast.unparse, one.node.bases):
            keywords = "kw_only=True" in "".join(map(ast.unparse, one.node.decorator_list))
            fields = [line for each in reversed([one, *bases(one)]) for line in _fields(each)]
            return ["*", *fields] if keywords and fields else fields
    return []


def _fields(place: Place) -> list[str]:
    kept = []
    for node in place.node.body:
        if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
            annotation = _written(node.annotation)
            if "ClassVar" not in annotation:
                kept.append(f"{node.target.id}: {annotation}" + _default(node.value))
    names = [line.split(":")[0] for line in kept]
    return [line for number, line in enumerate(kept) if line.split(":")[0] not in names[number + 1 :]]


def _default(value: ast.expr | None) -> str:
    if value is None:
        return ""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        made = {keyword.arg: _written(keyword.value) for keyword in value.keywords}
        if "default_factory" in made:
            factory = made["default_factory"]
            return (
                f" = {factory.removeprefix('lambda: ') if factory.startswith('lambda: ') else factory + '()'}"
            )
        return f" = {made['default']}" if "default" in made else ""
    return f" = {_written(value)}"


def _parameters(node: ast.FunctionDef) -> list[str]:
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    written = [_parameter(*pair) for pair in zip(plain, defaults, strict=True)]
    if arguments.posonlyargs:
        written.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        written.append(f"*{_parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        written.append("*")
    written += [_parameter(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        written.append(f"**{_parameter(arguments.kwarg, None)}")
    return written[1:] if written and written[0] in ("self", "cls") else written


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = "" if argument.annotation is None else f": {_written(argument.annotation)}"
    equals = "=" if not annotation else " = "
    return argument.arg + annotation + ("" if default is None else equals + _written(default))


def _call(name: str, parameters: list[str], *, returns: ast.expr | None = None) -> str:
    arrow = "" if returns is None else f" -> {_written(returns)}"
    line = f"{name}({', '.join(parameters)}){arrow}"
    if len(line) <= 76:
        return line
    return "\n".join([f"{name}(", *(f"    {one}," for one in parameters), f"){arrow}"])
