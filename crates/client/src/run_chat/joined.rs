//! All outputs of a run as one stream of bytes.

use bindery_core::spec::Spec;

use super::Output;

/// Puts outputs one after the other; lines of ours never fall into a line of the agent's.
#[derive(Debug, Default)]
pub struct Joined {
    spec: Spec,
    /// The agent's last byte was no line feed.
    inside: bool,
    /// Lines that wait for the end of the agent's line.
    waiting: Vec<u8>,
}

/// How many bytes of our lines may wait; an agent that ends no line may not fill our memory.
const WAITING: usize = 1024 * 1024;

impl Joined {
    /// Nothing yet; parts are written as `spec` wants.
    pub fn new(spec: Spec) -> Self {
        Self { spec, ..Self::default() }
    }

    /// The bytes of one output.
    pub fn push(&mut self, output: &Output) -> Vec<u8> {
        match output {
            Output::Started { .. } => Vec::new(),
            Output::Stdout(bytes) => self.stdout(bytes),
            Output::Lines(lines) if self.inside => {
                if self.waiting.len() + lines.len() <= WAITING {
                    self.waiting.extend_from_slice(lines);
                }
                Vec::new()
            }
            Output::Lines(lines) => lines.clone(),
            Output::Parts(parts) => {
                let json = parts.iter().filter_map(|part| part.to_json(self.spec));
                json.flat_map(|json| format!("{json}\n").into_bytes()).collect()
            }
            Output::End(_) => self.end(),
        }
    }

    fn stdout(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(last) = bytes.last() else { return Vec::new() };
        let mut out = Vec::with_capacity(bytes.len() + self.waiting.len());
        match memchr::memrchr(b'\n', bytes) {
            Some(at) if !self.waiting.is_empty() => {
                out.extend_from_slice(&bytes[..=at]);
                out.append(&mut self.waiting);
                out.extend_from_slice(&bytes[at + 1..]);
            }
            _ => out.extend_from_slice(bytes),
        }
        self.inside = *last != b'\n';
        out
    }

    fn end(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.inside && !self.waiting.is_empty() {
            out.push(b'\n');
        }
        out.append(&mut self.waiting);
        out
    }
}

#[cfg(test)]
mod tests {
    use bindery_core::map::exec_to_ndjson::Exit;

    use super::*;

    #[test]
    fn our_lines_wait_for_the_end_of_theirs() {
        let outputs = [
            Output::Stdout(b"{\"a\":".to_vec()),
            Output::Lines(b"{\"ours\":1}\n".to_vec()),
            Output::Stdout(b"1}\n{\"b\"".to_vec()),
            Output::Lines(b"{\"ours\":2}\n".to_vec()),
            Output::End(Exit::code(0)),
        ];
        let mut joined = Joined::default();
        let text: Vec<u8> = outputs.iter().flat_map(|output| joined.push(output)).collect();
        let want = "{\"a\":1}\n{\"ours\":1}\n{\"b\"\n{\"ours\":2}\n";
        assert_eq!(String::from_utf8(text).unwrap(), want);
    }
}
