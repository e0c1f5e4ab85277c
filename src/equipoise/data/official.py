"""Where the public datasets come from: addresses, checksums, counts, and what to put where by hand."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OFFICIAL", "Official", "Remote"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A file that can be downloaded.

    Attributes:
        url: Its official address.
        file: Where it goes in the data folder.
        checksum: ``"md5:..."`` or ``"sha256:..."`` of the file.
        unpacks_to: What an archive leaves in the data folder; empty for a plain file.

    Example:
        >>> OFFICIAL["svhn"].remotes[0].file
        'svhn/train_32x32.mat'
    """

    url: str
    file: str
    checksum: str
    unpacks_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Official:
    """What is known about a public dataset.

    Attributes:
        wanted: What a data folder may hold, one line per accepted form.
        remotes: What to download; empty if its owners hand it out in person only.
        counts: Samples of the official training and test sets.
        terms: What its owners say about use, if anything.

    Example:
        >>> OFFICIAL["cifar10"].counts
        (50000, 10000)
    """

    wanted: tuple[str, ...]
    remotes: tuple[Remote, ...] = ()
    counts: tuple[int, int] = (0, 0)
    terms: str = ""


def _idx_files(folder: str, base: str, sums: tuple[str, str, str, str]) -> tuple[Remote, ...]:
    stems = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(
        Remote(url=f"{base}/{stem}-ubyte.gz", file=f"{folder}/{stem}-ubyte.gz", checksum=f"md5:{md5}")
        for stem, md5 in zip(stems, sums, strict=True)
    )


_TORONTO = "https://www.cs.toronto.edu/~kriz"
_IDX = "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte"
_ARRAYS = "with x_train, y_train, x_test, y_test"

