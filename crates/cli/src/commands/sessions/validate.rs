//! `bindery sessions validate`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use bindery::sessions::find;
use bindery::sessions::render::{bytes, duration};
use bindery::sessions::validate::{Kind, Report};

use super::{Context, Roots};

/// Check session files against what Bindery knows
///
/// Tells unknown tags and fields, missing fields and broken lines, by the Codex version that
/// began the file. Exits with 1 if a line is not known. The JSON report holds no content.
#[derive(Debug, clap::Args)]
pub(super) struct Validate {
    /// Files or folders to check instead of the Codex home
    paths: Vec<PathBuf>,

    #[command(flatten)]
    roots: Roots,

    /// Write the report as JSON
    #[arg(long)]
    json: bool,

    /// Unknown fields fail, too
    #[arg(long)]
    strict: bool,
}

impl Validate {
    pub(super) fn run(self, cx: Context<'_>) -> anyhow::Result<ExitCode> {
        let roots = if self.paths.is_empty() { self.roots.paths() } else { self.paths.clone() };
        let find::Survey { files, unreadable: hidden } = find::survey(&roots)?;
        let (begun, mut report, mut unreadable) = (Instant::now(), Report::default(), hidden.len());
        for find::Unreadable { path, why } in &hidden {
            let path = path.to_string_lossy();
            writeln!(cx.err, "cannot read `{}`: {why}", crate::view::clean::visible(&path))?;
        }
        for (index, file) in files.iter().enumerate() {
            if cx.style.err.moving && !self.json {
                write!(cx.err, "\r{}/{} files", index + 1, files.len())?;
                cx.err.flush()?;
            }
            if let Err(error) = report.check(&file.path) {
                unreadable += 1;
                let source = std::error::Error::source(&error).map(ToString::to_string);
                writeln!(cx.err, "{error}: {}", source.unwrap_or_default())?;
            }
        }
        if cx.style.err.moving && !self.json {
            write!(cx.err, "\r\u{1b}[K")?;
        }
        let clean =
            report.is_clean() && unreadable == 0 && (!self.strict || report.findings.is_empty());
        match self.json {
            true => writeln!(cx.out, "{}", serde_json::to_string_pretty(&report)?)?,
            false => {
                let time = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                writeln!(cx.err, "checked {} in {}", bytes(report.bytes), duration(time))?;
                print(cx, &report)?;
            }
        }
        Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn print(cx: Context<'_>, report: &Report) -> anyhow::Result<()> {
    let counted = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let (files, versions) = (usize::try_from(report.files)?, report.versions.len());
    writeln!(cx.out, "{}, {}", counted(files, "file"), counted(versions, "version"))?;
    writeln!(cx.out, "  {}/{} lines valid", report.known, report.lines)?;
    for finding in &report.findings {
        writeln!(
            cx.out,
            "  {:>5}  {:<13}  {:<44}  {:<12}  first: {}:{}",
            finding.count,
            finding.kind.words(),
            crate::view::clean::visible(&finding.what),
            finding.version,
            crate::view::clean::visible(&finding.file),
            finding.line
        )?;
    }
    for words in verdict(report) {
        writeln!(cx.out, "{words}")?;
    }
    Ok(())
}

/// What a reader of these files does not get to see.
fn verdict(report: &Report) -> Vec<String> {
    let count = |kind: Kind| {
        report.findings.iter().filter(|f| f.kind == kind).map(|f| f.count).sum::<u64>()
    };
    let mut words = Vec::new();
    if report.lost > 0 {
        let lost = report.lost;
        words.push(format!("{lost} lines are lost: this is a fault in Bindery, please report it"));
    }
    if report.text_bytes > 0 {
        let size = bytes(report.text_bytes);
        words.push(format!("{size} of text in lines over 256 MiB are not shown"));
    }
    if report.payload_bytes > 0 {
        let size = bytes(report.payload_bytes);
        words.push(format!("{size} of base64 in lines over 1 MiB are not shown; all text is"));
    }
    let fields = count(Kind::UnknownField);
    if fields > 0 {
        words.push(format!("{fields} unknown fields are named and not shown"));
    }
    if words.is_empty() {
        words.push("nothing was dropped: what is unknown is shown as cards".to_owned());
    }
    words
}
