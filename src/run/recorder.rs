//! The files of a run: appended to as things happen, readable at any moment, secrets replaced.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::time::Instant;

/// What stands for a secret.
const REDACTED: &[u8] = b"[redacted]";

/// Where progress is shown besides `run.log`.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// Writes a run's files; clones write the same ones.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Inner>>);

struct Inner {
    store: Store,
    /// Texts to replace, the longest first.
    secrets: Vec<Vec<u8>>,
    /// The first failure to write.
    fault: Option<String>,
    /// Tag of the lines of `run.log`.
    tag: String,
    started: Instant,
    progress: Option<Progress>,
}

enum Store {
    /// A folder, and its open files.
    Folder(PathBuf, BTreeMap<String, File>),
    /// The memory, for worlds by the thousand.
    Memory(BTreeMap<String, Vec<u8>>),
}

impl Recorder {
    /// Into a folder that exists.
    pub fn folder(path: &Path, tag: &str, started: Instant, progress: Option<Progress>) -> Self {
        Self::new(Store::Folder(path.to_owned(), BTreeMap::new()), tag, started, progress)
    }

    /// Into the memory.
    pub fn memory(tag: &str, started: Instant) -> Self {
        Self::new(Store::Memory(BTreeMap::new()), tag, started, None)
    }

    fn new(store: Store, tag: &str, started: Instant, progress: Option<Progress>) -> Self {
        let inner = Inner {
            store,
            secrets: Vec::new(),
            fault: None,
            tag: tag.to_owned(),
            started,
            progress,
        };
        Self(Arc::new(Mutex::new(inner)))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Texts that are replaced wherever they would be written, also as they stand in JSON.
    pub fn hide(&self, secrets: &[String]) {
        let mut inner = self.inner();
        for secret in secrets.iter().filter(|s| !s.is_empty()) {
            let quoted = serde_json::Value::from(secret.as_str()).to_string();
            let in_json = quoted.trim_matches('"').as_bytes().to_vec();
            inner.secrets.push(secret.as_bytes().to_vec());
            inner.secrets.push(in_json);
        }
        inner.secrets.sort_by_key(|s| std::cmp::Reverse(s.len()));
        inner.secrets.dedup();
    }

    /// Appends to a file; what is written is with the operating system when this returns.
    pub fn append(&self, name: &str, bytes: &[u8]) {
        let mut inner = self.inner();
        let bytes = inner.redacted(bytes);
        inner.append(name, &bytes);
    }

    /// Appends a line.
    pub fn line(&self, name: &str, text: &[u8]) {
        let mut line = Vec::with_capacity(text.len() + 1);
        line.extend_from_slice(text);
        line.push(b'\n');
        self.append(name, &line);
    }

    /// Appends a record as one line of JSON.
    pub fn record(&self, name: &str, record: &impl Serialize) {
        match serde_json::to_vec(record) {
            Ok(line) => self.line(name, &line),
            Err(error) => self.inner().fail(name, &error.to_string()),
        }
    }

    /// Replaces a file as a whole: a reader sees the old one or the new one.
    pub fn replace(&self, name: &str, bytes: &[u8]) {
        let mut inner = self.inner();
        let bytes = inner.redacted(bytes);
        inner.replace(name, &bytes);
    }

    /// Replaces a file by a record as JSON for people.
    pub fn replace_json(&self, name: &str, record: &impl Serialize) {
        match serde_json::to_vec_pretty(record) {
            Ok(mut text) => {
                text.push(b'\n');
                self.replace(name, &text);
            }
            Err(error) => self.inner().fail(name, &error.to_string()),
        }
    }

    /// Makes sure that a file's bytes survive a power failure.
    pub fn sync(&self, name: &str) {
        let mut inner = self.inner();
        if let Store::Folder(_, files) = &inner.store
            && let Some(file) = files.get(name)
            && let Err(error) = file.sync_data()
        {
            inner.fail(name, &error.to_string());
        }
    }

    /// Tells a person what happens, in `run.log` and on the terminal.
    pub fn say(&self, at: Instant, text: &str) {
        let mut inner = self.inner();
        let text = String::from_utf8_lossy(&inner.redacted(text.as_bytes())).into_owned();
        let stamp = at.to_utc().format("%Y-%m-%dT%H:%M:%S%.3fZ");
        let mut shown = String::new();
        let mut log = String::new();
        let since = (at - inner.started).as_secs_f64();
        for line in text.lines() {
            log.push_str(&format!("{stamp} [{}] {line}\n", inner.tag));
            shown.push_str(&format!("{since:>9.3}s  {line}\n"));
        }
        inner.append("run.log", log.as_bytes());
        let progress = inner.progress.clone();
        drop(inner);
        if let Some(progress) = progress {
            progress(&shown);
        }
    }

    /// A text with the secrets replaced.
    pub fn redact(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.inner().redacted(text.as_bytes())).into_owned()
    }

