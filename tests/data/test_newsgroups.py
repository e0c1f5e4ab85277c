"""20 Newsgroups in all its forms, the tokenizer, and GloVe, on a handful of posts."""

import dataclasses
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.core.errors import DataError
from equipoise.data import batches, load, trim_documents
from equipoise.data.official import OFFICIAL
from equipoise.data.readers import newsgroups as reader
from equipoise.data.readers.class_names import NEWSGROUPS
from equipoise.data.readers.glove import read_glove
from equipoise.data.readers.tokens import encode_texts, fit_vocabulary, split_words, strip_header
from helpers.official import set_counts

WORDS = ["space", "orbit", "god", "bible", "car", "engine", "hockey", "goal", "key", "chip"]
POSTS = [
    (
        "train" if k < 40 else "test",
        NEWSGROUPS[k % 4],
        str(1000 + k),
        f"From: caf\xe9 {k}\nLines: 3\n\n" + " ".join(WORDS[(k + j) % 10] for j in range(1 + k % 23)),
    )
    for k in range(60)
]
OPTIONS = {"tune": 4, "calib": 4, "length": 40}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    set_counts(monkeypatch, newsgroups=(40, 20), glove=(3, 0))
    monkeypatch.setattr(reader, "WHOLE_CORPUS", 60)


def write_glove(root):
    (root / "glove").mkdir(exist_ok=True)
    np.savez(
        root / "glove" / "small.npz", words=np.array(["space", "god"]), vectors=np.eye(2, dtype=np.float16)
    )


def write_bydate(root):
    for part, group, number, text in POSTS:
        file = root / f"20news-bydate-{part}" / group / number
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("latin-1"))


def write_whole(root):
    for _, group, number, text in POSTS:
        file = root / "20_newsgroups" / group / number
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("latin-1"))


def write_archive(root):
    with tarfile.open(root / "20news-bydate.tar.gz", "w:gz") as archive:
        for part, group, number, text in POSTS:
            member = tarfile.TarInfo(f"20news-bydate-{part}/{group}/{number}")
            content = text.encode("latin-1")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def lines():
    keys = ("split", "group", "id", "text")
    return "".join(json.dumps(dict(zip(keys, post, strict=True))) + "\n" for post in POSTS)


def write_lines(root):
    (root / "20newsgroups").mkdir()
    (root / "20newsgroups" / "20news-bydate.jsonl").write_text(lines())


def write_zipped_lines(root):
    (root / "20newsgroups").mkdir()
    (root / "20newsgroups" / "20news-bydate.jsonl.gz").write_bytes(gzip.compress(lines().encode()))


def read(root, **options):
    return load("newsgroups", root=root, options={**OPTIONS, **options})


@pytest.mark.parametrize("write", [write_bydate, write_archive, write_lines, write_zipped_lines])
def test_every_form_gives_the_same_rows(tmp_path, write):
    write_glove(tmp_path)
    write(tmp_path)
    data = read(tmp_path)
    assert data.fingerprints["train"] == FINGERPRINT
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [40, 4, 4, 12]
    assert data.kind == "text"
    assert data.class_counts("tune").tolist()[:4] == [1, 1, 1, 1]


FINGERPRINT = "52ad044b4eca673b77fd887910d85dd3"


def test_the_whole_corpus_has_the_proportions_of_the_papers(tmp_path):
    write_whole(tmp_path)
    write_glove(tmp_path)
    data = read(tmp_path)
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [40, 4, 4, 12]
    with pytest.raises(DataError, match="needs the by-date version"):
        read(tmp_path, recipe="bydate")
    # The papers: 15,098 / 900 / 3,999 of 19,997.
    assert int(0.2 * 19_997) == 3_999
    assert 19_997 - 3_999 - 900 == 15_098


def test_the_official_test_posts_are_kept_by_date(tmp_path):
    write_lines(tmp_path)
    data = read(tmp_path, recipe="bydate", embedding="none")
    assert [len(data.rows(split)) for split in ("train", "tune", "calib", "test")] == [32, 4, 4, 20]
    assert data.embedding is None


def test_rows_are_words_padded_in_front(tmp_path):
    write_lines(tmp_path)
    write_glove(tmp_path)
    data = read(tmp_path)
    filled = (data.inputs > 0).sum(1)
    assert torch.equal(filled, data.lengths)
    row = int(data.lengths.argmin())
    assert data.inputs[row, : -int(data.lengths[row])].sum() == 0
    assert int(data.lengths.max()) == 23
    assert int(data.inputs.max()) == 10
    assert tuple(data.embedding.shape) == (11, 2)
    assert data.embedding[0].tolist() == [0.0, 0.0]
    assert int((data.embedding.abs().sum(1) > 0).sum()) == 2


