//! `setpoint haproxy coverage`: how much of HAProxy's language the model covers.
