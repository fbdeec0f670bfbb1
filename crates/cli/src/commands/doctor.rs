//! `bindery doctor`: what is installed, and what to do about what is not.
