"""The batch-level terms by name, and the papers' pairs of a loss and a term."""

from __future__ import annotations

from equipoise.experiments.catalogue.entry import Entry

__all__ = ["PAIRS", "PENALTIES"]

_MMCE = (
    "Kumar, Sarawagi and Jain (2018), Trainable calibration measures for neural networks from kernel mean "
    "embeddings"
)
_DCA = (
    "Liang et al. (2020), Improved trainable calibration method for neural networks on medical imaging "
    "classification"
)
_MDCA = (
    "Hebbalaguppe et al. (2022), A stitch in time saves nine: a train-time regularizing loss for improved "
    "neural network calibration"
)
_SOFT = "Karandikar et al. (2021), Soft calibration objectives for neural networks"
_AVUC = (
    "Krishnan and Tickoo (2020), Improving model calibration with accuracy versus uncertainty optimization"
)
_DECE = (
    "Bohdal, Yang and Hospedales (2021), Meta-calibration: learning of model calibration using differentiable "
    "expected calibration error"
)
_KDE = (
    "Popordanoska, Sayer and Blaschko (2022), A consistent and differentiable Lp canonical calibration error "
    "estimator"
)
_SECE = "Wang and Golebiowski (2024), Towards unbiased calibration using meta-regularization"
_DTDP = (
    "Patra et al. (2023), Calibrating deep neural networks using explicit regularisation and dynamic data "
    "pruning"
)

