//! Lines on failing disks, after deaths, and in files of others.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;

/// A disk with so much room left.
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Arc<Mutex<usize>>,
}

impl Sink for Disk {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut room = self.room.lock().unwrap();
        let count = bytes.len().min(*room);
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        *room -= count;
        self.bytes.lock().unwrap().extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn clock() -> Clock {
    Clock::of(|| 1_794_773_678_993)
}

fn event(text: &str) -> Record {
    Record::Event(json!({ "type": "agent_message", "message": text }))
}

fn numbers(bytes: &[u8]) -> Vec<Option<u64>> {
    let mut records = Records::new(bytes, Limits::default());
    let mut numbers = Vec::new();
    while let Some(record) = records.next().unwrap() {
        let line = Envelope::read(&record).ok();
        let line = line.filter(|line| line.payload::<IgnoredAny>().is_ok());
        numbers.push(line.and_then(|line| line.ordinal));
    }
    numbers
}

fn recorder(home: &Path) -> Recorder {
    Recorder::create(home, &Meta::new("01a1e0d8-fa58-7c30-8b28-2a498ba7d4be", "/p"), clock())
        .unwrap()
}

#[test]
fn what_a_full_disk_cuts_is_ended_and_never_counted() {
    let whole = event("one").line(&clock().stamp(), Some(1)).len();
    // A full disk may strike at every byte of a line.
    for room in 0..=whole {
        let home = tempfile::tempdir().unwrap();
        let mut recorder = recorder(home.path());
        let (bytes, left) = (Arc::default(), Arc::new(Mutex::new(room)));
        recorder.out = Arc::new(Disk { bytes: Arc::clone(&bytes), room: Arc::clone(&left) });
        let first = recorder.record(&event("one"));
        // All but the line feed is as good as all.
        assert_eq!(first.is_ok(), room + 1 >= whole, "{room}");
        if let Err(error) = first {
            assert_eq!(error.code(), "record");
            assert!(error.hint().unwrap().contains("make room"));
        }
        *left.lock().unwrap() = usize::MAX;
        recorder.record(&event("two")).unwrap();
        let bytes = bytes.lock().unwrap();
        let want: &[Option<u64>] = match room {
            0 => &[Some(1)],
            room if room + 1 >= whole => &[Some(1), Some(2)],
            _ => &[None, Some(1)],
        };
        assert_eq!(numbers(&bytes), want, "{room}");
        assert_eq!(bytes.last(), Some(&b'\n'));
    }
}

#[test]
fn a_line_that_an_earlier_writer_left_half_is_ended() {
    let home = tempfile::tempdir().unwrap();
    let mut first = recorder(home.path());
    first.record(&event("one")).unwrap();
    first.sync().unwrap();
    let path = first.path().to_owned();
    let before = fs::read(&path).unwrap();
    drop(first);
    for half in ["{\"timestamp\":\"2026", "{", "\u{0}\u{0}"] {
        let torn = [&before[..], half.as_bytes()].concat();
        fs::write(&path, &torn).unwrap();
        let mut second = Recorder::append(home.path(), &path, clock()).unwrap();
        // Nothing is written before there is something to write.
        assert_eq!(fs::read(&path).unwrap(), torn);
        second.record(&event("two")).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(&torn));
        assert_eq!(numbers(&bytes), [Some(0), Some(1), None, Some(2)]);
    }
    // A whole line that only lacks its end counts.
    let whole = &before[..before.len() - 1];
    fs::write(&path, whole).unwrap();
    let mut second = Recorder::append(home.path(), &path, clock()).unwrap();
    second.record(&event("two")).unwrap();
    assert_eq!(numbers(&fs::read(&path).unwrap()), [Some(0), Some(1), Some(2)]);
}

#[test]
fn the_last_number_is_found_behind_a_long_line() {
    let home = tempfile::tempdir().unwrap();
    let mut first = recorder(home.path());
    first.record(&event(&"x".repeat(3 << 20))).unwrap();
    let path = first.path().to_owned();
    drop(first);
    let mut out = OpenOptions::new().append(true).open(&path).unwrap();
    Write::write_all(&mut out, "{\"torn\":\"".as_bytes()).unwrap();
    Write::write_all(&mut out, "y".repeat(1 << 20).as_bytes()).unwrap();
    let mut second = Recorder::append(home.path(), &path, clock());
    if let Err(Error::Held { .. }) = second {
        drop(out);
        second = Recorder::append(home.path(), &path, clock());
    }
    let mut second = second.unwrap();
    second.record(&event("two")).unwrap();
    assert_eq!(numbers(&fs::read(&path).unwrap()), [Some(0), Some(1), None, Some(2)]);
}

