"""Anomaly detection: an observer of operations and of backward passes."""
