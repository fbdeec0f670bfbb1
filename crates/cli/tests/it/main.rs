//! What the command shows, as a person would see it.

mod screen;

mod turn;

mod markdown;

mod view;

mod approval;
