"""Methods that need more than a loss: mutual learning, gamma-net, pruning, ensembles."""