PENALTIES: dict[str, Entry] = {
    "mmce": Entry(
        key="mmce",
        title="Maximum mean calibration error",
        made_by="equipoise.losses:MMCE",
        paper=_MMCE,
        fidelity="authors' code compared",
        parameters={"width": 0.4},
        summary="The distance between confidence and correctness, smoothed over similar confidences.",
        use_when="You want a calibration term without bins that is cheap for any batch size.",
        avoid_when="The network fits its training set: without errors it only asks for more confidence.",
        formula=r"\Bigl( \tfrac{1}{n^2} \sum_{ij} (a_i - c_i)(a_j - c_j) e^{-|c_i - c_j| / w} \Bigr)^{1/2}",
    ),
    "mmce_weighted": Entry(
        key="mmce_weighted",
        title="Weighted MMCE",
        made_by="equipoise.losses:MMCEWeighted",
        paper=_MMCE,
        fidelity="authors' code compared",
        parameters={"width": 0.4},
        summary="MMCE in which correct and wrong predictions weigh the same, however few are wrong.",
        use_when="The network is accurate, so that plain MMCE hardly sees its errors.",
        avoid_when="Batches are so small that many hold no wrong prediction at all.",
        formula=r"\Bigl( \sum_{ij} d_i d_j e^{-|c_i - c_j| / w} \Bigr)^{1/2}, \quad "
        r"d_i = \tfrac{1 - c_i}{m} \text{ if right}, \; -\tfrac{c_i}{n} \text{ if wrong}",
    ),
    "dca": Entry(
        key="dca",
        title="Difference between confidence and accuracy (DCA)",
        made_by="equipoise.losses:DCA",
        paper=_DCA,
        fidelity="authors' code compared",
        summary="The difference between the mean confidence and the accuracy of a batch.",
        use_when="The network is over-confident everywhere and you want the simplest term that says so.",
        avoid_when="Over- and under-confidence occur side by side: they cancel.",
        formula=r"\Bigl| \tfrac1n \sum_i (c_i - a_i) \Bigr|",
    ),
    "mdca": Entry(
        key="mdca",
        title="Multi-class difference in confidence and accuracy (MDCA)",
        made_by="equipoise.losses:MDCA",
        paper=_MDCA,
        fidelity="authors' code compared",
        summary="The mean over classes of the difference between mean probability and frequency.",
        use_when="All classes must be calibrated, not only the predicted one.",
        avoid_when="There are more classes than samples in a batch: the frequencies are then noise.",
        formula=r"\tfrac1k \sum_j \Bigl| \tfrac1n \sum_i (p_{ij} - 1[y_i = j]) \Bigr|",
    ),
    "soft_ece": Entry(
        key="soft_ece",
        title="Soft-binned ECE",
        made_by="equipoise.losses:SoftBinnedECE",
        paper=_SOFT,
        fidelity="formula only",
        parameters={"n_bins": 15, "temperature": 0.01},
        summary="Expected calibration error whose bins share a sample by its distance from their centres.",
        use_when="You want to train on nearly what you report.",
        avoid_when="Batches are small: with few samples in a bin its accuracy is noise.",
        formula=r"\Bigl( \sum_j S_j (\bar c_j - \bar a_j)^2 \Bigr)^{1/2}",
    ),
    "avuc": Entry(
        key="avuc",
        title="Accuracy versus uncertainty (AvUC)",
        made_by="equipoise.losses:AvUC",
        paper=_AVUC,
        fidelity="authors' code compared",
        parameters={"n_updates": 5},
        summary="Rewards being certain where right and uncertain where wrong.",
        use_when="Uncertainty decides what is passed on to a human.",
        avoid_when="You have no held-out predictions to set its threshold from; use soft_avuc.",
        formula=r"\log \Bigl( 1 + \frac{n_{AU} + n_{IC}}{n_{AC} + n_{IU}} \Bigr)",
        needs=frozenset({"held_out"}),
    ),
    "soft_avuc": Entry(
        key="soft_avuc",
        title="Soft AvUC",
        made_by="equipoise.losses:SoftAvUC",
        paper=_SOFT,
        fidelity="formula only",
        parameters={"threshold": 0.5, "temperature": 1.0},
        summary="AvUC with a soft border between certain and uncertain.",
        use_when="Uncertainty matters more than probability, and no held-out data can be spared.",
        avoid_when="You report calibration of probabilities: it does not ask for that.",
        formula=r"\log \Bigl( 1 + \frac{n_{AU} + n_{IC}}{n_{AC} + n_{IU}} \Bigr), \quad "
        r"q_U = \sigma \Bigl( \tfrac1T \log \frac{e (1 - \kappa)}{(1 - e) \kappa} \Bigr)",
    ),
    "dece": Entry(
        key="dece",
        title="Differentiable ECE (DECE)",
        made_by="equipoise.losses:DifferentiableECE",
        paper=_DECE,
        fidelity="authors' code compared",
        parameters={"n_bins": 15, "rank_temperature": 100.0, "bin_temperature": 0.01},
        summary="Expected calibration error with soft bins and a soft accuracy.",
        use_when="A hyper-parameter is learnt through an inner training step: accuracy has a gradient here.",
        avoid_when="You train weights with it directly: its gradient is steep near ties between classes.",
        formula=r"\sum_j \Bigl| \tfrac1n \sum_i q_{ij} (\tilde a_i - c_i) \Bigr|",
    ),
    "kde": Entry(
        key="kde",
        title="Kernel ECE",
        made_by="equipoise.losses:KernelECE",
        paper=_KDE,
        fidelity="authors' code compared",
        parameters={"bandwidth": 0.001, "kind": "canonical"},
        summary="The difference between each prediction and the labels of samples predicted similarly.",
        use_when="The whole probability vector must be calibrated, and classes are few.",
        avoid_when="There are many classes or large batches: it compares all pairs of samples.",
        formula=r"\tfrac1n \sum_i \| \pi_i - p_i \|_1, \; \pi_i \propto \sum_{j \ne i} K(p_i; p_j) e_{y_j}",
    ),
    "sece": Entry(
        key="sece",
        title="Smooth ECE (SECE)",
        made_by="equipoise.losses:SmoothECE",
        paper=_SECE,
        fidelity="reconstruction",
        parameters={"bandwidth": 0.01, "include_self": True},
        summary="The difference between each confidence and the accuracy around it, by a Gaussian kernel.",
        use_when="A gamma network or another hyper-parameter is trained on calibration.",
        avoid_when="Batches are small and the kernel narrow: each sample is then its own only neighbour.",
        formula=r"\tfrac1n \sum_i \Bigl| \frac{\sum_j K(c_i - c_j) a_j}{\sum_j K(c_i - c_j)} - c_i \Bigr|",
    ),
    "huber_ca": Entry(
        key="huber_ca",
        title="Huber confidence-accuracy difference",
        made_by="equipoise.losses:HuberConfidenceAccuracy",
        paper=_DTDP,
        fidelity="reconstruction",
        parameters={"alpha": 0.005},
        summary="DCA with a Huber norm: squared near 0, linear beyond.",
        use_when="DCA's gradient, which flips its sign at every batch, disturbs the end of training.",
        avoid_when="Over- and under-confidence occur side by side: they cancel, as in DCA.",
        formula=r"\mathrm{Huber}_\alpha \Bigl( \tfrac1n \sum_i (c_i - a_i) \Bigr)",
    ),
}

