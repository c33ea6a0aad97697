"""The arguments that an operation is checked with: described in a text, drawn or guessed.

shape_text reads descriptions such as ``"x: (n, d)"``, and drawing draws the values; roles (what a
name means) and plans (shapes that fit together) are tables for guessing, which searches by trial;
arguments are the result: those of one call. strategies and search need Hypothesis.
"""
