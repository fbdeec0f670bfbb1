//! Text files: which they are, and how they are shown to the model.

/// Whether a type (bare, lower case) is text.
pub(super) fn is_text_type(media_type: &str) -> bool {
    let Some(subtype) = media_type.strip_prefix("application/") else {
        return media_type == "text" || media_type.starts_with("text/");
    };
    let subtype = subtype.strip_prefix("x-").unwrap_or(subtype);
    ["+json", "+xml", "+yaml"].iter().any(|ending| subtype.ends_with(ending))
        || TEXT_SUBTYPES.contains(&subtype)
}

/// Whether a file's name is that of a text.
pub(super) fn is_text_name(filename: &str) -> bool {
    TEXT_ENDINGS.contains(&ending(filename).as_str())
}

/// A file's text under its name, in a fence that the text cannot close.
pub(super) fn fenced(text: &str, media_type: &str, filename: Option<&str>) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let label = match filename {
        Some(name) => {
            format!("File `{}`:", name.replace(|c: char| c.is_control() || c == '`', "_"))
        }
        None if media_type.is_empty() => "File:".to_owned(),
        None => format!("File ({media_type}):"),
    };
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let language = filename.map(ending).filter(|e| e.chars().all(|c| c.is_ascii_alphanumeric()));
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    format!("{label}\n{fence}{}\n{text}{newline}{fence}", language.unwrap_or_default())
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

fn ending(filename: &str) -> String {
    filename.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default()
}

#[rustfmt::skip]
const TEXT_SUBTYPES: [&str; 24] = [
    "json", "json5", "jsonl", "jsonlines", "ndjson", "xml", "xhtml", "yaml", "yml", "toml",
    "javascript", "ecmascript", "typescript", "sh", "shellscript", "csh", "sql", "graphql",
    "httpd-php", "python", "ruby", "perl", "tex", "latex",
];

#[rustfmt::skip]
const TEXT_ENDINGS: [&str; 66] = [
    "txt", "md", "mdx", "rst", "adoc", "tex", "csv", "tsv", "log", "diff", "patch",
    "json", "jsonl", "ndjson", "json5", "xml", "svg", "html", "htm", "css", "scss", "less",
    "yaml", "yml", "toml", "ini", "cfg", "conf", "env", "properties", "lock",
    "rs", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt", "swift", "scala",
    "py", "rb", "php", "pl", "lua", "r", "jl", "ex", "erl", "hs", "ml", "clj",
    "js", "mjs", "cjs", "ts", "tsx", "jsx", "vue", "sh", "sql", "graphql", "proto",
];
