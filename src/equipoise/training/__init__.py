"""Learner (moves a network), Objective (abstract), the loop, checkpoints, history."""
