"""The arguments that an operation is checked with: described in a text, drawn or guessed.

shape_text reads descriptions such as ``"x: (n, d)"``, domains has the sets of arrays that they
name, and drawing draws the values. source and reading tell how an operation uses its arguments,
candidates what these may then be; guessing searches by trial. arguments are the result: those of
one call. strategies needs Hypothesis.
"""
