//! Transports, peer, turns.