#: One entry per public dataset.
OFFICIAL: dict[str, Official] = {
    "cifar10": Official(
        wanted=(
            "cifar-10-batches-bin/ (unpacked cifar-10-binary.tar.gz)",
            f"cifar10.npz {_ARRAYS}",
        ),
        remotes=(
            Remote(
                url=f"{_TORONTO}/cifar-10-binary.tar.gz",
                file="cifar-10-binary.tar.gz",
                checksum="md5:c32a1d4ab5d03f1284b67883e8d87530",
                unpacks_to="cifar-10-batches-bin",
            ),
        ),
        counts=(50_000, 10_000),
    ),
    "cifar100": Official(
        wanted=(
            "cifar-100-binary/ (unpacked cifar-100-binary.tar.gz)",
            f"cifar100.npz {_ARRAYS}",
        ),
        remotes=(
            Remote(
                url=f"{_TORONTO}/cifar-100-binary.tar.gz",
                file="cifar-100-binary.tar.gz",
                checksum="md5:03b5dce01913d631647c71ecec9e9cb8",
                unpacks_to="cifar-100-binary",
            ),
        ),
        counts=(50_000, 10_000),
    ),
    "mnist": Official(
        wanted=(f"mnist/ with {_IDX} (each plain or .gz)", f"mnist.npz {_ARRAYS}"),
        remotes=_idx_files(
            "mnist",
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            (
                "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                "d53e105ee54ea40749a09fcbcd1e9432",
                "9fb629c4189551a2d022fa330f9573f3",
                "ec29112dd5afa0611ce80d1b7f02629c",
            ),
        ),
        counts=(60_000, 10_000),
    ),
    "fashion_mnist": Official(
        wanted=(f"fashion_mnist/ with {_IDX} (each plain or .gz)", f"fashion_mnist.npz {_ARRAYS}"),
        remotes=_idx_files(
            "fashion_mnist",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            (
                "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "25c81989df183df01b3e8a0aad5dffbe",
                "bef4ecab320f06d8554ea6380940ec79",
                "bb300cfdad3c16e7a12a480ee83cd310",
            ),
        ),
        counts=(60_000, 10_000),
        terms="MIT license",
    ),
    "svhn": Official(
        wanted=("svhn/train_32x32.mat and svhn/test_32x32.mat",),
        remotes=(
            Remote(
                url="http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
                file="svhn/train_32x32.mat",
                checksum="md5:e26dedcc434d2e4c54c9b2d4a06d8373",
            ),
            Remote(
                url="http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
                file="svhn/test_32x32.mat",
                checksum="md5:eb5a983be6a315427106f1b164d9cef3",
            ),
        ),
        counts=(73_257, 26_032),
        terms="non-commercial use",
    ),
    "cifar10c": Official(
        wanted=("CIFAR-10-C/ with labels.npy and one .npy per corruption (unpacked CIFAR-10-C.tar)",),
        remotes=(
            Remote(
                url="https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
                file="CIFAR-10-C.tar",
                checksum="md5:56bf5dcef84df0e2308c6dcbcbbd8499",
                unpacks_to="CIFAR-10-C",
            ),
        ),
        counts=(0, 10_000),
    ),
    "cifar100c": Official(
        wanted=("CIFAR-100-C/ with labels.npy and one .npy per corruption (unpacked CIFAR-100-C.tar)",),
        remotes=(
            Remote(
                url="https://zenodo.org/records/3555552/files/CIFAR-100-C.tar",
                file="CIFAR-100-C.tar",
                checksum="md5:11f0ed0f1191edbf9fa23466ae6021d3",
                unpacks_to="CIFAR-100-C",
            ),
        ),
        counts=(0, 10_000),
    ),
    "cifar10h": Official(
        wanted=("cifar10h/cifar10h-counts.npy or cifar10h/cifar10h-probs.npy, beside CIFAR-10 itself",),
        remotes=(
            Remote(
                url="https://github.com/jcpeterson/cifar-10h/raw/master/data/cifar10h-probs.npy",
                file="cifar10h/cifar10h-probs.npy",
                checksum="md5:7b41f73eee90fdefc73bfc820ab29ba8",
            ),
        ),
        counts=(0, 10_000),
        terms="CC BY-NC-SA 4.0",
    ),
    "tiny_imagenet": Official(
        wanted=("tiny-imagenet-200/ with train/, val/ and wnids.txt (unpacked tiny-imagenet-200.zip)",),
        remotes=(
            Remote(
                url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                file="tiny-imagenet-200.zip",
                checksum="md5:90528d7ca1a48142e341f4ef8d21d0de",
                unpacks_to="tiny-imagenet-200",
            ),
        ),
        counts=(100_000, 10_000),
        terms="research use",
    ),
    "imagenet": Official(
        wanted=(
            "imagenet/train/<class>/*.JPEG and imagenet/val/<class>/*.JPEG (ILSVRC 2012, from image-net.org)",
        ),
        counts=(1_281_167, 50_000),
        terms="research use, after registration at image-net.org",
    ),
    "imagenet_lt": Official(
        wanted=(
            "imagenet_lt/ImageNet_LT_train.txt, _val.txt and _test.txt (lines of 'path label'), beside "
            "imagenet/",
        ),
        counts=(115_846, 50_000),
    ),
    "voc2012": Official(
        wanted=(
            "VOCdevkit/VOC2012/ with JPEGImages/, SegmentationClass/ and ImageSets/Segmentation/ "
            "(unpacked VOCtrainval_11-May-2012.tar)",
        ),
        remotes=(
            Remote(
                url="http://host.robots.ox.ac.uk/pascal/VOC/voc2012/VOCtrainval_11-May-2012.tar",
                file="VOCtrainval_11-May-2012.tar",
                checksum="md5:6cd6e144f989b92b3379bac3b3de84fd",
                unpacks_to="VOCdevkit",
            ),
        ),
        counts=(1_464, 1_449),
    ),
    "newsgroups": Official(
        wanted=(
            "20_newsgroups/<group>/<post> (unpacked 20_newsgroups.tar.gz: 19,997 posts, the papers' corpus)",
            "20news-bydate-train/ and 20news-bydate-test/, or 20news-bydate.tar.gz (18,846 posts)",
            "20newsgroups/20news-bydate.jsonl or .jsonl.gz with split, group, text",
        ),
        remotes=(
            Remote(
                url="https://ndownloader.figshare.com/files/5975967",
                file="20news-bydate.tar.gz",
                checksum="sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
            ),
        ),
        counts=(11_314, 7_532),
    ),
    "glove": Official(
        wanted=(
            "glove/glove.6B.100d.txt (from glove.6B.zip)",
            "glove/*.npz with words and vectors",
        ),
        remotes=(
            Remote(
                url="https://nlp.stanford.edu/data/glove.6B.zip",
                file="glove/glove.6B.zip",
                checksum="sha256:617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
                unpacks_to="glove/glove.6B.100d.txt",
            ),
        ),
        counts=(400_000, 0),
        terms="PDDL 1.0",
    ),
}
