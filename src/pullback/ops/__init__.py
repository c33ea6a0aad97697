"""Every built-in operation: primitives with their gradient rules, and functions made of them."""
