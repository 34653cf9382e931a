//! Reads `haproxy.cfg`.

use std::collections::HashMap;

use super::words::split;
use super::{Backend, Frontend, HaproxyConfig, LogFormat, Server};
use crate::evidence::{FileId, Note, NoteKind, Place};
use crate::time::Duration;

/// Servers of one `server-template`; more are not in one configuration.
const TEMPLATE_LIMIT: u32 = 1024;

/// Reads a configuration, also one of several files put one after the other.
///
/// What is not known is passed over: the configuration has been accepted by HAProxy, or was not its own.
pub fn parse(text: &str, file: FileId) -> (HaproxyConfig, Vec<Note>) {
    let mut reader = Reader {
        config: HaproxyConfig {
            file,
            log_formats: Vec::new(),
            backends: Vec::new(),
            frontends: Vec::new(),
            timeout_client: None,
        },
        named: HashMap::new(),
        defaults: Settings::default(),
        section: Section::Other,
        notes: Vec::new(),
        file,
    };
    for (number, line) in (1u32..).zip(text.lines()) {
        let words = split(line);
        if let Some((keyword, rest)) = words.split_first() {
            let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
            reader.line(number, keyword, &rest);
        }
    }
    reader.close();
    if reader.config.backends.is_empty() {
        reader.note(0, "no backend with servers was found");
    }
    (reader.config, reader.notes)
}

/// What `defaults` may set.
#[derive(Debug, Clone, Default)]
struct Settings {
    log_format: Option<LogFormat>,
    tcp: bool,
    timeout_client: Option<Duration>,
    timeout_server: Option<Duration>,
    check_path: Option<String>,
    disable_on_404: bool,
    redispatch: bool,
    abort_on_close: bool,
    log_health_checks: bool,
    retry_on: Vec<String>,
    retries: Option<u32>,
    default_backend: Option<String>,
    server: Vec<String>,
}

enum Section {
    Global,
    Defaults {
        name: Option<String>,
    },
    Proxy {
        name: String,
        frontend: bool,
        backend: bool,
        settings: Box<Settings>,
        servers: Vec<Server>,
    },
    Other,
}

struct Reader {
    config: HaproxyConfig,
    named: HashMap<String, Settings>,
    defaults: Settings,
    section: Section,
    notes: Vec<Note>,
    file: FileId,
}

impl Reader {
    fn note(&mut self, line: u32, text: impl Into<String>) {
        if self.notes.len() < 20 {
            self.notes.push(Note {
                place: Some(Place { file: self.file, line }),
                kind: NoteKind::Remark,
                text: text.into(),
            });
        }
    }

    fn line(&mut self, number: u32, keyword: &str, rest: &[&str]) {
        // `defaults NAME`, `backend NAME from DEFAULTS`.
        let name = rest.first().filter(|n| **n != "from").map(|n| (*n).to_owned());
        let from = rest.iter().position(|w| *w == "from").and_then(|i| rest.get(i + 1));
        match keyword {
            "global" => {
                self.close();
                self.section = Section::Global;
                return;
            }
            "defaults" => {
                self.close();
                self.defaults = from.and_then(|f| self.named.get(*f)).cloned().unwrap_or_default();
                self.section = Section::Defaults { name };
                return;
            }
            "frontend" | "backend" | "listen" => {
                self.close();
                let settings = from.and_then(|f| self.named.get(*f)).unwrap_or(&self.defaults).clone();
                self.section = Section::Proxy {
                    name: name.unwrap_or_default(),
                    frontend: keyword != "backend",
                    backend: keyword != "frontend",
                    settings: Box::new(settings),
                    servers: Vec::new(),
                };
                return;
            }
            "resolvers" | "peers" | "userlist" | "cache" | "mailers" | "ring" | "program" | "http-errors"
            | "fcgi-app" | "log-forward" | "log-profile" | "crt-store" | "traces" | "acme" => {
                self.close();
                self.section = Section::Other;
                return;
            }
            _ => {}
        }
        match &mut self.section {
            Section::Global => {
                if keyword == "log" {
                    self.config.log_formats.push(log_target(rest));
                }
            }
            Section::Defaults { .. } => {
                set(&mut self.defaults, keyword, rest);
            }
            Section::Proxy { settings, servers, .. } => {
                if keyword == "log" && rest.first().is_some_and(|t| *t != "global") {
                    self.config.log_formats.push(log_target(rest));
                } else if keyword == "server" && rest.len() >= 2 {
                    servers.push(server(rest[0], rest[1], &settings.server, &rest[2..]));
                } else if keyword == "server-template" && rest.len() >= 3 {
                    let template = template(rest, &settings.server);
                    servers.extend(template);
                } else if !set(settings, keyword, rest) && keyword == "default_backend" {
                    self.note(number, "default_backend without a name");
                }
            }
            Section::Other => {}
        }
    }

