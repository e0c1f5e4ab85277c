"""The metrics by name, each with the setting of its paper."""

from __future__ import annotations

from equipoise.experiments.catalogue.entry import Entry

__all__ = ["METRICS", "NUMBERS_BESIDE"]

#: Numbers that scorecards, tables or limits know and that no function of their own computes, and where they are told.
NUMBERS_BESIDE = {
    "ece_over": "it is the over-confident part of 'ece', on every scorecard.",
    "ece_under": "it is the under-confident part of 'ece', on every scorecard.",
    "correct_nll": "it is the log-loss of the event that the prediction is right, on scorecards of confidences.",
    "correct_brier": "it is the Brier score of the event that the prediction is right, on scorecards of confidences.",
    "brier_calibration": "it is the first number of 'brier_split', on every scorecard.",
    "brier_refinement": "it is the second number of 'brier_split', on every scorecard.",
    "mean_iou": "it is told by tables of segmentation runs.",
    "ood_fpr95": "it is told beside 'ood_auroc', of runs with foreign data.",
    "ood_aupr": "it is told beside 'ood_auroc', of runs with foreign data.",
}

METRICS: dict[str, Entry] = {
    "accuracy": Entry(
        key="accuracy",
        title="Accuracy",
        made_by="equipoise.metrics:accuracy",
        fidelity="ours",
        summary="How often the most probable class is the true one.",
        use_when="Always, first: calibration without accuracy is worth little.",
        avoid_when="Classes are very unequal; then look at it per class.",
        formula=r"\frac1n \sum_i [\hat y_i = y_i]",
    ),
    "top5_accuracy": Entry(
        key="top5_accuracy",
        title="Top-5 accuracy",
        made_by="equipoise.metrics:top_k_accuracy",
        fidelity="ours",
        parameters={"k": 5},
        summary="How often the true class is among the five most probable.",
        use_when="There are many classes, some of them hardly different.",
        avoid_when="There are ten classes or fewer.",
        formula=r"\frac1n \sum_i [\mathrm{rank}(y_i) \le 5]",
    ),
    "nll": Entry(
        key="nll",
        title="Negative log-likelihood",
        made_by="equipoise.metrics:negative_log_likelihood",
        fidelity="ours",
        summary="The mean surprise at the true class, in nats: the proper score that training minimises.",
        use_when="You compare models or calibrators: it rewards both knowing and saying how sure one is.",
        avoid_when="A few confident mistakes may decide it; the Brier score is bounded.",
        formula=r"-\frac1n \sum_i \log p_{i, y_i}",
    ),
    "brier": Entry(
        key="brier",
        title="Brier score",
        made_by="equipoise.metrics:brier_score",
        paper="Brier (1950), Verification of forecasts expressed in terms of probability",
        fidelity="authors' code compared",
        summary=(
            "The mean squared distance between probabilities and the truth: a proper score that is bounded."
        ),
        use_when="You want a proper score that some wrong labels cannot blow up.",
        avoid_when="Rare classes matter: it hardly sees the difference between 0.01 and 0.0001.",
        formula=r"\frac1n \sum_i \sum_k (p_{ik} - [y_i = k])^2",
    ),
    "brier_split": Entry(
        key="brier_split",
        title="Brier score in two parts",
        made_by="equipoise.metrics:brier_split",
        paper="Murphy (1973), A new vector partition of the probability score",
        fidelity="formula only",
        summary="What of the Brier score is lost to calibration, and what to refinement.",
        use_when=(
            "You ask whether a post-hoc map can help (calibration), or only a better model (refinement)."
        ),
        avoid_when="Rows are few: bins then hold chance, which counts as calibration.",
        formula=r"\sum_k \sum_b \frac{n_{kb}}{n} (\bar p_{kb} - \mathrm{freq}_{kb})^2",
    ),
    "root_brier": Entry(
        key="root_brier",
        title="Root Brier score",
        made_by="equipoise.metrics:root_brier_score",
        paper=(
            "Gruber and Buettner (2022), Better uncertainty calibration via proper scores for "
            "classification and beyond"
        ),
        fidelity="authors' code compared",
        summary="The root of the Brier score, an upper bound of the canonical calibration error.",
        use_when="You want a bound that no choice of bins can lower.",
        avoid_when="You compare with tables that print the square under this name.",
        formula=r"\sqrt{\mathrm{Brier}}",
    ),
    "ece": Entry(
        key="ece",
        title="Expected calibration error",
        made_by="equipoise.metrics:expected_calibration_error",
        paper=(
            "Naeini et al. (2015), Obtaining well calibrated probabilities using Bayesian binning; Guo et "
            "al. (2017), On calibration of modern neural networks"
        ),
        fidelity="authors' code compared",
        parameters={"n_bins": 15},
        summary="The mean gap between confidence and accuracy over bins of confidence.",
        use_when="You compare with papers; nearly all report it with 15 bins.",
        avoid_when=(
            "Rows are few, or it would decide alone: it is biased upwards, and a model that is vague "
            "everywhere can score zero."
        ),
        formula=r"\sum_b \frac{n_b}{n} |\mathrm{conf}_b - \mathrm{acc}_b|",
    ),
    "debiased_ece": Entry(
        key="debiased_ece",
        title="ECE, debiased",
        made_by="equipoise.metrics:debiased_calibration_error",
        paper="Kumar, Liang and Ma (2019), Verified uncertainty calibration",
        fidelity="formula only",
        parameters={"norm": "l1"},
        summary="The ECE less what chance puts on in bins of few rows.",
        use_when="Rows are few, or models are compared on sets of different size.",
        avoid_when="You need the number that papers print.",
        formula=r"\mathrm{ECE} - \text{mean excess of Gaussian noise in each bin}",
    ),
    "debiased_l2": Entry(
        key="debiased_l2",
        title="Debiased L2 calibration error",
        made_by="equipoise.metrics:debiased_calibration_error",
        paper="Kumar, Liang and Ma (2019), Verified uncertainty calibration",
        fidelity="formula only",
        parameters={"norm": "l2"},
        summary="The root mean square gap less the variance of each bin's accuracy.",
        use_when="You want the estimator of the paper, whose bias is known.",
        avoid_when="Large gaps shall not weigh more than small ones.",
        formula=r"\sqrt{\max(0, \sum_b \frac{n_b}{n} [(\mathrm{conf}_b - \mathrm{acc}_b)^2 - "
        r"\frac{\mathrm{acc}_b (1 - \mathrm{acc}_b)}{n_b - 1}])}",
    ),
    "ada_ece": Entry(
        key="ada_ece",
        title="Adaptive ECE",
        made_by="equipoise.metrics:adaptive_calibration_error",
        paper=(
            "Mukhoti et al. (2020), Calibrating deep neural networks using focal loss; Nguyen and "
            "O'Connor (2015)"
        ),
        fidelity="authors' code compared",
        parameters={"n_bins": 15},
        summary="The ECE over bins that hold equally many rows.",
        use_when="Most confidences lie close to one, where bins of equal width do not tell them apart.",
        avoid_when="Confidences repeat: ties make bins unequal, unless construction='chunks'.",
        formula=r"\sum_b \frac{n_b}{n} |\mathrm{conf}_b - \mathrm{acc}_b|,\; n_b \approx n / B",
    ),
    "classwise_ece": Entry(
        key="classwise_ece",
        title="Classwise ECE",
        made_by="equipoise.metrics:classwise_calibration_error",
        paper=(
            "Kull et al. (2019), Beyond temperature scaling; Nixon et al. (2019), Measuring calibration "
            "in deep learning"
        ),
        fidelity="authors' code compared",
        parameters={"n_bins": 15},
        summary="The mean over classes of each class's own calibration error.",
        use_when="Decisions use the probability of a class that need not be the top one.",
        avoid_when=(
            "There are hundreds of classes: nearly all probabilities are near zero, and so is the number."
        ),
        formula=r"\frac1K \sum_k \sum_b \frac{n_{kb}}{n} |\bar p_{kb} - \mathrm{freq}_{kb}|",
    ),
    "ace": Entry(
        key="ace",
        title="Adaptive classwise error (ACE)",
        made_by="equipoise.metrics:thresholded_adaptive_calibration_error",
        paper="Nixon et al. (2019), Measuring calibration in deep learning",
        fidelity="authors' code compared",
        parameters={"threshold": 0.0},
        summary="The classwise error over bins of equal mass.",
        use_when="Classes are skewed and every probability matters.",
        avoid_when="There are many classes: the mass near zero fills the bins; use TACE.",
        formula=r"\frac1K \sum_k \sum_b \frac{n_{kb}}{n} |\bar p_{kb} - \mathrm{freq}_{kb}|",
    ),
    "tace": Entry(
        key="tace",
        title="Thresholded adaptive classwise error (TACE)",
        made_by="equipoise.metrics:thresholded_adaptive_calibration_error",
        paper="Nixon et al. (2019), Measuring calibration in deep learning",
        fidelity="authors' code compared",
        parameters={"threshold": 0.01},
        summary="ACE with probabilities below a threshold in one bin.",
        use_when="There are many classes and the tiny probabilities drown the rest.",
        avoid_when="You compare across papers: the threshold changes the number.",
        formula=r"\text{ACE with } p < \epsilon \text{ set to } 0",
    ),
    "mce": Entry(
        key="mce",
        title="Maximum calibration error",
        made_by="equipoise.metrics:maximum_calibration_error",
        paper="Naeini et al. (2015), Obtaining well calibrated probabilities using Bayesian binning",
        fidelity="authors' code compared",
        parameters={"n_bins": 15},
        summary="The worst bin.",
        use_when="One bad range of confidence is one too many.",
        avoid_when="Some bins hold few rows: the worst is then the emptiest.",
        formula=r"\max_b |\mathrm{conf}_b - \mathrm{acc}_b|",
    ),
    "rms_ce": Entry(
        key="rms_ce",
        title="Root mean square calibration error",
        made_by="equipoise.metrics:root_mean_square_calibration_error",
        paper="Hendrycks et al. (2019), Deep anomaly detection with outlier exposure",
        fidelity="authors' code compared",
        parameters={"n_bins": 15},
        summary="Like the ECE, but large gaps weigh more.",
        use_when="One large gap is worse than two small ones.",
        avoid_when="You need the number that papers print as ECE.",
        formula=r"\sqrt{\sum_b \frac{n_b}{n} (\mathrm{conf}_b - \mathrm{acc}_b)^2}",
    ),
    "avg_ce": Entry(
        key="avg_ce",
        title="Average calibration error",
        made_by="equipoise.metrics:average_calibration_error",
        paper="Neumann et al. (2018), Relaxed softmax",
        fidelity="authors' code compared",
        parameters={"n_bins": 15},
        summary="The plain mean of the gaps over bins that hold rows.",
        use_when="Rarely used ranges of confidence matter as much as common ones.",
        avoid_when="Bins hold few rows: their noise counts in full.",
        formula=r"\frac{1}{|\{b : n_b > 0\}|} \sum_b |\mathrm{conf}_b - \mathrm{acc}_b|",
    ),
    "ece_sweep": Entry(
        key="ece_sweep",
        title="ECE with swept bins",
        made_by="equipoise.metrics:sweep_calibration_error",
        paper="Roelofs et al. (2022), Mitigating bias in calibration error estimation",
        fidelity="formula only",
        summary="The ECE over as many bins of equal mass as keep accuracy rising with confidence.",
        use_when="You do not want to choose the number of bins.",
        avoid_when="Accuracy does not rise with confidence: one bin is left, and gaps cancel in it.",
        formula=r"\max B : \mathrm{acc}_1 \le \dots \le \mathrm{acc}_B",
    ),
    "smece": Entry(
        key="smece",
        title="Smooth ECE",
        made_by="equipoise.metrics:smooth_calibration_error",
        paper="Blasiok and Nakkiran (2023), Smooth ECE",
        fidelity="authors' code compared",
        summary="The calibration error smoothed at the scale at which it is itself: no bins, no choices.",
        use_when=(
            "You want one number to trust: it is consistent, and moves continuously with the predictions."
        ),
        avoid_when="You need the number that papers print.",
        formula=r"\sigma^* = \int_0^1 |\frac1n \sum_i K_{\sigma^*}(t, c_i)(c_i - a_i)| dt",
    ),
    "ks": Entry(
        key="ks",
        title="KS error",
        made_by="equipoise.metrics:kolmogorov_smirnov_error",
        paper="Gupta et al. (2021), Calibration of neural networks using splines",
        fidelity="authors' code compared",
        summary="The largest gap between the running sums of confidence and of correctness.",
        use_when="You want no bins and a classical test behind the number.",
        avoid_when="Over- and under-confidence alternate along the axis: the sums cancel.",
        formula=r"\max_t \frac1n |\sum_{c_i \le t} (c_i - a_i)|",
    ),
    "sece": Entry(
        key="sece",
        title="Gaussian-kernel ECE (SECE)",
        made_by="equipoise.metrics:gaussian_calibration_error",
        paper="Wang and Golebiowski (2024), Towards unbiased calibration using meta-regularization",
        fidelity="reconstruction",
        parameters={"bandwidth": 0.01},
        summary="The mean distance between confidence and the accuracy of rows of similar confidence.",
        use_when="You train or judge gamma-net, whose objective it is.",
        avoid_when="Rows are few: a row is its own neighbour, and pulls the error up.",
        formula=r"\frac1n \sum_i |\frac{\sum_j K_h(c_i - c_j) a_j}{\sum_j K_h(c_i - c_j)} - c_i|",
    ),
    "kde_ece": Entry(
        key="kde_ece",
        title="KDE-ECE",
        made_by="equipoise.metrics:kernel_calibration_error",
        paper=(
            "Popordanoska, Sayer and Blaschko (2022), A consistent and differentiable Lp canonical "
            "calibration error estimator"
        ),
        fidelity="authors' code compared",
        summary="The calibration error of the whole probability vector, by a Dirichlet kernel.",
        use_when="Errors shall be seen that no single class shows, with few classes.",
        avoid_when=(
            "Rows or classes are many: time grows with the square of the rows, and the simplex is empty."
        ),
        formula=r"\frac1n \sum_i \| \frac{\sum_{j \ne i} K_h(p_i; p_j) e_{y_j}}{\sum_{j \ne i} "
        r"K_h(p_i; p_j)} - p_i \|_1",
    ),
    "confidence_gap": Entry(
        key="confidence_gap",
        title="Confidence - accuracy",
        made_by="equipoise.metrics:confidence_gap",
        fidelity="ours",
        summary="Mean confidence minus accuracy: above zero the model is too sure, below not sure enough.",
        use_when="You want the direction, which no other error here tells.",
        avoid_when="Gaps of both signs may cancel.",
        formula=r"\frac1n \sum_i (c_i - a_i)",
    ),
    "over_confidence_error": Entry(
        key="over_confidence_error",
        title="Over-confidence error",
        made_by="equipoise.metrics:over_confidence_error",
        paper="Thulasidasan et al. (2019), On mixup training",
        fidelity="formula only",
        parameters={"n_bins": 15},
        summary="The over-confident gaps, each weighed by the confidence it was said with.",
        use_when="Confident mistakes are what costs.",
        avoid_when="The model may be under-confident: it sees nothing of that.",
        formula=r"\sum_b \frac{n_b}{n} \mathrm{conf}_b \max(\mathrm{conf}_b - \mathrm{acc}_b, 0)",
    ),
    "auroc": Entry(
        key="auroc",
        title="AUROC of right vs wrong",
        made_by="equipoise.metrics:error_auroc",
        fidelity="authors' code compared",
        summary="How well confidence tells right predictions from wrong ones.",
        use_when="Predictions of low confidence will be handed on or withheld.",
        avoid_when="You ask whether the numbers themselves are right: it sees their order only.",
        formula=r"P(c_i > c_j \mid a_i = 1, a_j = 0)",
    ),
    "ood_auroc": Entry(
        key="ood_auroc",
        title="AUROC of known vs foreign",
        made_by="equipoise.metrics:out_of_distribution_auroc",
        paper=(
            "Hendrycks and Gimpel (2017), A baseline for detecting misclassified and out-of-distribution "
            "examples"
        ),
        fidelity="ours",
        summary="How well confidence tells data like the training set from data unlike it.",
        use_when="Unknown inputs will come, and confidence is the alarm.",
        avoid_when="A score made for the purpose exists: confidence is the baseline.",
        formula=r"P(c_i > c_j \mid i \text{ known}, j \text{ unknown})",
    ),
    "aurc": Entry(
        key="aurc",
        title="Area under risk-coverage",
        made_by="equipoise.metrics:area_under_risk_coverage",
        paper="Geifman and El-Yaniv (2017), Selective classification for deep neural networks",
        fidelity="formula only",
        summary="The mean error rate over all shares of most confident rows that may be kept.",
        use_when="Predictions may be withheld, and it is not yet known how many.",
        avoid_when="Models differ in accuracy: it mixes that with the order of confidence.",
        formula=r"\frac1n \sum_i \frac1i \sum_{j \le i} [\hat y_{(j)} \ne y_{(j)}]",
    ),
}
