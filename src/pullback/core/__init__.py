"""The graph, tensors, calls of operations, custom operations, backward: no mathematics.

From the ground up: ``graph``, ``tensor``, ``function``, ``custom``, ``backward``, ``debug``; each
imports those before it alone.
"""
