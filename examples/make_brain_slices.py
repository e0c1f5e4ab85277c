"""Make a small real segmentation task: slices of the average brain of 152 people, tissue by pixel.

    pip install nilearn
    python examples/make_brain_slices.py brain.npz
    equipoise compare examples/specs/brain.toml

nilearn carries the ICBM 152 template of 2009 (McConnell Brain Imaging Center; free to use and pass on with its notice):
an image, and how probable gray and white matter are in each voxel. Blocks of neighboring slices are kept for test,
with a gap between. It is one average head: good for trying dense prediction on something real, no claim on patients.
"""

import gzip
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

NAMES = "mni_icbm152_{}_tal_nlin_sym_09a_converted.nii.gz"
BLOCK, GAP = 12, 2


def read_volume(path: Path) -> np.ndarray:
    """Read a NIfTI-1 file as float32."""
    raw = gzip.decompress(path.read_bytes())
    order = "<" if int(np.frombuffer(raw, "<i4", 1)[0]) == 348 else ">"
    shape = np.frombuffer(raw, f"{order}i2", 8, 40)[1:4]
    kind = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2"}
    dtype = order + kind[int(np.frombuffer(raw, f"{order}i2", 1, 70)[0])]
    start, slope, shift = (float(np.frombuffer(raw, f"{order}f4", 1, at)[0]) for at in (108, 112, 116))
    values = np.frombuffer(raw, dtype, int(np.prod(shape)), int(start)).reshape(shape, order="F")
    return values.astype(np.float32) * (slope or 1.0) + shift


def main(target: str = "brain.npz") -> None:
    spec = find_spec("nilearn")
    if spec is None or spec.origin is None:
        sys.exit("make_brain_slices: nilearn carries the images. pip install nilearn")
    folder = Path(spec.origin).parent / "datasets" / "data"
    head, gray, white = (read_volume(folder / NAMES.format(part)) for part in ("t1", "gm", "wm"))
    inside = head > 0
    other = np.clip(head.max() * inside / head.max() - gray / gray.max() - white / white.max(), 0, 1)
    tissue = np.stack([other, gray / gray.max(), white / white.max()]).argmax(0) + 1
    masks = np.where(inside, tissue, 0).astype(np.uint8)
    images = (255 * head / head.max()).round().astype(np.uint8)
    shown = np.flatnonzero((masks > 1).mean((0, 1)) > 0.02)
    images, masks = (part[:, :, shown].transpose(2, 1, 0)[:, ::2, ::2] for part in (images, masks))
    place = np.arange(len(shown)) % (4 * BLOCK)
    test = (place >= 3 * BLOCK + GAP) & (place < 4 * BLOCK - GAP)
    train = place < 3 * BLOCK
    np.savez_compressed(
        target, x_train=images[train], y_train=masks[train], x_test=images[test], y_test=masks[test]
    )
    shares = np.bincount(masks.ravel(), minlength=4) / masks.size
    print(
        f"{target}: {train.sum()} slices to train and choose on, {test.sum()} to test, {images.shape[1:]} pixels"
    )
    print("outside, other, gray, white:", ", ".join(f"{100 * share:.1f}%" for share in shares))


if __name__ == "__main__":
    main(*sys.argv[1:])