    /// The first failure to write, once.
    pub fn take_fault(&self) -> Option<String> {
        self.inner().fault.take()
    }

    /// What was written, when it was written into the memory.
    pub fn take_memory(&self) -> BTreeMap<String, Vec<u8>> {
        match &mut self.inner().store {
            Store::Folder(..) => BTreeMap::new(),
            Store::Memory(files) => std::mem::take(files),
        }
    }
}

impl Inner {
    fn redacted<'a>(&self, bytes: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
        let mut out = std::borrow::Cow::Borrowed(bytes);
        for secret in &self.secrets {
            if memchr::memmem::find(&out, secret).is_none() {
                continue;
            }
            let mut clean = Vec::with_capacity(out.len());
            let mut rest: &[u8] = &out;
            while let Some(at) = memchr::memmem::find(rest, secret) {
                clean.extend_from_slice(&rest[..at]);
                clean.extend_from_slice(REDACTED);
                rest = &rest[at + secret.len()..];
            }
            clean.extend_from_slice(rest);
            out = clean.into();
        }
        out
    }

    fn fail(&mut self, name: &str, why: &str) {
        if self.fault.is_none() {
            self.fault = Some(format!("cannot write {name}: {why}"));
        }
    }

    fn append(&mut self, name: &str, bytes: &[u8]) {
        let written = match &mut self.store {
            Store::Memory(files) => {
                files.entry(name.to_owned()).or_default().extend_from_slice(bytes);
                Ok(())
            }
            Store::Folder(path, files) => open(path, files, name).and_then(|file| file.write_all(bytes)),
        };
        if let Err(error) = written {
            self.fail(name, &error.to_string());
        }
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) {
        let written = match &mut self.store {
            Store::Memory(files) => {
                files.insert(name.to_owned(), bytes.to_vec());
                Ok(())
            }
            Store::Folder(path, files) => {
                files.remove(name);
                put(path, name, bytes)
            }
        };
        if let Err(error) = written {
            self.fail(name, &error.to_string());
        }
    }
}

/// The file, opened for appending when it was not yet.
fn open<'a>(path: &Path, files: &'a mut BTreeMap<String, File>, name: &str) -> io::Result<&'a mut File> {
    if !files.contains_key(name) {
        let file = OpenOptions::new().create(true).append(true).open(path.join(name))?;
        files.insert(name.to_owned(), file);
    }
    files
        .get_mut(name)
        .ok_or_else(|| io::Error::other("it was opened and is gone"))
}

fn put(path: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let part = path.join(format!(".{name}.part"));
    let mut file = File::create(&part)?;
    file.write_all(bytes)?;
    drop(file);
    fs::rename(part, path.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_everywhere_also_in_json() {
        let start = Instant::from_nanos(0);
        let recorder = Recorder::memory("s2", start);
        recorder.hide(&["to\"ken".to_owned(), String::new()]);
        recorder.append("raw", b"a to\"ken b to\"ken");
        recorder.record("json", &serde_json::json!({"x": "to\"ken"}));
        recorder.say(start, "uses to\"ken");
        let files = recorder.take_memory();
        let text = |name: &str| String::from_utf8_lossy(&files[name]).into_owned();
        assert_eq!(text("raw"), "a [redacted] b [redacted]");
        assert_eq!(text("json"), "{\"x\":\"[redacted]\"}\n");
        assert_eq!(text("run.log"), "1970-01-01T00:00:00.000Z [s2] uses [redacted]\n");
    }

    #[test]
    fn what_was_appended_is_on_disk_at_once() {
        let home = tempfile::tempdir().expect("a folder");
        let recorder = Recorder::folder(home.path(), "s2", Instant::from_nanos(0), None);
        recorder.line("hc.log", b"one");
        assert_eq!(fs::read(home.path().join("hc.log")).expect("there"), b"one\n");
        recorder.replace("run.json", b"{}");
        recorder.line("hc.log", b"two");
        assert_eq!(fs::read(home.path().join("hc.log")).expect("there"), b"one\ntwo\n");
        assert_eq!(recorder.take_fault(), None);
    }

    #[test]
    fn a_failure_to_write_is_told() {
        let recorder = Recorder::folder(Path::new("/nonexistent/run"), "s2", Instant::from_nanos(0), None);
        recorder.line("hc.log", b"one");
        let fault = recorder.take_fault().expect("a fault");
        assert!(fault.starts_with("cannot write hc.log: "), "{fault}");
    }
}
