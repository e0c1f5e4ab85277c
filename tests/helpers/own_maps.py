"""Maps of a user's own, for runs that name code."""


class Normalized:
    """Returns log-probabilities, so that the size of the logits is lost."""

    def learn(self, logits, labels):
        """Learn nothing."""
        return {"factor": 1.0}

    def map(self, logits, parameters):
        """Return logarithms of probabilities."""
        return (logits * parameters["factor"]).log_softmax(-1)
