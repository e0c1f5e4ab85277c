"""From a spec to data, a network and a method."""
