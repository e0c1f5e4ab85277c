"""The words for the classes of public datasets, in the order of their numbers."""

from __future__ import annotations

__all__ = ["CIFAR10", "CIFAR100", "DIGITS", "FASHION_MNIST", "NEWSGROUPS", "VOC2012"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DIGITS = tuple("0123456789")

CIFAR10 = _words("airplane automobile bird cat deer dog frog horse ship truck")

CIFAR100 = _words(
    """
        apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
        camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
        dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
        leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
        otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
        road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
        sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
        wardrobe whale willow_tree wolf woman worm
    """
)

FASHION_MNIST = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)

VOC2012 = _words(
    """
        background aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike
        person pottedplant sheep sofa train tvmonitor
    """
)

NEWSGROUPS = _words(
    """
        alt.atheism comp.graphics comp.os.ms-windows.misc comp.sys.ibm.pc.hardware comp.sys.mac.hardware
        comp.windows.x misc.forsale rec.autos rec.motorcycles rec.sport.baseball rec.sport.hockey sci.crypt
        sci.electronics sci.med sci.space soc.religion.christian talk.politics.guns talk.politics.mideast
        talk.politics.misc talk.religion.misc
    """
)
