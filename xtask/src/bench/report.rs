//! What a bench found, printed as Markdown so that it can be pasted into the docs.

use std::fmt::{self, Display};
use std::io::Write;

use super::samples::Samples;

/// The result of one bench.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// A heading.
    pub title: String,
    /// What was measured.
    pub tables: Vec<Table>,
    /// What had to hold.
    pub targets: Vec<Target>,
}

impl Report {
    /// True when every target is met.
    pub fn met(&self) -> bool {
        self.targets.iter().all(Target::met)
    }

    /// Writes the report to stdout.
    pub fn print(&self) -> anyhow::Result<()> {
        Ok(write!(std::io::stdout(), "{self}")?)
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "## {}\n", self.title)?;
        for table in &self.tables {
            writeln!(out, "{table}")?;
        }
        self.targets.iter().try_for_each(|target| writeln!(out, "- {target}"))
    }
}

/// A Markdown table; columns after the first are set to the right.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins a table.
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&cell| cell.to_owned()).collect(), rows: Vec::new() }
    }

    /// Begins a table for [`Table::times`].
    pub fn of_times() -> Self {
        Self::new(&["variant", "median ms", "p95 ms", "runs"])
    }

    /// Adds a row of measured milliseconds.
    pub fn times(&mut self, variant: &str, samples: &Samples) {
        self.rows.push(vec![
            variant.to_owned(),
            format!("{:.2}", samples.median()),
            format!("{:.2}", samples.p95()),
            samples.values().len().to_string(),
        ]);
    }

    fn width(&self, column: usize) -> usize {
        let cells = std::iter::once(&self.head).chain(&self.rows);
        let widths = cells.filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        widths.max().unwrap_or(0).max(3)
    }

    fn write_row(&self, out: &mut fmt::Formatter<'_>, row: &[String]) -> fmt::Result {
        for (column, cell) in row.iter().enumerate() {
            let width = self.width(column);
            match column {
                0 => write!(out, "| {cell:<width$} |")?,
                _ => write!(out, " {cell:>width$} |")?,
            }
        }
        writeln!(out)
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_row(out, &self.head)?;
        for column in 0..self.head.len() {
            let rule = "-".repeat(self.width(column) - 1);
            match column {
                0 => write!(out, "| {rule}- |")?,
                _ => write!(out, " {rule}: |")?,
            }
        }
        writeln!(out)?;
        self.rows.iter().try_for_each(|row| self.write_row(out, row))
    }
}

/// Something that must not be above a limit.
#[derive(Clone, Debug)]
pub struct Target {
    /// What it is about.
    pub name: String,
    /// What was measured.
    pub value: f64,
    /// The most it may be.
    pub limit: f64,
    /// Written after both numbers: `×`, ` ms`.
    pub unit: &'static str,
}

impl Target {
    /// A ratio that must not exceed `limit`.
    pub fn ratio(name: &str, value: f64, limit: f64) -> Self {
        Self { name: name.to_owned(), value, limit, unit: "×" }
    }

    /// Milliseconds that must not exceed `limit`.
    pub fn milliseconds(name: &str, value: f64, limit: f64) -> Self {
        Self { name: name.to_owned(), value, limit, unit: " ms" }
    }

    /// Megabytes that must not exceed `limit`.
    pub fn megabytes(name: &str, value: f64, limit: f64) -> Self {
        Self { name: name.to_owned(), value, limit, unit: " MB" }
    }

    /// True when the value is at or below the limit; a value that is no number never is.
    pub fn met(&self) -> bool {
        self.value <= self.limit
    }
}

impl Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, limit, unit } = self;
        let verdict = if self.met() { "met" } else { "NOT met" };
        write!(out, "{name}: {verdict} ({value:.3}{unit} vs target ≤ {limit}{unit})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_well() {
        let mut table = Table::of_times();
        table.times("raw loop", &Samples::new(vec![10.0, 20.0, 30.0]).unwrap());
        table.times("ours", &Samples::new(vec![1.0]).unwrap());
        let report = Report {
            title: "Turn".to_owned(),
            tables: vec![table],
            targets: vec![
                Target::ratio("new thread", 1.01, 1.03),
                Target::milliseconds("own CPU", 2.5, 2.0),
            ],
        };
        let expected = "\
## Turn

| variant  | median ms | p95 ms | runs |
| -------- | --------: | -----: | ---: |
| raw loop |     20.00 |  29.00 |    3 |
| ours     |      1.00 |   1.00 |    1 |

- new thread: met (1.010× vs target ≤ 1.03×)
- own CPU: NOT met (2.500 ms vs target ≤ 2 ms)
";
        assert_eq!(report.to_string(), expected);
        assert!(!report.met());
    }

    #[test]
    fn a_target_holds_at_the_limit_and_never_for_no_number() {
        assert!(Target::ratio("x", 1.03, 1.03).met());
        assert!(!Target::ratio("x", 1.031, 1.03).met());
        assert!(!Target::ratio("x", f64::NAN, 1.03).met());
    }
}
