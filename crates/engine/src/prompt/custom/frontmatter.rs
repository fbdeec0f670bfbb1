//! The head of a prompt: `key: value` lines between two `---`. It looks like YAML and is not.

/// What the head says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) description: Option<String>,
    pub(super) argument_hint: Option<String>,
}

/// Head and body. A head that never ends is body.
pub(super) fn split(text: &str) -> (Head, &str) {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim() == "---") else {
        return (Head::default(), text);
    };
    let mut head = Head::default();
    let mut length = first.len();
    for line in lines {
        length += line.len();
        match line.trim() {
            "---" => return (head, &text[length..]),
            line => take(line, &mut head),
        }
    }
    (Head::default(), text)
}

fn take(line: &str, head: &mut Head) {
    let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with('#')) else {
        return;
    };
    let value = unquoted(value.trim()).to_owned();
    match key.trim().to_ascii_lowercase().as_str() {
        "description" => head.description = Some(value),
        "argument-hint" | "argument_hint" => head.argument_hint = Some(value),
        _ => {}
    }
}

/// A value without one pair of quotes around it.
fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}
