"""Code that a spec names: found next to the spec or among installed packages, identified by content, loaded once."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from equipoise.core.errors import SpecError
from equipoise.core.names import nearest

__all__ = [
    "CodeSource",
    "check_not_loading",
    "find_source",
    "load_code",
    "split_reference",
]

_HINT = "Write 'package.module:name' or 'path/to/file.py:name', relative to the spec."

_loading: list[Path] = []
_roots: list[str] = []
_contents: dict[Path, str] = {}


def split_reference(name: str) -> tuple[str, str]:
    """Return the file or module of a name of code, and the name inside it.

    Raises:
        SpecError: If one of them is missing.

    Example:
        >>> split_reference("c++/net.py:Net")
        ('c++/net.py', 'Net')
    """
    source, _, inner = name.rpartition(":")
    if not source.strip() or not all(part.isidentifier() for part in inner.split(".")):
        raise SpecError(f"{name!r} is not a name of code. {_HINT}")
    return source, inner


class CodeSource(NamedTuple):
    """Where code is.

    Attributes:
        file: The file that holds the name.
        module: Its dotted name; empty for a file that is named by its path.
        root: The folder from which it imports what lies beside it.
        files: It and every file beside it that it imports, directly or not.
        digest: SHA-256 of what these files hold; of an installed package, of the file and the package's version.
    """

    file: Path
    module: str
    root: Path
    files: tuple[Path, ...]
    digest: str


def find_source(source: str, base_dir: str | None) -> CodeSource:
    """Find a file or module and everything beside it that it imports; nothing is run.

    Args:
        source: ``"path/to/file.py"`` or ``"package.module"``.
        base_dir: The folder that files are relative to; None is the current one.

    Returns:
        Where it is, and the digest of its content.

    Raises:
        SpecError: If there is no such file or module.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "net.py").write_text("import parts")
        >>> _ = (folder / "parts.py").write_text("SIZE = 3")
        >>> [file.name for file in find_source("net.py", str(folder)).files]
        ['net.py', 'parts.py']
    """
    base = Path(base_dir) if base_dir else Path.cwd()
    if source.endswith(".py"):
        file = (base / Path(source).expanduser()).resolve()
        if not file.is_file():
            raise SpecError(f"no file {str(file)!r}. {_HINT}")
        return _with_content(file, "", file.parent)
    if not all(part.isidentifier() for part in source.split(".")):
        raise SpecError(f"{source!r} is not a module. {_HINT}")
    return _find_module(source, base.resolve())


def _find_module(module: str, base: Path) -> CodeSource:
    top, *inner = module.split(".")
    if _inside(base, module) is None:
        try:
            found = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            found = None
        places = [] if found is None else [*(found.submodule_search_locations or ())]
        if found is not None and found.origin and not places:
            places = [found.origin]
        if not places:
            raise SpecError(f"no module {module!r} in {base} or among installed packages. {_HINT}")
        base = Path(places[0]).resolve().parent
    file = _inside(base, module)
    if file is None:
        raise SpecError(f"no module {'.'.join(inner)!r} in {base / top}. {_HINT}")
    return _with_content(file, module, base)


def _inside(root: Path, module: str) -> Path | None:
    """Return the file of a module below a folder."""
    place = root.joinpath(*module.split("."))
    candidates = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _with_content(file: Path, module: str, root: Path) -> CodeSource:
    top = module.partition(".")[0]
    if module and (top == "equipoise" or root in _installed_roots()):
        content = [_release(top), _digest(file)]
        return CodeSource(
            file, module, root, (file,), hashlib.sha256("\n".join(content).encode()).hexdigest()
        )
    files = _closure(file, root)
    content = [f"{path.relative_to(root).as_posix()} {_digest(path)}" for path in files]
    # A file that stands alone is known by what is in it, wherever it lies and whatever it is called.
    if len(files) == 1:
        content = [_digest(file)]
    return CodeSource(file, module, root, files, hashlib.sha256("\n".join(content).encode()).hexdigest())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@lru_cache(maxsize=1)
def _installed_roots() -> frozenset[Path]:
    return frozenset(Path(path).resolve() for path in sysconfig.get_paths().values())


def _release(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _closure(first: Path, root: Path) -> tuple[Path, ...]:
    """Return a file and all files below a folder that it imports, directly or not."""
    seen, left = {first: None}, [first]
    while left:
        file = left.pop()
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError) as error:
            raise SpecError(f"{file}: not valid Python: {error}.") from error
        for found in _imported_files(tree, file, root):
            if found not in seen:
                seen[found] = None
                left.append(found)
    return (first, *sorted(file for file in seen if file != first))


def _imported_files(tree: ast.AST, file: Path, root: Path) -> Iterator[Path]:
    for place, name in _imported_names(tree, file, root):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            found = _inside(place, ".".join(parts[:length]))
            if found is not None:
                yield found.resolve()


def _imported_names(tree: ast.AST, file: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """Give folders and the dotted names that are looked for in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((root, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            place = file.parents[node.level - 1] if node.level else root
            if node.level and not place.is_relative_to(root):
                continue
            names = [alias.name for alias in node.names if alias.name != "*"]
            if node.module:
                yield place, node.module
            yield from ((place, ".".join(filter(None, (node.module, name)))) for name in names)


def load_code(name: str, base_dir: str | None, *, digest: str | None = None) -> Any:
    """Return the object that a name of code means; the file is run once for each content.

    Args:
        name: ``"path/to/file.py:name"`` or ``"package.module:name"``.
        base_dir: The folder that files are relative to; None is the current one.
        digest: Digest that the code must have; None accepts any.

    Raises:
        SpecError: If there is no such code, it fails when it is imported, or it is not the code that was pinned.

    Example:
        >>> load_code("torch.nn:Linear", None).__name__
        'Linear'
    """
    source, inner = split_reference(name)
    found = find_source(source, base_dir)
    if digest and digest != found.digest:
        raise SpecError(
            f"{name}: {found.file} is not what it was when this run was begun. Put that back, or give the command "
            "again: changed code is another run."
        )
    module: Any = _load(found)
    for place, part in enumerate(inner.split(".")):
        if not hasattr(module, part):
            known = [word for word in vars(module) if not word.startswith("_")]
            guess = nearest(part, known)
            remedy = f"did you mean {guess!r}?" if guess else f"it has {', '.join(known) or 'nothing'}."
            raise SpecError(
                f"{name}: no {part!r} in {found.file if not place else inner.split('.')[place - 1]}; {remedy}"
            )
        module = getattr(module, part)
    return module


@lru_cache(maxsize=64)
def _load(source: CodeSource) -> ModuleType:
    installed = source.root in _installed_roots() or source.module.split(".")[0] == "equipoise"
    if not installed:
        _put_first(source.root)
        _forget_neighbors(source)
    importlib.invalidate_caches()
    _loading.append(source.file)
    try:
        module = importlib.import_module(source.module) if source.module else _run_file(source)
    except SpecError:
        raise
    except (Exception, SystemExit) as error:
        raise SpecError(
            f"{source.file}: fails when it is imported: {type(error).__name__}: {error}. Try `python {source.file}`."
        ) from error
    finally:
        _loading.pop()
    _check_neighbors(source)
    return module


def _run_file(source: CodeSource) -> ModuleType:
    name = f"{source.file.stem}_{source.digest[:12]}"
    spec = importlib.util.spec_from_file_location(name, source.file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _files_of_modules() -> dict[str, Path]:
    named = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return {name: Path(file) for name, file in named.items() if isinstance(file, str)}


def _put_first(root: Path) -> None:
    """Let a folder's modules be found before those of other code, but never before what is installed."""
    if str(root) in _roots:
        _roots.remove(str(root))
    elif str(root) in sys.path:
        return
    _roots.insert(0, str(root))
    sys.path[:] = [place for place in sys.path if place not in _roots] + _roots


def _forget_neighbors(source: CodeSource) -> None:
    """Let files beside the code be imported again that have changed since, or are others under the same name."""
    loaded = _files_of_modules()
    for file in source.files if source.module else source.files[1:]:
        name, content = _module_name(file, source.root), _digest(file)
        known = loaded.get(name)
        is_other = known is not None and known.resolve() != file and str(known).startswith(tuple(_roots))
        if name in loaded and (is_other or _contents.get(file, content) != content):
            del sys.modules[name]
        _contents[file] = content


def _module_name(file: Path, root: Path) -> str:
    inner = file.relative_to(root).with_suffix("")
    return ".".join(inner.parent.parts if inner.name == "__init__" else inner.parts)


def _check_neighbors(source: CodeSource) -> None:
    """Raise if another module stood in for a file beside the code, whose digest would then vouch for the wrong file."""
    loaded = _files_of_modules()
    for file in source.files[1:]:
        name = _module_name(file, source.root)
        if name in loaded and loaded[name].resolve() != file:
            raise SpecError(
                f"{source.file}: its `import {name}` found {loaded[name]} and not {file}. Give {file.name} a name of "
                "its own."
            )


def check_not_loading() -> None:
    """Raise if a run is begun by code that is just being imported for one, which would never end.

    Example:
        >>> check_not_loading()
    """
    if _loading:
        raise SpecError(
            f"{_loading[-1]}: begins runs when it is imported. Put what begins them under "
            "`if __name__ == '__main__':`."
        )
