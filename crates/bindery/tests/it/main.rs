//! The facade, as an application uses it.

mod example;
