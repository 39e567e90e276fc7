//! Plans and executes the way from the current graph to the intended one.
