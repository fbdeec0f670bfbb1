//! Arguments that are described to clap only when their command is named: whoever serves has no
//! use for the flags of all the others, and keeps their memory for as long as it runs.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The arguments of a command, described late. Its line in the list of commands stands with the
/// list.
#[derive(Debug)]
pub(crate) struct Lazy<T>(pub(crate) T);

impl<T: Args> Args for Lazy<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for Lazy<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
