//! The ConfigMap: who may write it, and how it is written.
