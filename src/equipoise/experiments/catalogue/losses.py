"""The losses by name, each with the setting of its paper."""

from __future__ import annotations

from equipoise.experiments.catalogue.entry import Entry

__all__ = ["LOSSES", "RENAMED"]

#: Former keys, and what is said to those who still use them.
RENAMED = {"logit_norm": "it is 'logit_penalty' now, since elsewhere LogitNorm is another method."}

LOSSES: dict[str, Entry] = {
    "ce": Entry(
        key="ce",
        title="Cross-entropy",
        made_by="equipoise.losses:CrossEntropyLoss",
        fidelity="authors' code compared",
        summary="The log loss of the true class.",
        use_when="You want the baseline every other loss is measured against, or will fit a temperature "
        "afterwards.",
        avoid_when="The network is large enough to fit the training set: it goes on raising confidence after "
        "the last error is gone.",
        formula=r"-\log p_y",
    ),
    "label_smoothing": Entry(
        key="label_smoothing",
        title="Label smoothing",
        made_by="equipoise.losses:LabelSmoothingLoss",
        paper="Szegedy et al. (2016), Rethinking the Inception architecture for computer vision; Müller et "
        "al. (2019), When does label smoothing help?",
        fidelity="authors' code compared",
        parameters={"smoothing": 0.05},
        summary="Cross-entropy against a target that gives a little probability to every class.",
        use_when="You want one cheap change that helps most networks and has one parameter nobody argues "
        "about.",
        avoid_when="You need the order of the wrong classes (distillation, retrieval), or to tell outliers "
        "by confidence: it softens all samples alike.",
        formula=r"-(1 - \alpha) \log p_y - \frac{\alpha}{k} \sum_j \log p_j",
    ),
    "brier": Entry(
        key="brier",
        title="Brier score",
        made_by="equipoise.losses:BrierLoss",
        paper="Brier (1950), Verification of forecasts expressed in terms of probability",
        fidelity="authors' code compared",
        summary="The squared distance between probabilities and target: a proper score that is bounded.",
        use_when="Some labels are wrong: one confident mistake costs at most 2, so it cannot dominate a "
        "batch.",
        avoid_when="There are hundreds of classes: confident mistakes have almost no gradient, so training "
        "starts slowly and wants another learning rate.",
        formula=r"\sum_j (p_j - 1[j = y])^2",
    ),
    "focal": Entry(
        key="focal",
        title="Focal loss",
        made_by="equipoise.losses:FocalLoss",
        paper="Lin et al. (2017), Focal loss for dense object detection; Mukhoti et al. (2020), Calibrating "
        "deep neural networks using focal loss",
        fidelity="authors' code compared",
        parameters={"gamma": 3.0},
        summary="Cross-entropy that loses interest in a sample as the network grows sure of it.",
        use_when="You follow a paper that uses it, or the network ends overconfident and no rows are left for a "
        "calibrator. Choose gamma on held-out rows.",
        avoid_when="Confidence ranks or refuses predictions: in our benchmarks the paper's setting ranked mistakes "
        "worse than cross-entropy did with every seed. The network is small, stops early, or will be calibrated: "
        "focal loss then makes it underconfident, or gains nothing after temperature scaling.",
        formula=r"-(1 - p_y)^\gamma \log p_y",
    ),
    "flsd": Entry(
        key="flsd",
        title="Sample-dependent focal loss (FLSD-53)",
        made_by="equipoise.losses:SampleDependentFocalLoss",
        paper="Mukhoti et al. (2020), Calibrating deep neural networks using focal loss",
        fidelity="authors' code compared",
        parameters={"gammas": (5.0, 3.0, 3.0), "cuts": (0.2, 0.5)},
        summary="Focal loss with a larger gamma for samples whose true class is still unlikely.",
        use_when="You want focal loss without choosing gamma; the paper's cuts did well on CIFAR and "
        "Tiny-ImageNet.",
        avoid_when="Your data differ much from those: the cuts are fixed. AdaFocal finds its own.",
        formula=r"-(1 - p_y)^{\gamma(p_y)} \log p_y, \quad \gamma = 5 \text{ if } p_y < 0.2 \text{ else } 3",
    ),
    "inverse_focal": Entry(
        key="inverse_focal",
        title="Inverse focal loss",
        made_by="equipoise.losses:InverseFocalLoss",
        paper="Wang et al. (2021), Rethinking calibration of deep neural networks: do not be afraid of "
        "overconfidence",
        fidelity="formula only",
        parameters={"gamma": 2.0},
        summary="Cross-entropy that weighs a sample more as the network grows sure of it.",
        use_when="You will fit a temperature afterwards and want the network easy to calibrate rather than "
        "calibrated.",
        avoid_when="The network's own confidence is what you will use: it raises over-confidence.",
        formula=r"-(1 + p_y)^\gamma \log p_y",
    ),
    "dual_focal": Entry(
        key="dual_focal",
        title="Dual focal loss",
        made_by="equipoise.losses:DualFocalLoss",
        paper="Tao et al. (2023), Dual focal loss for calibration",
        fidelity="authors' code compared",
        parameters={"gamma": 5.0, "rival": "next"},
        summary="Focal loss that loses interest only once the true class is well ahead of the next one.",
        use_when="Focal loss helps but leaves the network under-confident; the best single loss of its "
        "paper.",
        avoid_when="You cannot afford to tune gamma: calibration changes fast with it, 5 being the paper's "
        "best on CIFAR-10.",
        formula=r"-(1 - p_y + q)^\gamma \log p_y, \quad q = \max \{p_j : p_j < p_y\}",
    ),
    "adafocal": Entry(
        key="adafocal",
        title="AdaFocal",
        made_by="equipoise.losses:AdaFocalLoss",
        paper="Ghosh et al. (2022), AdaFocal: calibration-aware adaptive focal loss",
        fidelity="authors' code compared",
        parameters={"n_bins": 15, "rate": 1.0, "switch": 0.2, "bounds": (-2.0, 20.0)},
        summary="Focal or inverse focal loss with a gamma per level of confidence that follows held-out "
        "calibration.",
        use_when="You have held-out data to spare and no wish to choose gamma.",
        avoid_when="Held-out data are few (under a thousand): each of 15 bins has its own noisy gap.",
        formula=r"-(1 - p_y)^{\gamma_b} \log p_y \text{ or } -(1 + p_y)^{|\gamma_b|} \log p_y",
        needs=frozenset({"held_out"}),
    ),
    "ada_dual_focal": Entry(
        key="ada_dual_focal",
        title="AdaFocal with dual focal loss",
        made_by="equipoise.losses:AdaDualFocalLoss",
        paper="Tao et al. (2023), Dual focal loss for calibration, with Ghosh et al. (2022), AdaFocal",
        fidelity="reconstruction",
        parameters={"n_bins": 15, "rate": 1.0, "switch": 0.2, "bounds": (-2.0, 20.0), "rival": "next"},
        summary="Dual focal loss with AdaFocal's gammas.",
        use_when="Dual focal loss fits your data and you would rather not tune its gamma.",
        avoid_when="You want something its authors spelled out: the branch of negative gamma is our reading.",
        formula=r"-(1 - p_y + q)^{\gamma_b} \log p_y \text{ or } -(1 + p_y - q)^{|\gamma_b|} \log p_y",
        needs=frozenset({"held_out"}),
    ),
    "entropy": Entry(
        key="entropy",
        title="Entropy regularisation (confidence penalty)",
        made_by="equipoise.losses:EntropyRegularizedLoss",
        paper="Pereyra et al. (2017), Regularizing neural networks by penalizing confident output "
        "distributions",
        fidelity="authors' code compared",
        parameters={"strength": 0.1},
        summary="Cross-entropy minus a share of the prediction's entropy.",
        use_when="You want a dial between sure and unsure predictions that needs no labels to act.",
        avoid_when="Right and wrong predictions should be treated differently: it softens both. To compare with the "
        "tables of MbLS and CALS set over_classes to 'mean', as their code does: a k-th of this strength.",
        formula=r"-\log p_y - \alpha H(p)",
    ),
    "logit_penalty": Entry(
        key="logit_penalty",
        title="Logit penalty (norm of the logits)",
        made_by="equipoise.losses:LogitPenaltyLoss",
        paper="Wang et al. (2021), Rethinking calibration of deep neural networks: do not be afraid of "
        "overconfidence",
        fidelity="formula only",
        parameters={"strength": 0.05, "order": 1.0},
        summary="Cross-entropy plus the size of the logits: regularisation in function space.",
        use_when="Over-confidence comes from logits that keep growing, and weight decay is already used.",
        avoid_when="There are many classes at this strength: the L1 norm grows with their number (the paper "
        "uses 0.01 for 100).",
        formula=r"-\log p_y + \alpha \lVert z \rVert_1",
    ),
    "mbls": Entry(
        key="mbls",
        title="Margin-based label smoothing",
        made_by="equipoise.losses:MarginLoss",
        paper="Liu et al. (2022), The devil is in the margin: margin-based label smoothing for network "
        "calibration",
        fidelity="authors' code compared",
        parameters={"margin": 10.0, "strength": 0.1, "over_classes": "mean"},
        summary="Cross-entropy plus a cost for logits more than a margin below the largest.",
        use_when="Label smoothing helps calibration but costs accuracy; also for dense prediction.",
        avoid_when="Logits never get a margin apart (short training, small networks): it is then "
        "cross-entropy.",
        formula=r"-\log p_y + \frac{\lambda}{k} \sum_j \max(0, \max_i z_i - z_j - m)",
    ),
    "cals_alm": Entry(
        key="cals_alm",
        title="Class-adaptive label smoothing (CALS-ALM)",
        made_by="equipoise.losses:ClassAdaptiveLoss",
        paper="Liu et al. (2023), Class adaptive network calibration",
        fidelity="authors' code compared",
        parameters={"margin": 10.0, "penalty": "phr"},
        summary="A margin cost per class, its multipliers learnt from held-out predictions.",
        use_when="Classes differ much in difficulty or size, and there are enough held-out data for each.",
        avoid_when="There are fewer than a few held-out samples per class, or training is only a few epochs: "
        "multipliers move once per epoch.",
        formula=r"-\log p_y + \frac{1}{k} \sum_j P(h_j, \rho_j, \lambda_j), \quad h_j = (\max_i z_i - z_j) / "
        r"m - 1",
        needs=frozenset({"held_out", "n_classes"}),
    ),
    "cals_hr": Entry(
        key="cals_hr",
        title="Class-adaptive label smoothing, heuristic rule (CALS-HR)",
        made_by="equipoise.losses:ClassAdaptiveHeuristicLoss",
        paper="Liu et al. (2023), Class adaptive network calibration",
        fidelity="authors' code compared",
        parameters={"margin": 10.0, "start": 0.1, "factor": 1.1},
        summary="A margin cost per class that is raised or lowered as its held-out value rises or falls.",
        use_when="You compare with CALS-ALM, whose simpler rival it is.",
        avoid_when="You look for the better of the two.",
        formula=r"-\log p_y + \frac{1}{k} \sum_j \lambda_j \max(0, \max_i z_i - z_j - m)",
        needs=frozenset({"held_out", "n_classes"}),
    ),
    "cpc": Entry(
        key="cpc",
        title="Pairwise constraints (CPC)",
        made_by="equipoise.losses:PairwiseConstraintLoss",
        paper="Cheng and Vasconcelos (2022), Calibrating deep neural networks by pairwise constraints",
        fidelity="formula only",
        parameters={"discrimination": 10.0, "exclusion": 1.0},
        summary="Cross-entropy with two-class problems between the true class and each other, and among the "
        "others.",
        use_when="There are ten to a hundred classes and the wrong ones should be equally unlikely.",
        avoid_when="There are two classes, where it is not defined, or a thousand, where its pairs take too "
        "long.",
        formula=r"-\log p_y - \frac{\lambda_D}{k - 1} \sum_{j \ne y} \log \sigma(z_y - z_j) - "
        r"\frac{\lambda_E}{(k - 1)(k - 2)} \sum_{j \ne y} \sum_{i \ne y, j} \tfrac12 \log \sigma(z_j - z_i)",
    ),
}
