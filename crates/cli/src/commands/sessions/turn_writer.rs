//! Turns as JSON, written piece by piece.

use std::io::Write;

use bindery::core::transcript::{Setup, TurnRecord};
use bindery::sessions::normalise::Event;
use serde_json::Value;

/// Writes turns as the members of a JSON array: the items of a turn as they come, and behind them
/// what is known of it at its end.
#[derive(Debug, Default)]
pub(super) struct TurnWriter {
    has_turns: bool,
    /// Items of the open turn that were written; none if no turn is open.
    open: Option<usize>,
    /// Setup of the open turn, which stands behind its items.
    setup: Vec<Setup>,
}

impl TurnWriter {
    /// Writes a turn, or a piece of one.
    pub(super) fn take(&mut self, event: Event, out: &mut dyn Write) -> anyhow::Result<()> {
        let Event::Turn { more, mut turn, .. } = event else { return Ok(()) };
        let mut written = match self.open.take() {
            Some(written) => written,
            None => {
                let comma = if std::mem::replace(&mut self.has_turns, true) { "," } else { "" };
                write!(out, "{comma}{{\"items\":[")?;
                0
            }
        };
        for item in std::mem::take(&mut turn.items) {
            out.write_all(if written > 0 { b"," } else { b"" })?;
            serde_json::to_writer(&mut *out, &item)?;
            written += 1;
        }
        self.setup.append(&mut turn.setup);
        match more {
            true => self.open = Some(written),
            false => self.close(*turn, out)?,
        }
        Ok(())
    }

    fn close(&mut self, mut turn: TurnRecord, out: &mut dyn Write) -> anyhow::Result<()> {
        turn.setup = std::mem::take(&mut self.setup);
        write!(out, "]")?;
        if let Value::Object(fields) = serde_json::to_value(&turn)? {
            for (name, value) in fields.iter().filter(|(name, _)| *name != "items") {
                write!(out, ",{}:{value}", Value::from(name.as_str()))?;
            }
        }
        Ok(write!(out, "}}")?)
    }
}

#[cfg(test)]
mod tests {
    use bindery::core::item::{Body, Item, Origin, Span, Status};
    use bindery::core::transcript::Transcript;
    use bindery::sessions::normalise::Collector;

    use super::*;

    fn piece(number: u64, more: bool, texts: &[&str]) -> Event {
        let item = |text: &&str| Item {
            id: (*text).into(),
            agent: None,
            status: Status::Ok,
            span: Span::default(),
            body: Body::Message { text: (*text).to_owned(), phase: None },
            origin: Origin::default(),
        };
        let setup = Setup {
            topic: format!("{number}"),
            text: "rules".to_owned(),
            origin: Origin::default(),
        };
        let turn = TurnRecord {
            model: Some(format!("m{number}")),
            items: texts.iter().map(item).collect(),
            setup: vec![setup],
            ..TurnRecord::default()
        };
        Event::Turn { number, more, turn: Box::new(turn) }
    }

    #[test]
    fn turns_in_pieces_are_written_as_the_collected_transcript() {
        let events = || {
            [
                piece(1, false, &["a"]),
                piece(2, true, &[]),
                piece(2, true, &["b", "c"]),
                Event::RollBack(0),
                piece(2, true, &[]),
                piece(2, false, &["d"]),
                piece(3, false, &[]),
            ]
        };
        let (mut out, mut writer) = (b"{\"turns\":[".to_vec(), TurnWriter::default());
        let mut collector = Collector::default();
        for (one, other) in events().into_iter().zip(events()) {
            writer.take(one, &mut out).unwrap();
            collector.take(other);
        }
        out.extend(b"]}");
        let written: Transcript = serde_json::from_slice(&out).unwrap();
        assert_eq!(written, collector.transcript);
    }
}
