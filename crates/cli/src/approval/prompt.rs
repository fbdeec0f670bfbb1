//! The question on the terminal: single keys, read in raw mode, which is always left again.

use std::fs::OpenOptions;
use std::future::Future;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bindery::core::interrupt::{Answer, Ask, Interrupt};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal;
use serde_json::{Map, Value};

use crate::terminal::Style;

use super::entry::{Entry, Typed};
use super::keys::{Choice, KeyAction, choices, elicitation, stop};
use super::questions::{Question, questions};
use super::text::{Asker, cursor, keys_text, more_text, question_text, what_text};

/// What somebody answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer.
    pub answer: Answer,
    /// The turn is to be interrupted as well.
    pub stop: bool,
}

/// Asks at the terminal until there is an answer or `cancelled` completes; then there is none.
///
/// Fails where there is no terminal. Nothing else may be written to the terminal meanwhile: call
/// [`crate::view::View::pause`] before, and hold the parts that come.
pub async fn ask(
    interrupt: &Interrupt,
    asker: Asker,
    style: &Style,
    cancelled: impl Future<Output = ()>,
) -> io::Result<Option<Outcome>> {
    let over = Arc::new(AtomicBool::new(false));
    let (interrupt, style, watched) = (interrupt.clone(), *style, Arc::clone(&over));
    let blocking = move || Prompt::open(style, asker, watched)?.run(&interrupt);
    let mut asking = tokio::task::spawn_blocking(blocking);
    // Dropping this future ends the thread too, if a little later.
    let guard = SetOnDrop(over);
    tokio::select! {
        result = &mut asking => result.map_err(io::Error::other)?,
        () = cancelled => {
            drop(guard);
            asking.await.map_err(io::Error::other)?
        }
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How often a cancelled question is noticed.
const POLL: Duration = Duration::from_millis(50);

struct Prompt {
    style: Style,
    asker: Asker,
    over: Arc<AtomicBool>,
    screen: Box<dyn Write>,
}

/// Raw mode, left when this is dropped, also by a panic.
struct Raw;

impl Raw {
    fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        Ok(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = terminal::disable_raw_mode();
    }
}

impl Prompt {
    fn open(style: Style, asker: Asker, over: Arc<AtomicBool>) -> io::Result<Self> {
        let tty = OpenOptions::new().write(true).open("/dev/tty");
        let screen: Box<dyn Write> = match tty {
            Ok(tty) => Box::new(tty),
            Err(_) => Box::new(io::stderr()),
        };
        Ok(Self { style, asker, over, screen })
    }

    fn run(mut self, interrupt: &Interrupt) -> io::Result<Option<Outcome>> {
        let raw = Raw::enter()?;
        self.forget_typed()?;
        self.write(&what_text(interrupt, self.asker, &self.style))?;
        let questions = questions(&interrupt.ask);
        let outcome = match questions.is_empty() {
            true => self.key(interrupt, &choices(interrupt)),
            false => self.words(interrupt, &questions),
        };
        drop(raw);
        let outcome = outcome?;
        let end = if outcome.is_some() { "\n" } else { "\r\x1b[Kno longer asked\n" };
        self.write(end)?;
        Ok(outcome)
    }

    fn key(&mut self, interrupt: &Interrupt, choices: &[Choice]) -> io::Result<Option<Outcome>> {
        self.write(&keys_text(choices, &self.style))?;
        while let Some(pressed) = self.next_key()? {
            let KeyCode::Char(letter) = pressed.code else { continue };
            if is_stop(pressed) {
                return self.stopped(interrupt);
            }
            if pressed.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
                continue;
            }
            let Some(choice) = choices.iter().find(|choice| choice.key == letter) else { continue };
            match &choice.action {
                KeyAction::More => {
                    self.write("\n")?;
                    self.write(&more_text(interrupt, &self.style))?;
                }
                KeyAction::Answer { answer, stop } => {
                    self.write(&crate::view::clean::revealed(&choice.words))?;
                    return Ok(Some(Outcome { answer: answer.clone(), stop: *stop }));
                }
            }
        }
        Ok(None)
    }

    fn words(
        &mut self,
        interrupt: &Interrupt,
        questions: &[Question],
    ) -> io::Result<Option<Outcome>> {
        let mut given = Map::new();
        for (index, question) in questions.iter().enumerate() {
            self.write(if index > 0 { "\n" } else { "" })?;
            self.write(&question_text(question, &self.style))?;
            match self.line(question)? {
                Some(Ok(value)) => given.extend(value.map(|value| (question.id.clone(), value))),
                Some(Err(Stop)) => return self.stopped(interrupt),
                None => return Ok(None),
            }
        }
        match &interrupt.ask {
            Ask::UserInput { .. } => {
                Ok(Some(Outcome { answer: Answer::UserInput { answers: given }, stop: false }))
            }
            // A form may be all optional, and Enter alone must not send it.
            _ => {
                self.write("\n")?;
                self.key(interrupt, &elicitation("send", Some(Value::Object(given))))
            }
        }
    }

    /// One answered line; nothing if the question is no longer asked.
    fn line(&mut self, question: &Question) -> io::Result<Option<Result<Option<Value>, Stop>>> {
        let mut entry = Entry::new(question.secret);
        while let Some(pressed) = self.next_key()? {
            match entry.key(pressed) {
                Typed::Echo(text) => self.write(&text)?,
                Typed::Stop => return Ok(Some(Err(Stop))),
                Typed::Line(line) => match question.read(&line) {
                    Ok(value) => return Ok(Some(Ok(value))),
                    Err(why) => self.write(&format!("\n  {why}\n{}", cursor(&self.style)))?,
                },
                Typed::Nothing => {}
            }
        }
        Ok(None)
    }

    fn stopped(&mut self, interrupt: &Interrupt) -> io::Result<Option<Outcome>> {
        self.write("no, stop")?;
        Ok(match stop(&interrupt.ask) {
            KeyAction::Answer { answer, stop } => Some(Outcome { answer, stop }),
            KeyAction::More => None,
        })
    }

    /// What was typed before the question was there is no answer to it.
    fn forget_typed(&mut self) -> io::Result<()> {
        while event::poll(Duration::ZERO)? {
            event::read()?;
        }
        Ok(())
    }

    /// The next key, or nothing once the question is no longer asked.
    fn next_key(&mut self) -> io::Result<Option<KeyEvent>> {
        while !self.over.load(Ordering::Relaxed) {
            if !event::poll(POLL)? {
                continue;
            }
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// In raw mode a line end only goes down.
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.screen.write_all(text.replace('\n', "\r\n").as_bytes())?;
        self.screen.flush()
    }
}

/// Ctrl-C at a question that is answered in words.
struct Stop;

/// Ctrl-C arrives as a key in raw mode.
fn is_stop(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c')
}
