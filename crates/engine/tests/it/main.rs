//! The engine against doubles of what it talks to.

mod wires;

mod faults;

mod bodies;
