"""Batches: a library of arrays with a hidden axis of samples."""
