"""Numbers of scorecards and tables that no function of their own computes."""

__all__ = ["METRIC_PARTS"]

#: What each number is, and where it is reported.
METRIC_PARTS = {
    "ece_over": "it is the overconfident part of 'ece', on every scorecard.",
    "ece_under": "it is the underconfident part of 'ece', on every scorecard.",
    "correct_nll": "it is the log loss of the event that the prediction is correct, on scorecards of confidences.",
    "correct_brier": "it is the Brier score of the event that the prediction is correct, on scorecards of confidences.",
    "brier_calibration": "it is the first number of 'brier_split', on every scorecard.",
    "brier_refinement": "it is the second number of 'brier_split', on every scorecard.",
    "mean_iou": "it is reported in tables of segmentation runs.",
    "ood_fpr95": "it is reported with 'ood_auroc', for runs with out-of-distribution data.",
    "ood_aupr": "it is reported with 'ood_auroc', for runs with out-of-distribution data.",
    "corp_discrimination": "it is a part of the Brier score of being right, reported with 'corp_miscalibration'.",
    "corp_uncertainty": "it is a part of the Brier score of being right, reported with 'corp_miscalibration'.",
    "corp_log_miscalibration": "it is a part of the log-loss of being right, reported with 'corp_miscalibration'.",
    "corp_log_discrimination": "it is a part of the log-loss of being right, reported with 'corp_miscalibration'.",
    "corp_log_uncertainty": "it is a part of the log-loss of being right, reported with 'corp_miscalibration'.",
}
