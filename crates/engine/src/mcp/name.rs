//! Names of servers and their tools, as models can call them.

use std::collections::HashSet;

/// The longest name a model's server takes.
const MOST: usize = 64;

/// `my-srv` → `mcp__my_srv`. Two servers never share one.
pub(super) fn namespace(server: &str, taken: &mut HashSet<String>) -> String {
    let letters = server.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let name: String = "mcp__".chars().chain(letters).collect();
    distinct(name, server, taken)
}

/// A tool's name within its server.
pub(super) fn tool(raw: &str, taken: &mut HashSet<String>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = raw.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    distinct(name, raw, taken)
}

/// A name that is too long or taken ends in a mark of what it stands for, the same in every run:
/// histories hold it.
fn distinct(name: String, raw: &str, taken: &mut HashSet<String>) -> String {
    let mut name = name;
    let mut tries = 0_u32;
    while name.is_empty() || name.len() > MOST || taken.contains(&name) {
        let mark = format!("_{:016x}", fnv(format!("{raw}{tries}").as_bytes()));
        name.truncate(MOST - mark.len());
        name.push_str(&mark);
        tries += 1;
    }
    taken.insert(name.clone());
    name
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_callable_short_and_distinct() {
        let mut taken = HashSet::new();
        assert_eq!(namespace("my-srv.x", &mut taken), "mcp__my_srv_x");
        let other = namespace("my_srv_x", &mut taken);
        assert!(other.starts_with("mcp__my_srv_x_") && other.len() <= MOST, "{other}");
        let long = namespace(&"ä".repeat(100), &mut taken);
        assert_eq!(long.len(), MOST);
        let mut tools = HashSet::new();
        assert_eq!(tool("do-thing", &mut tools), "do-thing");
        assert_eq!(tool("a.b", &mut tools), "a_b");
        assert_ne!(tool("a b", &mut tools), "a_b");
        assert!(!tool("", &mut tools).is_empty());
    }
}
