//! A container's log as the runtime writes it: `STAMP STREAM F|P TEXT`, nine digits in the stamp.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{SecondsFormat, Utc};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

/// Longest piece of a line that is written as one record, as containerd does.
const LONGEST: usize = 16 * 1024;

/// The log of one run of a container.
pub(crate) struct ContainerLog {
    path: PathBuf,
    file: Mutex<File>,
    written: watch::Sender<Written>,
}

/// How far a log has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes in the file; whole records only.
    pub(crate) bytes: u64,
    /// Whether no more will come.
    pub(crate) ended: bool,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// When the runtime read it.
    pub(crate) stamp: &'a str,
    /// Whether the line ends here.
    pub(crate) full: bool,
    /// What the container wrote, without the line's end.
    pub(crate) text: &'a [u8],
}

impl ContainerLog {
    /// A new file.
    ///
    /// # Errors
    /// The file system refuses.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Self {
            path,
            file: Mutex::new(file),
            written: watch::Sender::new(Written { bytes: 0, ended: false }),
        })
    }

    /// Tells how far it has got.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Written> {
        self.written.subscribe()
    }

    /// Reads a stream of the container to its end.
    pub(crate) async fn copy(self: Arc<Self>, stream: &'static str, mut from: impl AsyncRead + Unpin) {
        let mut line = Vec::new();
        let mut block = vec![0; LONGEST];
        while let Ok(size) = from.read(&mut block).await {
            if size == 0 {
                break;
            }
            for &byte in &block[..size] {
                if byte == b'\n' {
                    self.write(stream, true, &line);
                    line.clear();
                } else {
                    line.push(byte);
                    if line.len() == LONGEST {
                        self.write(stream, false, &line);
                        line.clear();
                    }
                }
            }
        }
        if !line.is_empty() {
            self.write(stream, false, &line);
        }
    }

    fn write(&self, stream: &str, full: bool, text: &[u8]) {
        let stamp = Utc::now().to_rfc3339_opts(SecondsFormat::Nanos, true);
        let mut record = format!("{stamp} {stream} {} ", if full { "F" } else { "P" }).into_bytes();
        record.extend_from_slice(text);
        record.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.write_all(&record).is_ok() {
            self.written.send_modify(|w| w.bytes += record.len() as u64);
        }
    }

    /// Nothing more will come.
    pub(crate) fn end(&self) {
        self.written.send_modify(|w| w.ended = true);
    }

    /// The bytes between two places of the file.
    ///
    /// # Errors
    /// The file is gone.
    pub(crate) fn read(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(to.saturating_sub(from)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The records in a piece of a log.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    bytes.split(|b| *b == b'\n').filter_map(|line| {
        let mut fields = line.splitn(4, |b| *b == b' ');
        let stamp = std::str::from_utf8(fields.next()?).ok()?;
        fields.next()?;
        let full = fields.next()? == b"F";
        Some(Record {
            stamp,
            full,
            text: fields.next()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_stamped_and_long_ones_are_cut() {
        let folder = tempfile::tempdir().expect("folder");
        let log = Arc::new(ContainerLog::create(folder.path().join("c/0.log")).expect("log"));
        let mut text = b"one\n".to_vec();
        text.extend(vec![b'x'; LONGEST + 3]);
        text.extend(b"\nlast");
        Arc::clone(&log).copy("stdout", text.as_slice()).await;
        let written = *log.subscribe().borrow();
        let bytes = log.read(0, written.bytes).expect("read");
        let seen: Vec<_> = records(&bytes).map(|r| (r.full, r.text.len(), r.stamp.len())).collect();
        assert_eq!(
            seen,
            [(true, 3, 30), (false, LONGEST, 30), (true, 3, 30), (false, 4, 30)]
        );
        assert!(!written.ended);
    }
}
