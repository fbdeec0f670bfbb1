//! `bindery map` on a long stream: CPU time and peak memory, beside the mapper of the npm package,
//! and a Node script that only parses each line and writes it again.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::cpu::CpuTime;
use super::report::{Report, Table, Target};
use super::samples::{Plan, Ratio, Samples, interleave};
use super::{Setup, memory};
use crate::{npm, step, workspace};

/// The length of the stream in bytes.
const LENGTH: u64 = 200_000_000;

/// Megabytes that one second of CPU time must be enough for.
const PACE: f64 = 400.0;

/// The most memory, in megabytes.
const MEMORY: f64 = 20.0;

/// How much faster than the script it must be.
const LEAD: f64 = 4.0;

/// The same work without any mapping, as one would write it in Node.
const SCRIPT: &str = "\
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
const lines = createInterface({ input: createReadStream(process.argv[2]) });
for await (const line of lines) {
  if (line) process.stdout.write(JSON.stringify(JSON.parse(line)) + '\\n');
}
";

/// The mapper of the npm package, fed as a program would.
const MAPPER_SCRIPT: &str = "\
import { createReadStream } from 'node:fs';
const { createCodexStdoutMapper } = await import(process.argv[3]);
const mapper = createCodexStdoutMapper({ dialect: 'full' });
for await (const chunk of createReadStream(process.argv[2])) {
  process.stdout.write(mapper.push(chunk).join(''));
}
process.stdout.write(mapper.flush({ code: 0 }).join(''));
";

/// Measures.
pub fn run(setup: &Setup) -> anyhow::Result<Report> {
    let folder = setup.root.join("target/bindery-bench");
    fs::create_dir_all(&folder)?;
    let (stream, script) = (folder.join("exec.jsonl"), folder.join("lines.mjs"));
    let mapper_script = folder.join("mapper.mjs");
    fs::write(&script, SCRIPT)?;
    fs::write(&mapper_script, MAPPER_SCRIPT)?;
    let mapper = npm::stdout_mapper(&setup.root)?;
    let bytes = write_stream(&setup.root, &stream)?;
    let bindery = build(&setup.root)?;
    let mut memory = [0.0_f64; 3];
    let plan = Plan { warm_up: 1, rounds: setup.rounds.unwrap_or(7) };
    let times = interleave(plan, 3, |variant| {
        let mut command = match variant {
            0 => ours(&bindery, &stream),
            1 => nodes(&script, &stream),
            _ => {
                let mut command = nodes(&mapper_script, &stream);
                command.arg(format!("file://{}", mapper.display()));
                command
            }
        };
        let (time, peak) = measure(&mut command)?;
        memory[variant] = memory[variant].max(peak);
        Ok(time)
    })?;
    report(bytes, &times, memory)
}

fn ours(bindery: &Path, stream: &Path) -> Command {
    let mut command = Command::new(bindery);
    command.args(["map", "--from", "exec", "--to", "ndjson"]).arg(stream);
    command
}

fn nodes(script: &Path, stream: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(script).arg(stream);
    command
}

/// Repeats all recordings until the stream is long enough.
fn write_stream(root: &Path, path: &Path) -> anyhow::Result<u64> {
    let mut recordings = Vec::new();
    for version in sorted(&root.join("fixtures/exec"))? {
        for file in sorted(&version)? {
            recordings.extend(fs::read(file)?);
        }
    }
    ensure!(!recordings.is_empty(), "no recordings under fixtures/exec");
    let rounds = LENGTH.div_ceil(recordings.len() as u64);
    let bytes = rounds * recordings.len() as u64;
    if fs::metadata(path).is_ok_and(|found| found.len() == bytes) {
        return Ok(bytes);
    }
    let mut out = BufWriter::new(File::create(path)?);
    (0..rounds).try_for_each(|_| out.write_all(&recordings))?;
    out.flush()?;
    Ok(bytes)
}

fn sorted(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no `{}`", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Builds the program as we ship it.
pub(super) fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let mut command = workspace::cargo(root);
    command.args(["build", "--release", "--quiet", "--package", "bindery-cli"]);
    ensure!(step::status(&mut command)?.success(), "cannot build `bindery`");
    let metadata = workspace::metadata(root)?;
    let target = metadata["target_directory"].as_str().context("no target directory")?;
    Ok(Path::new(target).join("release").join(format!("bindery{}", std::env::consts::EXE_SUFFIX)))
}

/// CPU time and peak memory in megabytes of one run.
fn measure(command: &mut Command) -> anyhow::Result<(Duration, f64)> {
    let before = CpuTime::of_self()?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child =
        command.spawn().with_context(|| format!("cannot start `{}`", step::shown(command)))?;
    let peak = peak_until_end(&mut child)?;
    // The stream holds recordings of failed runs; only a crash has no exit code.
    let status = child.wait()?;
    ensure!(status.code().is_some(), "`{}` was ended: {status}", step::shown(command));
    Ok((CpuTime::of_self()?.since(before).ended_children, peak))
}

/// The system keeps the peak while the process lives, so it is read until there is none.
fn peak_until_end(child: &mut Child) -> anyhow::Result<f64> {
    let mut peak = 0.0;
    while child.try_wait()?.is_none() {
        // It may be gone between the two looks.
        peak = memory::peak(child.id()).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(peak)
}

fn report(bytes: u64, times: &[Samples], memory: [f64; 3]) -> anyhow::Result<Report> {
    let megabytes = bytes as f64 / 1e6;
    let pace = |samples: &Samples| megabytes / (samples.median() / 1000.0);
    let mut table = Table::new(&["variant", "CPU ms", "MB per CPU s", "peak MB", "runs"]);
    let names = ["bindery map", "Node, parse and stringify", "Node, the npm package's mapper"];
    for ((name, samples), peak) in names.into_iter().zip(times).zip(memory) {
        table.rows.push(vec![
            name.to_owned(),
            format!("{:.0}", samples.median()),
            format!("{:.0}", pace(samples)),
            format!("{peak:.1}"),
            samples.values().len().to_string(),
        ]);
    }
    let ratio = Ratio::paired(&times[0], &times[1])?;
    let budget = format!("CPU time for {PACE} MB (at least {PACE} MB a second)");
    Ok(Report {
        title: format!("Mapping {megabytes:.0} MB of `codex exec --json`"),
        tables: vec![table],
        targets: vec![
            Target::milliseconds(&budget, PACE / pace(&times[0]) * 1000.0, 1000.0),
            Target::megabytes("peak memory", memory[0], MEMORY),
            Target::ratio("CPU time beside Node", ratio.median, 1.0 / LEAD),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_compare_pace_memory_and_lead() {
        let times =
            |ours: f64, nodes: f64| [ours, nodes, nodes].map(|ms| Samples::new(vec![ms]).unwrap());
        let report = report(200_000_000, &times(500.0, 2000.0), [19.0, 90.0, 99.0]);
        assert!(report.unwrap().met());
        let slow = super::report(200_000_000, &times(501.0, 2001.0), [21.0, 90.0, 99.0]);
        let met: Vec<_> = slow.unwrap().targets.iter().map(Target::met).collect();
        assert_eq!(met, [false, false, false]);
    }
}