#[test]
fn legacy_lines_have_no_numbers() {
    let home = tempfile::tempdir().unwrap();
    let mut meta = Meta::new("01a1e0d8-fa58-7c30-8b28-2a498ba7d4be", "/p");
    meta.format = Format::Legacy;
    let mut first = Recorder::create(home.path(), &meta, clock()).unwrap();
    first.record(&event("one")).unwrap();
    let path = first.path().to_owned();
    drop(first);
    let mut second = Recorder::append(home.path(), &path, clock()).unwrap();
    assert_eq!((second.format(), second.thread()), (Format::Legacy, meta.id.as_str()));
    second.record(&event("two")).unwrap();
    assert_eq!(numbers(&fs::read(&path).unwrap()), [None; 3]);
}

#[test]
fn what_cannot_be_continued_says_so() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("rollout-x.jsonl");
    #[rustfmt::skip]
    let table = [
        ("",                                                        "it is empty"),
        ("{\"id\":\"a\",\"timestamp\":\"2026\"}\n",                 "it is of Codex 0.29 or older"),
        ("half",                                                    "its first line is broken"),
        ("{\"timestamp\":\"t\",\"type\":\"x\",\"payload\":{}}\n",   "it does not begin with `session_meta`"),
    ];
    for (text, why) in table {
        fs::write(&path, text).unwrap();
        let error = Recorder::append(home.path(), &path, clock()).unwrap_err();
        assert!(error.to_string().ends_with(why), "{error}");
    }
}

#[test]
fn a_thread_is_begun_once() {
    let home = tempfile::tempdir().unwrap();
    let first = recorder(home.path());
    let meta = Meta::new(first.thread(), "/p");
    let error = Recorder::create(home.path(), &meta, clock()).unwrap_err();
    assert_eq!(error.code(), "held");
    let error = Recorder::append(home.path(), first.path(), clock()).unwrap_err();
    assert_eq!(error.code(), "held");
    drop(first);
    let error = Recorder::create(home.path(), &meta, clock()).unwrap_err();
    assert!(error.hint().unwrap().contains("exists"));
}

/// A disk that counts how often it was waited for, and fails when told so.
#[derive(Default)]
struct Slow {
    waits: AtomicUsize,
    fails: AtomicBool,
}

impl Sink for Slow {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.waits.fetch_add(1, Ordering::SeqCst);
        match self.fails.load(Ordering::SeqCst) {
            true => Err(io::Error::other("the disk is gone")),
            false => Ok(()),
        }
    }
}

fn on_slow_disk(home: &Path) -> (Recorder, Arc<Slow>) {
    let (mut recorder, disk) = (recorder(home), Arc::new(Slow::default()));
    recorder.out = Arc::<Slow>::clone(&disk);
    (recorder, disk)
}

#[test]
fn the_disk_is_waited_for_once_for_all_that_came_before() {
    let home = tempfile::tempdir().unwrap();
    let (mut recorder, disk) = on_slow_disk(home.path());
    let sync = recorder.sync_later().unwrap().unwrap();
    assert!(recorder.sync_later().unwrap().is_none());
    assert_eq!(disk.waits.load(Ordering::SeqCst), 0);
    sync.run();
    assert_eq!(disk.waits.load(Ordering::SeqCst), 1);
    recorder.sync_later().unwrap().unwrap().run();
    drop(recorder);
    assert_eq!(disk.waits.load(Ordering::SeqCst), 2);
}

#[test]
fn a_recorder_that_goes_waits_for_what_is_owed_and_nobody_has_its_file() {
    let home = tempfile::tempdir().unwrap();
    let (mut recorder, disk) = on_slow_disk(home.path());
    let sync = recorder.sync_later().unwrap().unwrap();
    drop(recorder);
    assert_eq!(disk.waits.load(Ordering::SeqCst), 1);
    assert_eq!(Arc::strong_count(&disk), 1);
    sync.run();
    assert_eq!(disk.waits.load(Ordering::SeqCst), 1);
}

#[test]
fn a_disk_that_failed_later_is_told_of_at_the_next_sync() {
    let home = tempfile::tempdir().unwrap();
    let (mut recorder, disk) = on_slow_disk(home.path());
    disk.fails.store(true, Ordering::SeqCst);
    recorder.sync_later().unwrap().unwrap().run();
    disk.fails.store(false, Ordering::SeqCst);
    let error = recorder.sync_later().err().unwrap();
    assert_eq!(error.code(), "record");
    assert!(recorder.sync_later().unwrap().is_some());
}
