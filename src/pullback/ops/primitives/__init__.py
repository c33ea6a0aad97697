"""Every gradient rule of the library: declarations, and what they are made of."""
