"""Forward mode: a library of arrays with tangents."""
