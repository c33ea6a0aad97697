"""The operation that the user adds: definition, call, context, gradients by name."""
