//! Dependency graphs of configuration items: dependencies, subgraphs, diff, cycles and export.