def test_the_vocabulary_looks_at_training_posts_only_by_default(tmp_path):
    write_lines(tmp_path)
    file = tmp_path / "20newsgroups" / "20news-bydate.jsonl"
    changed = [json.loads(line) for line in file.read_text().splitlines()]
    for post in changed:
        if post["split"] == "test":
            post["text"] = "From: me\n\nonlyintest " * 3
    file.write_text("".join(json.dumps(post) + "\n" for post in changed))
    own = read(tmp_path, recipe="bydate", embedding="none")
    every = read(tmp_path, recipe="bydate", embedding="none", vocabulary_from="all")
    assert int(own.inputs.max()) == 10
    assert int(every.inputs.max()) == 13


def test_batches_are_trimmed_in_buckets_and_keep_every_document(tmp_path):
    write_lines(tmp_path)
    data = read(tmp_path, embedding="none", length=200)
    seen = []
    for batch in batches(data, "train", batch_size=8):
        assert batch.inputs.dtype == torch.int64
        assert batch.inputs.shape[1] == int(data.lengths[batch.index].max()) + 21
        assert torch.equal(batch.inputs, data.inputs[batch.index][:, -batch.inputs.shape[1] :].long())
        seen += batch.index.tolist()
    assert sorted(seen) == data.rows("train").tolist()
    longest = [
        int(data.lengths[batch.index].max()) for batch in batches(data, "test", batch_size=4, order="length")
    ]
    assert longest == sorted(longest, reverse=True)