    fn close(&mut self) {
        match std::mem::replace(&mut self.section, Section::Other) {
            Section::Global | Section::Other => {}
            Section::Defaults { name } => {
                if let Some(name) = name {
                    self.named.insert(name, self.defaults.clone());
                }
            }
            Section::Proxy {
                name,
                frontend,
                backend,
                settings,
                servers,
            } => {
                if frontend {
                    self.config.timeout_client = self.config.timeout_client.or(settings.timeout_client);
                    self.config.frontends.push(Frontend {
                        name: name.clone(),
                        log_format: settings.log_format.clone().unwrap_or(LogFormat::Default),
                        default_backend: settings.default_backend.clone().or(backend.then(|| name.clone())),
                    });
                }
                if backend && !servers.is_empty() {
                    self.config.backends.push(Backend {
                        name,
                        timeout_server: settings.timeout_server,
                        check_path: settings.check_path,
                        disable_on_404: settings.disable_on_404,
                        redispatch: settings.redispatch,
                        abort_on_close: settings.abort_on_close,
                        log_health_checks: settings.log_health_checks,
                        retry_on: settings.retry_on,
                        retries: settings.retries,
                        servers,
                    });
                }
            }
        }
    }
}

/// `log 127.0.0.1:514 format rfc5424 local0`: the format, rfc3164 when not given.
fn log_target(rest: &[&str]) -> String {
    rest.iter()
        .position(|w| *w == "format")
        .and_then(|i| rest.get(i + 1))
        .map_or("rfc3164", |f| f)
        .to_owned()
}

/// One setting that `defaults` and proxies share; false when it is none.
fn set(s: &mut Settings, keyword: &str, rest: &[&str]) -> bool {
    // `no option redispatch`.
    let (on, keyword, rest) = match (keyword, rest) {
        ("no", [keyword, rest @ ..]) => (false, *keyword, rest),
        _ => (true, keyword, rest),
    };
    match (keyword, rest) {
        ("mode", [mode, ..]) => s.tcp = *mode == "tcp",
        ("log-format", [format, ..]) => s.log_format = Some(LogFormat::Custom((*format).to_owned())),
        ("option", ["httplog", ..]) if on => s.log_format = Some(LogFormat::HttpLog),
        ("option", ["httpslog", ..]) if on => s.log_format = Some(LogFormat::HttpsLog),
        ("option", ["tcplog", ..]) if on => s.log_format = Some(LogFormat::TcpLog),
        ("option", ["redispatch", ..]) => s.redispatch = on,
        ("option", ["abortonclose", ..]) => s.abort_on_close = on,
        ("option", ["log-health-checks", ..]) => s.log_health_checks = on,
        ("option", ["httpchk", rest @ ..]) if on => {
            // `httpchk`, `httpchk URI`, `httpchk METHOD URI [VERSION]`.
            s.check_path = rest.iter().find(|w| w.starts_with('/')).map(|w| (*w).to_owned());
        }
        ("http-check", ["disable-on-404", ..]) => s.disable_on_404 = on,
        ("http-check", ["send", rest @ ..]) => {
            if let Some(i) = rest.iter().position(|w| *w == "uri")
                && let Some(uri) = rest.get(i + 1)
            {
                s.check_path = Some((*uri).to_owned());
            }
        }
        ("retry-on", words) => s.retry_on = words.iter().map(|w| (*w).to_owned()).collect(),
        ("retries", [n, ..]) => s.retries = n.parse().ok(),
        ("timeout", ["client", t, ..]) => s.timeout_client = duration(t),
        ("timeout", ["server", t, ..]) => s.timeout_server = duration(t),
        ("default_backend", [name, ..]) => s.default_backend = Some((*name).to_owned()),
        ("default-server", words) => s.server.extend(words.iter().map(|w| (*w).to_owned())),
        _ => return false,
    }
    true
}

/// A time of HAProxy: milliseconds without a unit; `us, ms, s, m, h, d`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: i64 = text[..digits].parse().ok()?;
    let nanos: i64 = match &text[digits..] {
        "us" => 1_000,
        "" | "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    number.checked_mul(nanos).map(Duration::from_nanos)
}

