"""The arguments that an operation is checked with: described in a text, drawn or guessed.

shape_text reads descriptions such as ``"x: (n, d)"``, domains has the sets of arrays that they
name, and drawing draws the values. reading tells how an operation uses its arguments; guessing
searches by trial. arguments are the result: those of one call, of which settings and vary make
others. strategies needs Hypothesis.
"""
