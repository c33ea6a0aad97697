"""The arguments that an operation is checked with: described in a text, drawn or guessed.

shape_text reads descriptions such as ``"x: (n, d)"``, domains has the sets of arrays that they
name, and arguments draws the values of one call. reading tells how an operation uses its arguments;
guessing searches by trial. settings and vary make other calls. strategies needs Hypothesis.
"""
