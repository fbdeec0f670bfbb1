//! What is noted on the way to a plan: warnings, and addresses to fetch.

use std::fmt;

use super::{Download, PlanContext};
use crate::part::Warning;

/// Notes of one planning, with the context at hand.
pub(super) struct Notes<'a> {
    /// What the caller knows.
    pub(super) context: &'a PlanContext,
    /// Addresses to fetch.
    pub(super) downloads: Vec<Download>,
    /// How many reasoning parts were left out.
    pub(super) reasoning: usize,
    warnings: Vec<Warning>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(context: &'a PlanContext) -> Self {
        Self { context, downloads: Vec::new(), reasoning: 0, warnings: Vec::new() }
    }

    /// Notes that something is left out.
    pub(super) fn unsupported(&mut self, feature: impl Into<String>, details: impl Into<String>) {
        self.push(Warning::unsupported(feature, details));
    }

    /// Notes that something is carried in another form.
    pub(super) fn compatibility(&mut self, feature: impl Into<String>, details: impl Into<String>) {
        self.push(Warning::compatibility(feature, details));
    }

    /// Notes an address to fetch, once.
    pub(super) fn want(&mut self, download: Download) {
        if !self.downloads.contains(&download) {
            self.downloads.push(download);
        }
    }

    /// All warnings; reasoning gets one however many parts it had.
    pub(super) fn finish(&mut self) -> Vec<Warning> {
        if self.reasoning > 0 {
            let parts = self.reasoning;
            self.unsupported(
                "reasoning parts",
                format!(
                    "{parts} left out of the history: Codex takes reasoning only in the \
                     provider's encrypted form"
                ),
            );
        }
        std::mem::take(&mut self.warnings)
    }

    /// A tool result can be read twice, as an answer and as history; it is one warning.
    fn push(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// Where a part stands in the prompt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Index of the message.
    pub(super) message: usize,
    /// Index of the part.
    pub(super) part: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prompt[{}].content[{}]", self.message, self.part)
    }
}

/// A warning in one line.
pub(super) fn in_words(warning: &Warning) -> String {
    match warning {
        Warning::Unsupported { feature, details } | Warning::Compatibility { feature, details } => {
            details.as_ref().map_or_else(|| feature.clone(), |why| format!("{feature}: {why}"))
        }
        Warning::Deprecated { setting, message } => format!("{setting}: {message}"),
        Warning::Other { message } => message.clone(),
    }
}
