"""Downloads from this machine: a file address and a small web server."""

import dataclasses
import functools
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile

import pytest

from equipoise.core.errors import DataError
from equipoise.data import load
from equipoise.data.download import check_checksum, download_file, fetch, unpack
from equipoise.data.official import OFFICIAL, Remote


def md5(content):
    return "md5:" + hashlib.md5(content).hexdigest()


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            if self.path == "/short":
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"only this")
            else:
                super().do_GET()

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_a_file_comes_whole(server, tmp_path):
    folder, address = server
    content = bytes(range(256)) * 10_000
    (folder / "data.bin").write_bytes(content)
    download_file(f"{address}/data.bin", tmp_path / "data.bin", checksum=md5(content))
    assert (tmp_path / "data.bin").read_bytes() == content
    sha = "sha256:" + hashlib.sha256(content).hexdigest()
    download_file((folder / "data.bin").as_uri(), tmp_path / "again.bin", checksum=sha)
    assert (tmp_path / "again.bin").read_bytes() == content


def empty_but_for_served(tmp_path):
    return [entry.name for entry in tmp_path.iterdir()] == ["served"]


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    folder, address = server
    (folder / "data.bin").write_bytes(b"other")
    with pytest.raises(DataError, match="checksum must be"):
        download_file(f"{address}/data.bin", tmp_path / "data.bin", checksum=md5(b"official"))
    assert empty_but_for_served(tmp_path)


def test_a_download_that_breaks_off_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(DataError, match=r"100 bytes were announced, 9 came|the download failed"):
        download_file(f"{server[1]}/short", tmp_path / "data.bin", checksum=md5(b"only this"))
    assert empty_but_for_served(tmp_path)


def test_an_address_that_is_not_there_is_named(server, tmp_path):
    with pytest.raises(DataError, match=r"nowhere: the download failed.*404"):
        download_file(f"{server[1]}/nowhere", tmp_path / "data.bin", checksum=md5(b""))
    assert empty_but_for_served(tmp_path)


def test_other_schemes_and_checksums_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must begin with http"):
        download_file("ftp://example.org/a", tmp_path / "a", checksum=md5(b""))
    with pytest.raises(ValueError, match="md5"):
        check_checksum(tmp_path / "a", "crc:12")


def svhn_like(monkeypatch, remotes):
    monkeypatch.setitem(OFFICIAL, "svhn", dataclasses.replace(OFFICIAL["svhn"], remotes=remotes))


def tar_of(names):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"hello"))
    return stream.getvalue()


def zip_of(names):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "hello")
    return stream.getvalue()


@pytest.mark.parametrize(("pack", "ending"), [(tar_of, "tar.gz"), (zip_of, "zip")])
def test_fetch_downloads_checks_and_unpacks_once(server, tmp_path, monkeypatch, pack, ending):
    folder, address = server
    content = pack(["top/a.txt", "top/sub/b.txt"])
    (folder / f"x.{ending}").write_bytes(content)
    remote = Remote(url=f"{address}/x.{ending}", file=f"x.{ending}", checksum=md5(content), unpacks_to="top")
    svhn_like(monkeypatch, (remote,))
    root = tmp_path / "data"
    root.mkdir()
    fetch("svhn", root)
    assert (root / "top" / "sub" / "b.txt").read_text() == "hello"
    (folder / f"x.{ending}").unlink()
    fetch("svhn", root)
    assert sorted(entry.name for entry in root.iterdir()) == ["top", f"x.{ending}"]


def test_an_archive_that_is_there_is_checked_and_unpacked_without_a_download(tmp_path, monkeypatch):
    content = tar_of(["top/a.txt"])
    (tmp_path / "x.tar.gz").write_bytes(content)
    remote = Remote(url="http://127.0.0.1:1/x", file="x.tar.gz", checksum=md5(content), unpacks_to="top")
    svhn_like(monkeypatch, (remote,))
    fetch("svhn", tmp_path)
    assert (tmp_path / "top" / "a.txt").exists()


def test_a_damaged_archive_that_is_there_is_named(tmp_path, monkeypatch):
    (tmp_path / "x.tar.gz").write_bytes(b"damaged")
    remote = Remote(url="http://127.0.0.1:1/x", file="x.tar.gz", checksum=md5(b"whole"), unpacks_to="top")
    svhn_like(monkeypatch, (remote,))
    with pytest.raises(DataError, match=r"x\.tar\.gz: the checksum"):
        fetch("svhn", tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"no archive", tar_of(["top/a.txt"])[:-30], tar_of(["other/a.txt"])],
    ids=["text", "cut", "other"],
)
def test_an_archive_that_cannot_be_unpacked_leaves_nothing(tmp_path, content):
    (tmp_path / "x.tar.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.tar\.gz"):
        unpack(tmp_path / "x.tar.gz", tmp_path / "top")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.tar.gz"]


def test_an_archive_that_leaves_its_folder_is_refused(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "x.tar.gz").write_bytes(tar_of(["top/a.txt", "../evil.txt"]))
    with pytest.raises(DataError, match=r"x\.tar\.gz"):
        unpack(data / "x.tar.gz", data / "top")
    assert not (tmp_path / "evil.txt").exists()
    assert not (data / "evil.txt").exists()


def test_load_downloads_when_asked(server, tmp_path, monkeypatch):
    folder, address = server
    (folder / "a").write_bytes(b"not a matlab file")
    remotes = tuple(
        Remote(url=f"{address}/a", file=f"svhn/{part}_32x32.mat", checksum=md5(b"not a matlab file"))
        for part in ("train", "test")
    )
    svhn_like(monkeypatch, remotes)
    with pytest.raises(DataError, match=r"train_32x32\.mat: expected a MATLAB file"):
        load("svhn", root=tmp_path / "new", download=True)
    assert (tmp_path / "new" / "svhn" / "test_32x32.mat").exists()


def test_the_table_is_well_formed():
    for name, entry in OFFICIAL.items():
        assert entry.wanted, name
        for remote in entry.remotes:
            kind, _, value = remote.checksum.partition(":")
            assert len(value) == {"md5": 32, "sha256": 64}[kind], name
            assert int(value, 16), name
            assert remote.url.startswith("http"), name
