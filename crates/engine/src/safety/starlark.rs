//! Codex's rule files: the two functions of them, read by hand.
//!
//! From where something is not understood the rest of the file is not read, and none of its rules
//! allows anything.

use std::collections::BTreeMap;

use super::rules::{Rule, Rules, Token, Word};

/// Deeper lists are not rules.
const DEPTH: usize = 4;

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its rules.
    pub rules: Vec<Rule>,
    /// Where programs are.
    pub programs: BTreeMap<String, Vec<String>>,
    /// What was not understood.
    pub problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    List(Vec<Value>),
}

/// Reads a file.
pub fn read(text: &str) -> Found {
    let mut reader = Reader { rest: text, line: 1 };
    let mut found = Found::default();
    loop {
        reader.skip();
        if reader.rest.is_empty() {
            return found;
        }
        if let Err(why) = reader.statement().and_then(|call| call.into_found(&mut found)) {
            found.problem = Some(format!("line {}: {why}", reader.line));
            found.rules.retain(|rule| rule.decision != Word::Allow);
            found.programs.clear();
            return found;
        }
    }
}

struct Call {
    name: String,
    arguments: BTreeMap<String, Value>,
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    fn bump(&mut self, count: usize) {
        self.line += self.rest[..count].matches('\n').count();
        self.rest = &self.rest[count..];
    }

    fn skip(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.bump(blank);
            if !self.rest.starts_with('#') {
                return;
            }
            self.bump(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn take(&mut self, mark: char) -> bool {
        self.skip();
        let there = self.rest.starts_with(mark);
        if there {
            self.bump(mark.len_utf8());
        }
        there
    }

    fn expect(&mut self, mark: char) -> Result<(), String> {
        if self.take(mark) { Ok(()) } else { Err(format!("`{mark}` is missing")) }
    }

    fn name(&mut self) -> Result<String, String> {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let end = end.unwrap_or(self.rest.len());
        let name = self.rest[..end].to_owned();
        self.bump(end);
        if name.is_empty() { Err("a name is missing".to_owned()) } else { Ok(name) }
    }

    fn statement(&mut self) -> Result<Call, String> {
        let name = self.name()?;
        self.expect('(')?;
        let mut arguments = BTreeMap::new();
        while !self.take(')') {
            let key = self.name()?;
            self.expect('=')?;
            let value = self.value(0)?;
            if arguments.insert(key.clone(), value).is_some() {
                return Err(format!("`{key}` is given twice"));
            }
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(Call { name, arguments })
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err("a list is too deep".to_owned());
        }
        if !self.take('[') {
            return self.text().map(Value::Text);
        }
        let mut values = Vec::new();
        while !self.take(']') {
            values.push(self.value(depth + 1)?);
            if !self.take(',') {
                self.expect(']')?;
                break;
            }
        }
        Ok(Value::List(values))
    }

    fn text(&mut self) -> Result<String, String> {
        self.skip();
        let quote = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let quote = quote.ok_or("a text or a list is expected")?;
        if self.rest.starts_with("\"\"\"") || self.rest.starts_with("'''") {
            return Err("a text in three quotes is not read".to_owned());
        }
        let mut text = String::new();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                'n' if escaped => text.push('\n'),
                't' if escaped => text.push('\t'),
                '\\' | '"' | '\'' if escaped => text.push(c),
                _ if escaped => return Err(format!("`\\{c}` is not read")),
                '\\' => {
                    escaped = true;
                    continue;
                }
                '\n' => return Err("a text does not end".to_owned()),
                _ if c == quote => {
                    self.bump(at + 1);
                    return Ok(text);
                }
                _ => text.push(c),
            }
            escaped = false;
        }
        Err("a text does not end".to_owned())
    }
}

impl Call {
    fn into_found(mut self, found: &mut Found) -> Result<(), String> {
        match self.name.as_str() {
            "prefix_rule" => {
                let rule = self.rule()?;
                self.check_examples(&rule)?;
                found.rules.push(rule);
            }
            "host_executable" => {
                let name = self.text("name")?.ok_or("`name` is missing")?;
                let paths = texts(self.arguments.remove("paths").ok_or("`paths` is missing")?)?;
                found.programs.insert(name, paths);
            }
            other => return Err(format!("`{other}` is not known")),
        }
        match self.arguments.keys().next() {
            Some(key) => Err(format!("`{key}` is not known")),
            None => Ok(()),
        }
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.arguments.remove(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::List(_)) => Err(format!("`{key}` must be a text")),
        }
    }

    fn rule(&mut self) -> Result<Rule, String> {
        let pattern = self.arguments.remove("pattern").ok_or("`pattern` is missing")?;
        let Value::List(tokens) = pattern else {
            return Err("`pattern` must be a list".to_owned());
        };
        let prefix: Vec<Token> = tokens.into_iter().map(token).collect::<Result<_, _>>()?;
        if prefix.is_empty() {
            return Err("`pattern` is empty".to_owned());
        }
        let decision = match self.text("decision")?.as_deref() {
            None | Some("allow") => Word::Allow,
            Some("prompt") => Word::Prompt,
            Some("forbidden") => Word::Forbidden,
            Some(other) => return Err(format!("`{other}` is no decision")),
        };
        Ok(Rule { prefix, decision, justification: self.text("justification")? })
    }

    /// Examples are the author's own test of a rule.
    fn check_examples(&mut self, rule: &Rule) -> Result<(), String> {
        let rules = Rules::of(vec![rule.clone()]);
        for (key, expected) in [("match", true), ("not_match", false)] {
            let Some(value) = self.arguments.remove(key) else { continue };
            let Value::List(examples) = value else {
                return Err(format!("`{key}` must be a list"));
            };
            for example in examples {
                let command = match example {
                    Value::Text(text) => shlex::split(&text).ok_or("an example cannot be split")?,
                    list => texts(list)?,
                };
                let fits = rules.strictest(std::slice::from_ref(&command)).is_some();
                if fits != expected {
                    return Err(format!("`{}` breaks `{key}`", command.join(" ")));
                }
            }
        }
        Ok(())
    }
}

fn token(value: Value) -> Result<Token, String> {
    match value {
        Value::Text(text) => Ok(Token::One(text)),
        list => texts(list).map(Token::Any),
    }
}

fn texts(value: Value) -> Result<Vec<String>, String> {
    let Value::List(values) = value else { return Err("a list is expected".to_owned()) };
    let text = |value| match value {
        Value::Text(text) => Ok(text),
        Value::List(_) => Err("a text is expected".to_owned()),
    };
    values.into_iter().map(text).collect()
}