PAIRS: dict[str, Entry] = {
    "ce+mmce": Entry(
        key="ce+mmce",
        title="Cross-entropy + MMCE",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, MMCE)",
        paper=_MMCE,
        fidelity="authors' code compared",
        parameters={"strength": 0.1, "squared": True},
        summary="Cross-entropy and the squared MMCE, as later comparisons train it.",
        use_when="You want the classic calibration term beside cross-entropy.",
        avoid_when="The network fits its training set; prefer ce+mmce_weighted.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{MMCE}^2",
    ),
    "ce+mmce_weighted": Entry(
        key="ce+mmce_weighted",
        title="Cross-entropy + weighted MMCE",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, MMCEWeighted)",
        paper=_MMCE,
        fidelity="authors' code compared",
        parameters={"strength": 2.0, "normalisation": "authors"},
        summary="Cross-entropy and MMCE balanced between right and wrong predictions.",
        use_when="You compare with published MMCE results, most of which are this: strength and normalisation are "
        "those of their code.",
        avoid_when="Batches are so small that many hold no wrong prediction.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{MMCE}_w",
    ),
    "ce+dca": Entry(
        key="ce+dca",
        title="Cross-entropy + DCA",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, DCA)",
        paper=_DCA,
        fidelity="authors' code compared",
        parameters={"strength": 1.0},
        summary="Cross-entropy and the difference between mean confidence and accuracy.",
        use_when="You want the cheapest term there is.",
        avoid_when="Over- and under-confidence occur side by side.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{DCA}",
    ),
    "ce+soft_ece": Entry(
        key="ce+soft_ece",
        title="Cross-entropy + soft-binned ECE",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, SoftBinnedECE)",
        paper=_SOFT,
        fidelity="formula only",
        parameters={"strength": 1.0, "n_bins": 15, "temperature": 0.01},
        summary="Cross-entropy and expected calibration error with soft bins.",
        use_when="You want to train on nearly what you report, with large batches.",
        avoid_when="Nobody can tune the weight: the paper does so for each task.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{SB\text{-}ECE}",
    ),
    "ce+avuc": Entry(
        key="ce+avuc",
        title="Cross-entropy + AvUC",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, AvUC)",
        paper=_AVUC,
        fidelity="authors' code compared",
        parameters={"strength": 3.0, "n_updates": 5},
        summary="Cross-entropy and accuracy versus uncertainty, its threshold set from held-out predictions.",
        use_when="Uncertainty decides what is passed on to a human.",
        avoid_when="There is no held-out set. On small networks the authors' strength 3 outweighs cross-entropy and "
        "costs accuracy (8 points on digits); set strength 1 there.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{AvUC}",
        needs=frozenset({"held_out"}),
    ),
    "ce+soft_avuc": Entry(
        key="ce+soft_avuc",
        title="Cross-entropy + soft AvUC",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, SoftAvUC)",
        paper=_SOFT,
        fidelity="formula only",
        parameters={"strength": 1.0, "threshold": 0.5, "temperature": 1.0},
        summary="Cross-entropy and accuracy versus uncertainty with a soft border.",
        use_when="As ce+avuc, without held-out data.",
        avoid_when="You report calibration of probabilities rather than uncertainty.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{S\text{-}AvUC}",
    ),
    "ce+dece": Entry(
        key="ce+dece",
        title="Cross-entropy + DECE",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, DifferentiableECE)",
        paper=_DECE,
        fidelity="authors' code compared",
        parameters={"strength": 0.5, "n_bins": 15},
        summary="The outer loss of meta-calibration.",
        use_when="Hyper-parameters are learnt on held-out batches.",
        avoid_when="You train weights with it directly.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{DECE}",
    ),
    "ce+kde": Entry(
        key="ce+kde",
        title="KDE-XE",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, KernelECE)",
        paper=_KDE,
        fidelity="authors' code compared",
        parameters={"strength": 0.1, "bandwidth": 0.01, "kind": "canonical"},
        summary="Cross-entropy and the kernel calibration error of the whole probability vector.",
        use_when="The whole vector must be calibrated, and strength and bandwidth can be chosen on held-out data, as "
        "the paper does: `choose = { strength = [0.05, 0.1, 0.3, 1.0] }`. The setting here trains everywhere we tried.",
        avoid_when="There are many classes or large batches. At strength 1 with the bandwidth 0.001 of the authors' "
        "example, small networks lose a fifth of their accuracy and more.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{ECE}^{KDE}",
    ),
    "ce+sece": Entry(
        key="ce+sece",
        title="Cross-entropy + smooth ECE",
        made_by="equipoise.losses:Pair(CrossEntropyLoss, SmoothECE)",
        paper=_SECE,
        fidelity="reconstruction",
        parameters={"strength": 0.5, "bandwidth": 0.01},
        summary="An outer loss for a gamma network.",
        use_when="A gamma network is trained, and its calibration term alone is too noisy.",
        avoid_when="Batches are small and the kernel narrow.",
        formula=r"\mathrm{CE} + \lambda \, \mathrm{SECE}",
    ),
    "focal+mdca": Entry(
        key="focal+mdca",
        title="Focal loss + MDCA",
        made_by="equipoise.losses:Pair(FocalLoss, MDCA)",
        paper=_MDCA,
        fidelity="authors' code compared",
        parameters={"gamma": 1.0, "strength": 1.0},
        summary="Focal loss and the difference of class frequencies: the setting the MDCA paper recommends.",
        use_when="All classes must be calibrated on a task of up to a hundred classes.",
        avoid_when="There are more classes than samples in a batch.",
        formula=r"\mathrm{FL}_\gamma + \lambda \, \mathrm{MDCA}",
    ),
    "focal+huber_ca": Entry(
        key="focal+huber_ca",
        title="Focal loss + Huber confidence-accuracy difference (DTDP's loss)",
        made_by="equipoise.losses:Pair(FocalLoss, HuberConfidenceAccuracy)",
        paper=_DTDP,
        fidelity="reconstruction",
        parameters={"gamma": 1.0, "strength": 10.0, "alpha": 0.005},
        summary="The loss of DTDP, which also prunes the training set.",
        use_when="You compare with DTDP; add its pruning for the whole method.",
        avoid_when="You need numbers that match the paper: its weights are not published in code.",
        formula=r"\mathrm{FL}_\gamma + \lambda \, \mathrm{Huber}_\alpha(\bar c - \bar a)",
    ),
}
