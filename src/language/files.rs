use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The files that the language may look at. It reads nothing by other ways, so that everything behind it is pure.
pub trait Files {
    /// The bytes of a regular file; at most `limit + 1` of them.
    ///
    /// # Errors
    /// When there is no such file, it is no regular file, or it may not be read.
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>>;

    /// True when something of this name exists: a file, a folder.
    fn exists(&self, path: &Path) -> bool;

    /// The names in a folder, sorted; none when it cannot be read.
    fn list(&self, folder: &Path) -> Vec<String>;

    /// The path without links and `..`.
    ///
    /// # Errors
    /// When nothing of this name exists.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
}

impl fmt::Debug for dyn Files + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        // Asked before opening: opening a pipe would wait for a writer.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn list(&self, folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }
}

/// Files that exist in memory only: path and text. For tests and for editors.
#[derive(Debug, Clone, Default)]
pub struct Memory(pub Vec<(PathBuf, Vec<u8>)>);

impl Memory {
    fn find(&self, path: &Path) -> Option<&[u8]> {
        let path = lexical(path);
        self.0
            .iter()
            .find(|(name, _)| lexical(name) == path)
            .map(|(_, bytes)| bytes.as_slice())
    }
}

/// The path without `.` and with `..` taken back.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

impl Files for Memory {
    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let bytes = self
            .find(path)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(bytes.iter().copied().take(limit.saturating_add(1)).collect())
    }

    fn exists(&self, path: &Path) -> bool {
        let path = lexical(path);
        self.0.iter().any(|(name, _)| lexical(name).starts_with(&path))
    }

    fn list(&self, folder: &Path) -> Vec<String> {
        let folder = lexical(folder);
        let inside = self
            .0
            .iter()
            .filter_map(|(name, _)| lexical(name).strip_prefix(&folder).ok().map(Path::to_path_buf));
        let mut names: Vec<String> = inside
            .filter_map(|path| Some(path.iter().next()?.to_string_lossy().into_owned()))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        if self.exists(path) {
            Ok(lexical(path))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}
