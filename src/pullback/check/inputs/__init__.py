"""The arguments that an operation is checked with: described in a text, drawn or guessed."""
