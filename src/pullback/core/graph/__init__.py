"""What a recorded computation is: nodes and edges, and the modes of recording."""
