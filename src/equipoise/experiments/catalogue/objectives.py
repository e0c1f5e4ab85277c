"""Methods that own their step, by name. Factories take :class:`~equipoise.objectives.Parts` as ``parts``."""

from __future__ import annotations

from equipoise.experiments.catalogue.entry import Entry

__all__ = ["OBJECTIVES"]

OBJECTIVES: dict[str, Entry] = {
    "supervised": Entry(
        key="supervised",
        title="One network, one loss",
        made_by="equipoise.objectives:make_supervised",
        fidelity="ours",
        summary="Trains a network with any loss, re-tuning the loss each epoch if it adapts.",
        use_when="Always first: every loss in the catalogue runs under it, at the cost of one training.",
        avoid_when="The calibration of one network is not enough and several trainings can be paid for.",
        formula=r"\min_\theta \tfrac{1}{n} \sum_i L(f_\theta(x_i), y_i)",
    ),
    "mutual_learning": Entry(
        key="mutual_learning",
        title="Deep mutual learning (DML)",
        made_by="equipoise.objectives:make_mutual_learning",
        paper="Zhang et al. (2018), Deep mutual learning",
        fidelity="formula only",
        parameters={"n_networks": 2, "weight": 1.0, "peers": "mean", "refresh": True},
        summary="Several networks learn from the labels and from each other's predictions.",
        use_when="Accuracy and calibration should both gain, and training may cost twice or more.",
        avoid_when="Peers become alike late in training and their advice turns into over-confidence; see Diff-DML.",
        formula=r"L_i = \mathrm{CE}(p_i, y) + \tfrac{w}{n - 1} \sum_{j \ne i} \mathrm{KL}(p_j \| p_i)",
        needs=frozenset({"networks"}),
    ),
    "differentiated_mutual_learning": Entry(
        key="differentiated_mutual_learning",
        title="Differentiated deep mutual learning (Diff-DML)",
        made_by="equipoise.objectives:make_differentiated_mutual_learning",
        paper="Liu et al. (2025), Improving accuracy and calibration via differentiated deep mutual learning",
        fidelity="reconstruction",
        parameters={"n_auxiliaries": 1, "auxiliary_rate": 0.01, "weight": 1.0},
        summary="A primary learns from the labels and from auxiliaries that follow it slowly and see no label.",
        use_when="One network is shipped and its accuracy must not suffer; a second can be trained beside it.",
        avoid_when="The auxiliary would be much weaker than the primary: it then ruins the calibration.",
        formula=r"L_f = \mathrm{CE}(f, y) + \tfrac{w}{M} \sum_m \mathrm{KL}(g_m \| f), \quad "
        r"L_{g_m} = \mathrm{KL}(f \| g_m)",
        needs=frozenset({"networks"}),
    ),
    "deep_ensemble": Entry(
        key="deep_ensemble",
        title="Deep ensemble",
        made_by="equipoise.objectives:make_deep_ensemble",
        paper="Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation",
        fidelity="formula only",
        parameters={"n_members": 5},
        summary="Independent networks whose probabilities are averaged.",
        use_when="Quality comes first: hard to beat in calibration, accuracy and under shift of the data.",
        avoid_when="Training or prediction must not cost several times as much.",
        formula=r"p = \tfrac{1}{M} \sum_m p_m",
        needs=frozenset({"networks"}),
    ),
    "gamma_net": Entry(
        key="gamma_net",
        title="gamma-net with SECE",
        made_by="equipoise.objectives:make_gamma_net",
        paper="Wang and Golebiowski (2024), Towards unbiased calibration using meta-regularization",
        fidelity="reconstruction",
        parameters={"hidden": 128, "temperature": 1.0, "start": 1.0},
        summary="A small network learns each sample's focal gamma from the calibration one step ahead.",
        use_when="No single gamma suits all samples, and a held-out part can be spared for training.",
        avoid_when="Batches are small: the smooth calibration error of few samples is mostly noise.",
        formula=r"\min_\phi \mathrm{SECE}(\theta - \eta \nabla_\theta \tfrac1n \sum_i "
        r"-(1 - p_{y_i})^{\gamma_\phi(h_i)} \log p_{y_i})",
        needs=frozenset({"held_out", "features"}),
    ),
    "meta_label_smoothing": Entry(
        key="meta_label_smoothing",
        title="Meta-calibration of label smoothing",
        made_by="equipoise.objectives:make_meta_label_smoothing",
        paper="Bohdal, Yang and Hospedales (2021), Meta-calibration: learning of model calibration using "
        "differentiable expected calibration error",
        fidelity="formula only",
        parameters={"form": "class", "maximum": 0.5, "outer_weight": 0.5},
        summary="Label smoothing, per class or pair of classes, learnt from the calibration one step ahead.",
        use_when="Classes differ in how sure one may be of them, and a held-out part can be spared.",
        avoid_when="There are many classes with few held-out samples each.",
        formula=r"\min_\omega (\mathrm{CE} + w \, \mathrm{DECE})"
        r"(\theta - \eta \nabla_\theta \mathrm{CE}(p_\theta, t_\omega(y)))",
        needs=frozenset({"held_out", "features"}),
    ),
    "sample_adaptive": Entry(
        key="sample_adaptive",
        title="Sample-adaptive label smoothing (CALS, one multiplier per sample)",
        made_by="equipoise.objectives:make_sample_adaptive",
        paper="Liu et al. (2023), Class adaptive network calibration",
        fidelity="formula only",
        parameters={"margin": 10.0, "penalty": "phr", "period": 1},
        summary="A margin cost for every sample and class, its multipliers learnt from the training samples.",
        use_when="You compare with CALS-ALM, whose general form it is.",
        avoid_when="The data are many: four numbers are kept for every training sample and class.",
        formula=r"-\log p_y + \frac{1}{k} \sum_j P(h_j, \rho_{ij}, \lambda_{ij}), \quad "
        r"\lambda_{ij} \leftarrow P'(h_j, \rho_{ij}, \lambda_{ij})",
        needs=frozenset({"index", "n_classes"}),
    ),
    "pruned": Entry(
        key="pruned",
        title="Dynamic data pruning (DTDP)",
        made_by="equipoise.objectives:make_pruned",
        paper="Patra et al. (2023), Calibrating deep neural networks using explicit regularisation and dynamic "
        "data pruning",
        fidelity="reconstruction",
        parameters={"period": 10, "fraction": 0.1, "momentum": 0.3},
        summary="Every few epochs the samples the network is least sure of are left out. The numbers here are "
        "provisional: the paper's are not known.",
        use_when="The data have many mislabelled or hopeless samples, or epochs should grow cheaper.",
        avoid_when="Rare or hard classes matter: they go first.",
        formula=r"e_i \leftarrow \kappa \, c_i + (1 - \kappa) \, e_i",
        needs=frozenset({"index"}),
    ),
}
