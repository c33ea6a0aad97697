"""One backward pass: the engine, accumulation into leaves, hooks, and the public functions."""
