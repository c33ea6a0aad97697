"""What users call: each takes a function, and returns its derivatives."""
