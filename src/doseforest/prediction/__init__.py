"""Prediction: the finished forest and its file."""
