//! Leader election by a Lease, and the fence that keeps a former leader from writing.
