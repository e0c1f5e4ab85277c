"""20 Newsgroups: raw posts, as folders, as the by-date archive, or as one file of JSON lines."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from equipoise.core.errors import DataError
from equipoise.core.names import check_choice
from equipoise.core.progress import progress
from equipoise.data.dataset import Dataset, FileRecord
from equipoise.data.download import fetch
from equipoise.data.folders import check_count, file_record, listing_record, missing, open_root
from equipoise.data.official import OFFICIAL
from equipoise.data.readers.class_names import NEWSGROUPS
from equipoise.data.readers.glove import find_glove, read_glove
from equipoise.data.readers.tokens import encode_texts, fit_vocabulary, strip_header
from equipoise.data.row_splits import stratified_split

__all__ = ["Post", "newsgroups", "read_posts"]

_FOLDER = "20_newsgroups"
_BYDATE = {"train": "20news-bydate-train", "test": "20news-bydate-test"}
#: Posts of the folder, which is the corpus of the papers.
WHOLE_CORPUS = 19_997


@dataclass(frozen=True, slots=True, order=True)
class Post:
    """One post.

    Attributes:
        part: ``"train"`` or ``"test"`` in the by-date version, otherwise empty.
        group: Its newsgroup.
        number: Its name.
        text: Header and body, decoded as Latin-1.

    Example:
        >>> Post("train", "sci.space", "59497", "From: ...").group
        'sci.space'
    """

    part: str
    group: str
    number: str
    text: str


def newsgroups(
    *,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    download: bool = False,
    recipe: str = "shuffled",
    tune: int = 450,
    calib: int = 450,
    test: float = 0.2,
    vocabulary_size: int = 20_000,
    length: int = 1000,
    vocabulary_from: str = "train",
    embedding: str = "glove",
) -> Dataset:
    """Read 20 Newsgroups as rows of 1,000 token numbers, with a GloVe vector for each number.

    The papers shuffle 19,997 posts, test on the last fifth, and hold out 900: 15,098 / 900 / 3,999. The
    folder ``20_newsgroups`` gives these sizes, the by-date version, which lacks duplicates, 14,177 / 900 /
    3,769.

    Args:
        root: The data folder; by default the environment variable ``EQUIPOISE_DATA``.
        seed: Of the splits.
        download: Bring posts and vectors if they are not there.
        recipe: ``"shuffled"`` as in the papers (stratified here), or ``"bydate"`` for the official test
            posts, which are later than the training posts and therefore harder.
        tune: Size of ``tune``.
        calib: Size of ``calib``.
        test: Share of the posts that is ``test`` if shuffled.
        vocabulary_size: Most frequent words that get a number.
        length: Tokens of a row; the end of a longer post is kept.
        vocabulary_from: ``"train"`` counts words in training posts only; ``"all"`` in all posts, as in the
            papers.
        embedding: ``"glove"``, or ``"none"`` for no vectors.

    Returns:
        Token numbers, lengths and embedding.

    Raises:
        DataError: If posts or vectors are not there, or a file is damaged.

    Example:
        >>> newsgroups(root=".")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: newsgroups: not found in .. Put there 20_newsgroups/<group>/<post>
        ...

    Reference:
        Lang (1995), NewsWeeder: Learning to Filter Netnews. Recipe: Kumar et al. (2018), MMCE; Liu et al.
        (2023).

    Differs from the authors' code:
        Splits are stratified and seeded; words are counted in training posts only. One of the loaders in use
        has a vocabulary of 2,000 by default.
    """
    check_choice(recipe, ("shuffled", "bydate"), where="newsgroups", name="recipe")
    check_choice(vocabulary_from, ("train", "all"), where="newsgroups", name="vocabulary_from")
    check_choice(embedding, ("glove", "none"), where="newsgroups", name="embedding")
    folder = open_root(root, name="newsgroups", make=download)
    if download:
        _download(folder, embedding)
    posts, record = read_posts(folder)
    number = {name: place for place, name in enumerate(NEWSGROUPS)}
    labels = torch.tensor([number[post.group] for post in posts], dtype=torch.int64)
    splits = _splits(posts, labels, recipe=recipe, seed=seed, tune=tune, calib=calib, test=test)
    texts = [strip_header(post.text) for post in posts]
    seen = range(len(texts)) if vocabulary_from == "all" else splits["train"].tolist()
    vocabulary = fit_vocabulary((texts[row] for row in seen), size=vocabulary_size)
    tokens, lengths = encode_texts(texts, vocabulary, length=length)
    records: tuple[FileRecord, ...] = (record,)
    vectors = None
    if embedding == "glove":
        glove = find_glove(folder)
        vectors = read_glove(glove, vocabulary)
        records = (record, file_record(glove, folder))
    return Dataset(
        name="newsgroups",
        kind="text",
        inputs=tokens,
        labels=labels,
        class_names=NEWSGROUPS,
        splits=splits,
        lengths=lengths,
        embedding=vectors,
        provenance=records,
    )


def _download(folder: Path, embedding: str) -> None:
    if not _has_posts(folder):
        fetch("newsgroups", folder)
    if embedding == "glove":
        try:
            find_glove(folder)
        except DataError:
            fetch("glove", folder)


def _splits(
    posts: list[Post], labels: Tensor, *, recipe: str, seed: int, tune: int, calib: int, test: float
) -> dict[str, Tensor]:
    sizes: dict[str, float] = {"tune": tune, "calib": calib}
    if recipe == "shuffled":
        return stratified_split(labels, {**sizes, "test": int(test * len(posts))}, seed=seed)
    if not posts[0].part:
        raise DataError(
            f"newsgroups: recipe 'bydate' needs the by-date version, and {_FOLDER} is another. "
            "Use recipe 'shuffled', or put 20news-bydate.tar.gz there instead."
        )
    late = torch.tensor([post.part == "test" for post in posts])
    early = (~late).nonzero().flatten()
    return {**stratified_split(labels, sizes, seed=seed, rows=early), "test": late.nonzero().flatten()}


def _json_files(root: Path) -> list[Path]:
    name = "20news-bydate.jsonl"
    return [folder / f"{name}{ending}" for folder in (root / "20newsgroups", root) for ending in ("", ".gz")]


def _has_posts(root: Path) -> bool:
    files = [root / "20news-bydate.tar.gz", *_json_files(root)]
    folders = [root / _FOLDER, root / _BYDATE["train"]]
    return any(file.is_file() for file in files) or any(folder.is_dir() for folder in folders)


def read_posts(root: Path) -> tuple[list[Post], FileRecord]:
    """Read all posts of the data folder, whatever form they have there.

    Args:
        root: The data folder.

    Returns:
        Posts sorted by part, group and number, so that every form gives the same rows; and what was read.

    Raises:
        DataError: If there are none, too few, or a file is damaged.
    """
    archive = root / "20news-bydate.tar.gz"
    lines = next((file for file in _json_files(root) if file.is_file()), None)
    if (root / _FOLDER).is_dir():
        posts, where = list(_from_folder(root / _FOLDER, "")), root / _FOLDER
        check_count(len(posts), WHOLE_CORPUS, where=str(where), what="posts")
        paths = sorted(f"{post.group}/{post.number}" for post in posts)
        return sorted(posts), listing_record(root / _FOLDER, paths, root)
    if all((root / name).is_dir() for name in _BYDATE.values()):
        posts = [post for part, name in _BYDATE.items() for post in _from_folder(root / name, part)]
        paths = sorted(f"{_BYDATE[post.part]}/{post.group}/{post.number}" for post in posts)
        record = listing_record(root, paths, root)
    elif archive.is_file():
        posts, record = list(_from_archive(archive)), file_record(archive, root)
    elif lines is not None:
        posts, record = list(_from_lines(lines)), file_record(lines, root)
    else:
        raise missing("newsgroups", root)
    for part, count in zip(("train", "test"), OFFICIAL["newsgroups"].counts, strict=True):
        found = sum(post.part == part for post in posts)
        check_count(found, count, where=f"{root / record.path} ({part})", what="posts")
    return sorted(posts), record


def _checked(part: str, group: str, number: str, text: str, where: str) -> Post:
    if group not in NEWSGROUPS:
        raise DataError(f"{where}: {group!r} is none of the 20 newsgroups. Remove it, or get the data again.")
    return Post(part, group, number, text)


def _from_folder(folder: Path, part: str) -> Iterator[Post]:
    groups = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    for group in progress(groups, label=f"reading {folder.name}", unit="groups"):
        for file in sorted(group.iterdir()):
            yield _checked(part, group.name, file.name, file.read_bytes().decode("latin-1"), str(file))


def _from_archive(path: Path) -> Iterator[Post]:
    parts = {name: part for part, name in _BYDATE.items()}
    try:
        with tarfile.open(path) as archive:
            for member in progress(archive, label=f"reading {path.name}", unit="posts"):
                pieces = member.name.split("/")
                content = archive.extractfile(member) if member.isfile() else None
                if content is None or len(pieces) < 3 or pieces[-3] not in parts:
                    continue
                text = content.read().decode("latin-1")
                yield _checked(parts[pieces[-3]], pieces[-2], pieces[-1], text, str(path))
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{path}: expected an archive, but it cannot be read: {error}. Get it again."
        ) from error


def _from_lines(path: Path) -> Iterator[Post]:
    opener = gzip.open if path.suffix == ".gz" else open
    count = 0
    try:
        with opener(path, "rt", encoding="utf-8") as stream:
            for count, line in enumerate(stream, start=1):
                post = json.loads(line)
                yield _checked(
                    post["split"], post["group"], str(post["id"]), post["text"], f"{path}: line {count}"
                )
    except (ValueError, KeyError, TypeError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path}: line {count} must be JSON with split, group, id and text, got {error!r}. Get it again."
        ) from error