/// `prefix 1-3 address [options]` or `prefix 3 address [options]`.
fn template(rest: &[&str], defaults: &[String]) -> Vec<Server> {
    let range: Option<(u32, u32)> = match rest[1].split_once('-') {
        Some((a, b)) => a.parse().ok().zip(b.parse().ok()),
        None => rest[1].parse().ok().map(|n| (1, n)),
    };
    let Some((first, last)) = range else {
        return Vec::new();
    };
    (first..=last.min(first.saturating_add(TEMPLATE_LIMIT)))
        .map(|i| server(&format!("{}{i}", rest[0]), rest[2], defaults, &rest[3..]))
        .collect()
}

fn server(name: &str, address: &str, defaults: &[String], options: &[&str]) -> Server {
    let mut s = Server {
        name: name.to_owned(),
        // `ipv4@10.0.0.1:80`; a host's name has no address here.
        address: address
            .strip_prefix("ipv4@")
            .or_else(|| address.strip_prefix("ipv6@"))
            .unwrap_or(address)
            .parse()
            .ok(),
        check: false,
        inter: Duration::from_secs(2),
        fastinter: None,
        downinter: None,
        fall: 3,
        rise: 2,
        shutdown_sessions: false,
        agent_check: false,
        h2: false,
    };
    let words: Vec<&str> = defaults
        .iter()
        .map(String::as_str)
        .chain(options.iter().copied())
        .collect();
    let mut i = 0;
    while i < words.len() {
        let value = words.get(i + 1).copied().unwrap_or_default();
        let mut used = 2;
        match words[i] {
            "inter" => s.inter = duration(value).unwrap_or(s.inter),
            "fastinter" => s.fastinter = duration(value),
            "downinter" => s.downinter = duration(value),
            "fall" => s.fall = value.parse().unwrap_or(s.fall),
            "rise" => s.rise = value.parse().unwrap_or(s.rise),
            "on-marked-down" => s.shutdown_sessions = value == "shutdown-sessions",
            "proto" => s.h2 = value == "h2",
            word => {
                used = 1;
                match word {
                    "check" => s.check = true,
                    "no-check" => s.check = false,
                    "agent-check" => s.agent_check = true,
                    "no-agent-check" => s.agent_check = false,
                    _ => {}
                }
            }
        }
        i += used;
    }
    s
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn config(text: &str) -> HaproxyConfig {
        parse(text, FileId(0)).0
    }

    #[test]
    fn defaults_default_servers_and_templates() {
        let c = config(
            r#"
global
    log stdout format iso local0
    log 127.0.0.1:514 local0
defaults base
    mode http
    option httplog
    option redispatch
    timeout server 50000
    timeout client 5m
    default-server inter 3s fall 2 on-marked-down shutdown-sessions   # for all
frontend fe
    bind :80
    log-format "%ci:%cp [%tr] \"%r\" # not a comment"
    default_backend be
backend be from base
    no option redispatch
    option httpchk GET /health_check.html
    http-check disable-on-404
    retry-on conn-failure empty-response
    server w1 10.77.0.11:8080 check rise 3 fastinter 500ms proto h2
    server w2 host.example:8080 no-check inter 1500
    server-template t 2-3 [::1]:80 check agent-check
listen both
    mode tcp
    option tcplog
    server x 10.0.0.1:1
"#,
        );
        assert_eq!(c.log_formats, ["iso", "rfc3164"]);
        assert_eq!(c.timeout_client, Some(Duration::from_secs(300)));
        assert_eq!(c.frontends.len(), 2);
        assert_eq!(
            c.frontends[0].log_format,
            LogFormat::Custom(r#"%ci:%cp [%tr] "%r" # not a comment"#.into())
        );
        assert_eq!(c.frontends[1].log_format, LogFormat::TcpLog);
        let be = &c.backends[0];
        assert_eq!((be.redispatch, be.disable_on_404), (false, true));
        assert_eq!(be.check_path.as_deref(), Some("/health_check.html"));
        assert_eq!(be.timeout_server, Some(Duration::from_secs(50)));
        assert_eq!(be.retry_on, ["conn-failure", "empty-response"]);
        let w1 = &be.servers[0];
        assert_eq!(
            (w1.inter, w1.fall, w1.rise, w1.check, w1.h2),
            (Duration::from_secs(3), 2, 3, true, true)
        );
        assert!(w1.shutdown_sessions && w1.address.is_some());
        assert_eq!(be.servers[1].inter, Duration::from_millis(1500));
        assert_eq!((be.servers[1].check, be.servers[1].address), (false, None));
        let names: Vec<_> = be.servers.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["w1", "w2", "t2", "t3"]);
        assert_eq!(
            (c.backends[1].name.as_str(), c.backends[1].servers[0].fall),
            ("both", 2)
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "((global|defaults|frontend|backend|listen|server|server-template|timeout|option|no) ?[ -~é]{0,40}\n){0,8}") {
            let _ = config(&text);
        }
    }
}
