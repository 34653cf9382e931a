use std::path::{Path, PathBuf};
use std::{fs, io};

use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::Full;

use crate::report::{Document, Format, find_runs, render, render_index};

/// Folders of runs as a site: `/` lists them, `/<run>/` is the report, `/<run>/<file>` a file of its evidence.
pub(super) struct Site {
    root: PathBuf,
}

type Answer = Response<Full<Bytes>>;

impl Site {
    /// Fails when there is no such folder.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let root = folder.canonicalize()?;
        fs::read_dir(&root)?;
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Never fails: what cannot be answered is an answer too.
    pub(super) fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Answer {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET");
        }
        // A page of another site whose name resolves to 127.0.0.1 must not read the evidence.
        let host = headers
            .get(HOST)
            .and_then(|host| host.to_str().ok())
            .unwrap_or_default();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        if !matches!(name, "localhost" | "127.0.0.1") {
            return text(
                StatusCode::FORBIDDEN,
                "this site answers to localhost and 127.0.0.1 only",
            );
        }
        let Some(target) = self.resolve(path) else {
            return text(StatusCode::NOT_FOUND, "no such run or file");
        };
        if target.is_file() {
            return file(&target);
        }
        if !path.ends_with('/') {
            let mut answer = text(StatusCode::MOVED_PERMANENTLY, "");
            if let Ok(location) = format!("{path}/").parse() {
                answer.headers_mut().insert(LOCATION, location);
            }
            return answer;
        }
        match Document::read(&target) {
            Ok(document) => page(render(&document, Format::Html)),
            Err(error) if target.join("verdict.json").exists() => {
                text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
            }
            Err(_) => page(render_index(&find_runs(&target))),
        }
    }

    /// A path below the root, links included: what leads out of it is not there.
    fn resolve(&self, path: &str) -> Option<PathBuf> {
        let mut target = self.root.clone();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let part = decode(part)?;
            if part == ".." || part == "." || part.contains(['/', '\\', '\0']) {
                return None;
            }
            target.push(part);
        }
        let target = target.canonicalize().ok()?;
        target.starts_with(&self.root).then_some(target)
    }
}

/// Percent-decoding; `None` for what is no UTF-8 text.
fn decode(part: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
            bytes.push(u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Evidence is written by others: text stays text, whatever it contains.
fn file(path: &Path) -> Answer {
    let kind = match path.extension().and_then(|e| e.to_str()) {
        Some("json") => "application/json",
        Some("pcap" | "pcapng") => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    };
    match fs::read(path) {
        Ok(content) => respond(StatusCode::OK, kind, content),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn page(html: String) -> Answer {
    respond(StatusCode::OK, "text/html; charset=utf-8", html.into_bytes())
}

fn text(status: StatusCode, words: &str) -> Answer {
    respond(status, "text/plain; charset=utf-8", format!("{words}\n").into_bytes())
}

fn respond(status: StatusCode, kind: &'static str, content: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(content)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, http::HeaderValue::from_static("nosniff"));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:";
    headers.insert(CONTENT_SECURITY_POLICY, http::HeaderValue::from_static(policy));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> (tempfile::TempDir, Site) {
        let root = tempfile::tempdir().expect("a folder");
        let run = root.path().join("runs/20260101-000000/s2 a");
        fs::create_dir_all(&run).expect("a folder");
        fs::write(run.join("run.log"), "<script>").expect("a file");
        fs::write(root.path().join("secret"), "secret").expect("a file");
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path().join("secret"), run.join("link")).expect("a link");
        let site = Site::open(&root.path().join("runs")).expect("a site");
        (root, site)
    }

    fn get(site: &Site, path: &str, host: &str) -> (u16, String) {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().expect("a header"));
        let answer = site.answer(&Method::GET, path, &headers);
        let kind = answer.headers()[CONTENT_TYPE].to_str().expect("text").to_owned();
        (answer.status().as_u16(), kind)
    }

    #[test]
    fn runs_and_their_evidence_are_shown_and_nothing_else() {
        let (_root, site) = site();
        let here = "127.0.0.1:8080";
        assert_eq!(get(&site, "/", here), (200, "text/html; charset=utf-8".into()));
        assert_eq!(
            get(&site, "/20260101-000000/s2%20a/run.log", here),
            (200, "text/plain; charset=utf-8".into())
        );
        assert_eq!(get(&site, "/20260101-000000", here).0, 301);
        for path in [
            "/../secret",
            "/%2e%2e/secret",
            "/..%2fsecret",
            "/20260101-000000/s2%20a/link",
            "/absent",
            "/%ff",
        ] {
            assert_eq!(get(&site, path, here).0, 404, "{path}");
        }
    }

    #[test]
    fn a_foreign_page_and_a_change_are_refused() {
        let (_root, site) = site();
        assert_eq!(get(&site, "/", "evil.example:8080").0, 403);
        assert_eq!(get(&site, "/", "localhost").0, 200);
        let answer = site.answer(&Method::POST, "/", &HeaderMap::new());
        assert_eq!(answer.status().as_u16(), 405);
    }
}
