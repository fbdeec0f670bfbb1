//! The command line as it was typed: what clap cannot refuse for all flags at once.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::commands::Bindery;

/// Reads a command line, the program's name first.
///
/// A flag with an empty value is an error that names the flag: `--model "$MODEL"` with nothing in
/// the variable must not quietly mean the configured model, or the folder that one is in.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Bindery, clap::Error> {
    let mut command = Bindery::command();
    let matches = command.try_get_matches_from_mut(line)?;
    check_values(&mut command, &matches)?;
    Bindery::from_arg_matches(&matches)
}

fn check_values(command: &mut Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let empty = command.get_arguments().find(|arg| is_empty(arg, matches)).map(flag_name);
    if let Some(flag) = empty {
        let message = format!("the value of `{flag}` is empty");
        return Err(command.error(ErrorKind::InvalidValue, message));
    }
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    match command.find_subcommand_mut(name) {
        Some(command) => check_values(command, matches),
        None => Ok(()),
    }
}

/// Whether a flag was given a value with nothing in it. Words behind a custom prompt's name are
/// its values, of which one may be empty; so may a prompt, which the command itself refuses.
fn is_empty(arg: &Arg, matches: &ArgMatches) -> bool {
    let Ok(Some(values)) = matches.try_get_raw(arg.get_id().as_str()) else { return false };
    let checked = if arg.get_id() == "custom" { 1 } else { usize::MAX };
    !arg.is_positional()
        && values.take(checked).any(|value| value.to_string_lossy().trim().is_empty())
}

fn flag_name(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => arg.get_id().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Bindery, String> {
        let line = ["bindery"].iter().chain(words).map(OsString::from);
        parse(line).map_err(|error| error.to_string())
    }

    /// All flags with a value that a command has, with its subcommands, each behind what must
    /// stand there as well.
    fn flags(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, String)>) {
        let needed = command.get_arguments().filter(|arg| arg.is_required_set());
        let needed = needed.map(|arg| match arg.get_long() {
            Some("role") => "--role=run".to_owned(),
            Some(long) => format!("--{long}=1"),
            None => "1".to_owned(),
        });
        let line = [words, &needed.collect::<Vec<_>>()].concat();
        for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
            if let Some(long) = arg.get_long() {
                found.push((line.clone(), long.to_owned()));
            }
        }
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            flags(inner, &[words, &[inner.get_name().to_owned()]].concat(), found);
        }
    }

    #[test]
    fn an_empty_value_is_an_error_that_names_the_flag_for_every_flag_of_every_command() {
        let mut built = Bindery::command();
        built.build();
        let mut all = Vec::new();
        flags(&built, &[], &mut all);
        assert!(all.len() > 80, "{}", all.len());
        for (command, flag) in all {
            let value = format!("--{flag}=");
            let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
            words.push(&value);
            // Before the command, the settings of all.
            if command.is_empty() {
                words.extend(["run", "go"]);
            }
            let error = parsed(&words).unwrap_err();
            assert!(error.contains(&format!("--{flag}")), "{words:?}: {error}");
        }
    }

    #[test]
    fn values_with_something_in_them_pass() {
        for words in [
            vec!["run", "go", "--model", "m", "--cwd", ".", "--timeout", "1"],
            vec!["run", "--prompt", "ticket", "", "ID=42"],
            vec!["exec", "--model", "m", "go"],
            vec!["-c", "a=", "run", "go"],
        ] {
            assert!(parsed(&words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn no_time_at_all_is_an_error_that_names_the_flag() {
        let table = [("run", "--timeout"), ("run", "--idle-timeout"), ("review", "--timeout")];
        for (command, flag) in table {
            let error = parsed(&[command, "go", flag, "0"]).unwrap_err();
            assert!(error.contains(flag) && error.contains('0'), "{error}");
        }
    }
}
