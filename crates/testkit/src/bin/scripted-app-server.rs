//! A process that plays a script where `codex app-server` would run.
//!
//! `scripted-app-server SCRIPT [ignored…]`, or `--crowd` for a script, then also with
//! `--listen unix://PATH`; exits 0 at the end of the script and of its input, 97 if something else
//! came than the script expects, 70 if a turn of a crowd crashed it, and as the script says if that
//! says so.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use bindery_testkit::app_server::crowd::Crowd;
use bindery_testkit::app_server::{End, Outcome, Script, play};

/// The exit code of a script that did not fit what came.
const MISFIT: u8 = 97;

/// A scripted server that outlives its test by mistake ends by itself.
const LIFETIME: Duration = Duration::from_secs(600);

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        return misfit("usage: scripted-app-server SCRIPT");
    };
    if path == "--crowd" {
        return crowd();
    }
    let script = std::fs::read(&path)
        .map_err(|err| err.to_string())
        .and_then(|text| serde_json::from_slice::<Script>(&text).map_err(|err| err.to_string()));
    let script = match script {
        Ok(script) => script,
        Err(err) => return misfit(&format!("no script in {}: {err}", path.display())),
    };
    let end = match run(&script) {
        Ok(Some(outcome)) => outcome.end,
        Ok(None) => return misfit("the script took too long"),
        Err(err) => return misfit(&format!("cannot play: {err}")),
    };
    match end {
        // Leaves by `exit`, because the runtime's thread may still read the input.
        End::Finished => std::process::exit(0),
        End::Crashed(Some(code)) => std::process::exit(code),
        End::Crashed(None) => std::process::abort(),
        End::Failed(why) => misfit(&why),
    }
}

/// Serves many threads until the input ends or a turn crashes it; on a socket, whoever started it
/// ends it.
fn crowd() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(err) => return misfit(&format!("no runtime: {err}")),
    };
    let served = runtime.block_on(async {
        let crowd = Crowd::default().with_any_thread();
        #[cfg(unix)]
        if let Some(path) = socket() {
            let listening = bindery_testkit::app_server::listen(&crowd, &path);
            return tokio::time::timeout(LIFETIME, listening).await?.map(|()| true);
        }
        std::io::Result::Ok(crowd.serve(tokio::io::stdin(), output()?).await)
    });
    match served {
        Ok(crashed) => std::process::exit(if crashed { 70 } else { 0 }),
        Err(err) => misfit(&format!("cannot serve: {err}")),
    }
}

/// The socket that the arguments name.
#[cfg(unix)]
fn socket() -> Option<std::path::PathBuf> {
    let listen = std::env::args().skip_while(|arg| arg != "--listen").nth(1)?;
    listen.strip_prefix("unix://").map(Into::into)
}

fn run(script: &Script) -> std::io::Result<Option<Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let _ignored = if script.ignore_terminate { Some(ignore_terminate()?) } else { None };
        let played = play(script, tokio::io::stdin(), output()?);
        std::io::Result::Ok(tokio::time::timeout(LIFETIME, played).await.ok())
    });
    // Waiting for the thread that reads the input would last until the input ends.
    runtime.shutdown_background();
    outcome
}

/// The standard output, owned, so that dropping it closes the pipe: what stays in its place is
/// the null device.
#[cfg(unix)]
fn output() -> std::io::Result<tokio::fs::File> {
    use std::os::fd::AsFd as _;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(std::fs::File::create("/dev/null")?)?;
    Ok(tokio::fs::File::from_std(output.into()))
}

#[cfg(not(unix))]
fn output() -> std::io::Result<tokio::io::Stdout> {
    Ok(tokio::io::stdout())
}

/// Takes the signal over and never looks at it.
#[cfg(unix)]
fn ignore_terminate() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
}

#[cfg(not(unix))]
fn ignore_terminate() -> std::io::Result<()> {
    Ok(())
}

fn misfit(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "scripted-app-server: {why}");
    std::process::exit(i32::from(MISFIT))
}