@pytest.mark.parametrize("length", [1, 5, 60, 78, 79, 80, 95, 99, 100])
def test_trimming_is_exact_for_the_pooling_network(length):
    torch.manual_seed(0)
    embed = nn.Embedding(50, 6)
    with torch.no_grad():
        embed.weight[0] = 0
    body = nn.Sequential(
        nn.Conv1d(6, 8, 5), nn.ReLU(), nn.MaxPool1d(5, 1), nn.Conv1d(8, 8, 5), nn.ReLU(), nn.MaxPool1d(5, 1),
        nn.Conv1d(8, 8, 5), nn.ReLU(),
    ).double()  # fmt: skip
    lengths = torch.tensor([length, max(length // 2, 1)])
    tokens = torch.zeros(2, 100, dtype=torch.int64)
    for row, count in enumerate(lengths.tolist()):
        tokens[row, -count:] = torch.randint(1, 50, (count,))

    def pooled(rows):
        return body(embed(rows).double().transpose(1, 2)).amax(2)

    trimmed = trim_documents(tokens, lengths)
    assert trimmed.shape[1] == min(length + 21, 100)
    torch.testing.assert_close(pooled(trimmed), pooled(tokens), atol=1e-12, rtol=0)


def test_words_by_hand():
    assert split_words("It's 9:30,\tMr_X <me@home>\nBye\xa0now") == [
        "it's",
        "9",
        "30",
        "mr",
        "x",
        "me",
        "home",
        "bye\xa0now",
    ]
    assert strip_header("no header") == "no header"
    assert strip_header("\n\nbody") == "\n\nbody"


def test_vocabulary_by_hand():
    assert fit_vocabulary(["b a", "c b c", "a d"], size=4) == {"b": 1, "a": 2, "c": 3}


def test_long_texts_keep_their_end_and_empty_ones_are_padding():
    rows, lengths = encode_texts(["a b c d", "", "zzz"], {"a": 1, "b": 2, "c": 3, "d": 4}, length=3)
    assert rows.tolist() == [[2, 3, 4], [0, 0, 0], [0, 0, 0]]
    assert lengths.tolist() == [3, 0, 0]


def test_glove_from_text(tmp_path):
    file = tmp_path / "glove.6B.100d.txt"
    file.write_text("the 0.5 1\nspace -1 2.5\n. 3 4\n")
    assert read_glove(file, {"space": 1, "no": 2}).tolist() == [[0, 0], [-1, 2.5], [0, 0]]


@pytest.mark.parametrize(
    "content",
    [
        "the 1 2\nspace 1 2\n",
        "the 1 2\nspace 1 2\n. 3",
        "the 1 2\nspace 1 2\n. 3 4",
        "the 1 2\nspace 1 x\n. 3 4\n",
    ],
)
def test_damaged_vectors_are_named(tmp_path, content):
    file = tmp_path / "glove.6B.100d.txt"
    file.write_text(content)
    with pytest.raises(DataError, match=r"glove\.6B\.100d\.txt"):
        read_glove(file, {"space": 1})


def test_vectors_without_words_are_named(tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(["a"]), vectors=np.eye(2))
    with pytest.raises(DataError, match="one vector per word"):
        read_glove(tmp_path / "v.npz", {"a": 1})


def test_missing_vectors_are_asked_for(tmp_path):
    write_lines(tmp_path)
    with pytest.raises(DataError, match=r"glove/glove\.6B\.100d\.txt"):
        read(tmp_path)


def test_missing_posts_are_asked_for(tmp_path):
    with pytest.raises(DataError, match=r"20_newsgroups.*20news-bydate-train.*jsonl"):
        read(tmp_path)


def test_a_truncated_archive_is_named(tmp_path):
    write_archive(tmp_path)
    file = tmp_path / "20news-bydate.tar.gz"
    file.write_bytes(file.read_bytes()[:-300])
    with pytest.raises(DataError, match=r"20news-bydate\.tar\.gz"):
        read(tmp_path, embedding="none")


def test_truncated_lines_are_named(tmp_path):
    write_zipped_lines(tmp_path)
    file = tmp_path / "20newsgroups" / "20news-bydate.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(DataError, match=r"20news-bydate\.jsonl\.gz"):
        read(tmp_path, embedding="none")


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"split": "train"}', '{"split": "train", "group": "alt.x", "id": 1, "text": ""}']
)
def test_a_damaged_line_is_named(tmp_path, line):
    write_lines(tmp_path)
    file = tmp_path / "20newsgroups" / "20news-bydate.jsonl"
    file.write_text(file.read_text() + line)
    with pytest.raises(DataError, match="line 61"):
        read(tmp_path, embedding="none")


@pytest.mark.parametrize("write", [write_bydate, write_whole])
def test_a_missing_post_is_noticed(tmp_path, write):
    write(tmp_path)
    next(file for file in Path(tmp_path).rglob("*") if file.is_file()).unlink()
    with pytest.raises(DataError, match=r"expected \d+ posts"):
        read(tmp_path, embedding="none")


def test_a_foreign_group_is_refused(tmp_path):
    write_whole(tmp_path)
    (tmp_path / "20_newsgroups" / "rec.cooking").mkdir()
    (tmp_path / "20_newsgroups" / "rec.cooking" / "1").write_text("x")
    with pytest.raises(DataError, match=r"rec\.cooking"):
        read(tmp_path, embedding="none")


@pytest.mark.parametrize("wrong", [{"recipe": "by_date"}, {"vocabulary_from": "tran"}, {"embedding": "glov"}])
def test_wrong_words_give_the_nearest(tmp_path, wrong):
    with pytest.raises(ValueError, match="Did you mean"):
        read(tmp_path, **wrong)


def test_mixup_of_tokens_is_refused(tmp_path):
    from equipoise.data import Augment

    write_lines(tmp_path)
    with pytest.raises(ValueError, match="mixup"):
        batches(read(tmp_path, embedding="none"), "train", batch_size=2, augment=Augment(mixup=0.2))


def test_posts_and_vectors_are_downloaded_when_asked(tmp_path, monkeypatch):
    served, root = tmp_path / "served", tmp_path / "new"
    served.mkdir()
    write_archive(served)
    with zipfile.ZipFile(served / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", "the 1\n")
        archive.writestr("glove.6B.100d.txt", "the 0.5 1\nspace -1 2.5\n. 3 4\n")
    for name, file in (("newsgroups", "20news-bydate.tar.gz"), ("glove", "glove.6B.zip")):
        content = (served / file).read_bytes()
        (remote,) = OFFICIAL[name].remotes
        moved = dataclasses.replace(
            remote, url=(served / file).as_uri(), checksum="md5:" + hashlib.md5(content).hexdigest()
        )
        monkeypatch.setitem(OFFICIAL, name, dataclasses.replace(OFFICIAL[name], remotes=(moved,)))
    data = load("newsgroups", root=root, download=True, options=OPTIONS)
    assert len(data) == 60
    assert tuple(data.embedding.shape) == (11, 2)
    assert not (root / "glove" / "glove.6B.50d.txt").exists()
