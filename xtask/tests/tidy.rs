//! The house rules, on this repository.

use xtask::{tidy, workspace};

#[test]
fn the_house_is_tidy() {
    let root = workspace::root().expect("the workspace");
    let breaches = tidy::check(&root).expect("files and metadata can be read");
    assert!(breaches.is_empty(), "{}", tidy::listing(&breaches));
}
