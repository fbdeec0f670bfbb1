//! Skimming: what lines are, told by their first bytes, without parsing them.

/// Counts of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines.
    pub lines: u64,
    /// Turns that began with a mark.
    pub marked_turns: u64,
    /// What the user said, as clients saw it.
    pub user: u64,
    /// What the model said, as clients saw it.
    pub assistant: u64,
    /// The same in files that have no events: what the model saw.
    pub bare_user: u64,
    /// The same in files that have no events: what the model said.
    pub bare_assistant: u64,
}

impl Counts {
    /// Turns: by their marks, else by what the user said.
    pub fn turns(&self) -> u64 {
        [self.marked_turns, self.user, self.bare_user].into_iter().find(|n| *n > 0).unwrap_or(0)
    }

    /// Messages of user and model.
    pub fn messages(&self) -> u64 {
        let events = self.user + self.assistant;
        if events > 0 { events } else { self.bare_user + self.bare_assistant }
    }

    /// Counts the whole lines of a block.
    pub fn add(&mut self, block: &[u8]) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', block).chain([block.len()]) {
            if end > start {
                self.line(&block[start..end]);
            }
            start = end + 1;
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        let head = &line[..line.len().min(512)];
        let Some(rest) = after(head, b"\"type\":\"") else { return };
        if rest.starts_with(b"event_msg\"") {
            let Some(rest) = after(rest, b"\"payload\":{\"type\":\"") else { return };
            self.event(rest);
        } else if rest.starts_with(b"message\"") {
            // A bare line of 0.29 and older.
            let injected: [&[u8]; 2] = [b"<user_instructions>", b"<environment_context>"];
            let is_injected = injected.iter().any(|tag| after(head, tag).is_some());
            if after(head, b"\"role\":\"user\"").is_some() && !is_injected {
                self.bare_user += 1;
            } else if after(head, b"\"role\":\"assistant\"").is_some() {
                self.bare_assistant += 1;
            }
        }
    }

    fn event(&mut self, event: &[u8]) {
        if event.starts_with(b"task_started\"") || event.starts_with(b"turn_started\"") {
            self.marked_turns += 1;
        } else if event.starts_with(b"user_message\"") {
            self.user += 1;
        } else if event.starts_with(b"agent_message\"") {
            self.assistant += 1;
        } else if event.starts_with(b"item_completed\"") {
            let Some(item) = after(event, b"\"item\":{\"type\":\"") else { return };
            self.user += u64::from(item.starts_with(b"UserMessage\""));
            self.assistant += u64::from(item.starts_with(b"AgentMessage\""));
        }
    }
}

/// What follows the first `needle`.
fn after<'a>(bytes: &'a [u8], needle: &[u8]) -> Option<&'a [u8]> {
    let at = memchr::memmem::find(bytes, needle)?;
    Some(&bytes[at + needle.len()..])
}
