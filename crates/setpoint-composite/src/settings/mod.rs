//! All parameters with their defaults and their validation.
