"""Transforms: functions that take a function and compute its derivatives."""
