//! `show stat`: the rows of the statistics, in the columns of each version.
//!
//! The columns and what stands in the many that never change come from real snapshots of idle processes, one file a
//! version; the model fills in what it knows.

use std::fmt::Write;
use std::sync::OnceLock;

use super::super::model::Model;
use super::super::network::FIRST_WORKER;
use super::super::spec::Version;
use super::{Admin, Counters, Process, Server};
use crate::time::{Duration, Instant};

/// A row as a sequence of fixed text and values.
type Row<G> = Vec<Piece<G>>;

enum Piece<G> {
    Text(String),
    Value(G),
}

/// Appends a value of a server's row.
type OfServer = for<'a, 'v> fn(&'v ServerView<'a>, &mut String);

/// Appends a value of a proxy's row.
type OfProxy = for<'a, 'v> fn(&'v ProxyView<'a>, &mut String);

/// The layout of a version.
struct Layout {
    header: String,
    frontend: Row<OfProxy>,
    server: Row<OfServer>,
    backend: Row<OfProxy>,
}

/// What a row of a proxy shows.
struct ProxyView<'a> {
    model: &'a Model,
    process: &'a Process,
    counters: &'a Counters,
    /// On the load balancer's clock, and how far that is ahead.
    now: Instant,
    offset: Duration,
}

/// What a row of a server shows.
struct ServerView<'a> {
    model: &'a Model,
    server: &'a Server,
    index: usize,
    /// On the load balancer's clock, and how far that is ahead.
    now: Instant,
    offset: Duration,
}

fn put(out: &mut String, value: impl std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{value}");
}

/// Whole seconds of the clock from then to now, as HAProxy subtracts them: both cut first.
fn seconds(now: Instant, then: Instant, offset: Duration) -> i64 {
    let then = then + offset;
    now.as_nanos().div_euclid(1_000_000_000) - then.as_nanos().div_euclid(1_000_000_000)
}

fn last_session(counters: &Counters, now: Instant, offset: Duration, out: &mut String) {
    put(out, counters.last_session.map_or(-1, |at| seconds(now, at, offset)));
}

const SERVER: &[(&str, OfServer)] = &[
    ("pxname", |v, o| o.push_str(&v.model.spec.names.backend)),
    ("svname", |v, o| o.push_str(&v.server.name)),
    ("scur", |v, o| put(o, v.server.counters.scur)),
    ("smax", |v, o| put(o, v.server.counters.smax)),
    ("stot", |v, o| put(o, v.server.counters.stot)),
    ("bin", |v, o| put(o, v.server.counters.bin)),
    ("bout", |v, o| put(o, v.server.counters.bout)),
    ("econ", |v, o| put(o, v.server.counters.econ)),
    ("eresp", |v, o| put(o, v.server.counters.eresp)),
    ("wretr", |v, o| put(o, v.server.counters.wretr)),
    ("wredis", |v, o| put(o, v.server.counters.wredis)),
    ("status", |v, o| status(v, o)),
    ("chkfail", |v, o| put(o, v.server.chkfail)),
    ("chkdown", |v, o| put(o, v.server.chkdown)),
    ("lastchg", |v, o| put(o, seconds(v.now, v.server.changed, v.offset))),
    ("downtime", |v, o| {
        let open = if v.server.up {
            0
        } else {
            seconds(v.now, v.server.changed, v.offset)
        };
        put(o, v.server.downtime.as_nanos() / 1_000_000_000 + open);
    }),
    ("sid", |v, o| put(o, v.index + 1)),
    ("lbtot", |v, o| put(o, v.server.counters.stot)),
    ("check_status", |v, o| {
        if v.server.admin != Admin::Maint {
            if v.server.running.is_some() {
                o.push_str("* ");
            }
            o.push_str(v.server.last_check.status);
        }
    }),
    ("check_code", |v, o| {
        if v.server.admin == Admin::Maint {
            return;
        }
        match (v.server.running.is_some(), v.server.last_check.code) {
            (true, Some(_)) => o.push('0'),
            (false, Some(code)) => put(o, code),
            (_, None) => {}
        }
    }),
    ("check_duration", |v, o| put(o, v.server.last_check.took)),
    ("hrsp_1xx", |v, o| put(o, v.server.counters.hrsp[0])),
    ("hrsp_2xx", |v, o| put(o, v.server.counters.hrsp[1])),
    ("hrsp_3xx", |v, o| put(o, v.server.counters.hrsp[2])),
    ("hrsp_4xx", |v, o| put(o, v.server.counters.hrsp[3])),
    ("hrsp_5xx", |v, o| put(o, v.server.counters.hrsp[4])),
    ("hrsp_other", |v, o| put(o, v.server.counters.hrsp[5])),
    ("req_tot", |v, o| put(o, v.server.counters.req_tot)),
    ("cli_abrt", |v, o| put(o, v.server.counters.cli_abrt)),
    ("srv_abrt", |v, o| put(o, v.server.counters.srv_abrt)),
    ("lastsess", |v, o| last_session(&v.server.counters, v.now, v.offset, o)),
    ("last_chk", |v, o| {
        if v.server.running.is_none() {
            o.push_str(v.server.last_check.info);
        }
    }),
    ("check_desc", |v, o| o.push_str(v.server.last_check.text)),
    ("check_rise", |v, o| put(o, v.model.spec.load_balancer.rise)),
    ("check_fall", |v, o| put(o, v.model.spec.load_balancer.fall)),
    ("check_health", |v, o| put(o, v.server.health)),
    ("addr", |v, o| {
        put(
            o,
            format_args!("{}:8080", v.model.net.hosts[FIRST_WORKER + v.server.node].ip),
        )
    }),
    ("connect", |v, o| put(o, v.server.counters.connect)),
    ("reuse", |v, o| put(o, v.server.counters.reuse)),
    ("srv_icur", |v, o| put(o, v.server.idle.len())),
    ("idle_conn_cur", |v, o| put(o, v.server.idle.len())),
    ("used_conn_cur", |v, o| put(o, v.server.counters.scur)),
];

/// `UP`, `UP 1/2`, `DOWN`, `DOWN 1/2`, `NOLB`, `DRAIN`, `MAINT`.
fn status(v: &ServerView<'_>, out: &mut String) {
    let (rise, fall) = (v.model.spec.load_balancer.rise, v.model.spec.load_balancer.fall);
    let s = v.server;
    let word = match s.admin {
        Admin::Maint => return out.push_str("MAINT"),
        _ if !s.up => "DOWN",
        Admin::Drain => "DRAIN",
        Admin::Ready if s.stopping => "NOLB",
        Admin::Ready => "UP",
    };
    out.push_str(word);
    if s.up && s.health < rise + fall - 1 {
        put(out, format_args!(" {}/{fall}", s.health + 1 - rise));
    } else if !s.up && s.health > 0 {
        put(out, format_args!(" {}/{rise}", s.health));
    }
}

const FRONTEND: &[(&str, OfProxy)] = &[
    ("pxname", |v, o| o.push_str(&v.model.spec.names.frontend)),
    ("scur", |v, o| put(o, v.counters.scur)),
    ("smax", |v, o| put(o, v.counters.smax)),
    ("stot", |v, o| put(o, v.counters.stot)),
    ("bin", |v, o| put(o, v.counters.bin)),
    ("bout", |v, o| put(o, v.counters.bout)),
    ("hrsp_2xx", |v, o| put(o, v.counters.hrsp[1])),
    ("hrsp_4xx", |v, o| put(o, v.counters.hrsp[3])),
    ("hrsp_5xx", |v, o| put(o, v.counters.hrsp[4])),
    ("req_tot", |v, o| put(o, v.counters.req_tot)),
    ("conn_tot", |v, o| put(o, v.counters.stot)),
];

const BACKEND: &[(&str, OfProxy)] = &[
    ("pxname", |v, o| o.push_str(&v.model.spec.names.backend)),
    ("scur", |v, o| put(o, v.counters.scur)),
    ("smax", |v, o| put(o, v.counters.smax)),
    ("stot", |v, o| put(o, v.counters.stot)),
    ("bin", |v, o| put(o, v.counters.bin)),
    ("bout", |v, o| put(o, v.counters.bout)),
    ("econ", |v, o| put(o, v.counters.econ)),
    ("eresp", |v, o| put(o, v.counters.eresp)),
    ("wretr", |v, o| put(o, v.counters.wretr)),
    ("wredis", |v, o| put(o, v.counters.wredis)),
    ("status", |v, o| {
        o.push_str(if v.process.backend_up { "UP" } else { "DOWN" })
    }),
    ("weight", |v, o| put(o, v.process.usable())),
    ("act", |v, o| put(o, v.process.usable())),
    ("chkdown", |v, o| put(o, v.process.backend_downs)),
    ("lastchg", |v, o| {
        put(o, seconds(v.now, v.process.backend_changed, v.offset))
    }),
    ("lbtot", |v, o| put(o, v.counters.stot)),
    ("hrsp_1xx", |v, o| put(o, v.counters.hrsp[0])),
    ("hrsp_2xx", |v, o| put(o, v.counters.hrsp[1])),
    ("hrsp_3xx", |v, o| put(o, v.counters.hrsp[2])),
    ("hrsp_4xx", |v, o| put(o, v.counters.hrsp[3])),
    ("hrsp_5xx", |v, o| put(o, v.counters.hrsp[4])),
    ("req_tot", |v, o| put(o, v.counters.req_tot)),
    ("cli_abrt", |v, o| put(o, v.counters.cli_abrt)),
    ("lastsess", |v, o| last_session(v.counters, v.now, v.offset, o)),
    ("connect", |v, o| put(o, v.counters.connect)),
    ("uweight", |v, o| put(o, v.process.usable())),
];

/// A row: the real one's cells, with the known ones as values.
fn row<G: Copy>(names: &[&str], cells: &str, known: &[(&str, G)]) -> Row<G> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    for (name, cell) in names.iter().zip(cells.split(',')) {
        match known.iter().find(|(k, _)| k == name) {
            Some((_, get)) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Value(*get));
            }
            None => text.push_str(cell),
        }
        if !name.is_empty() {
            text.push(',');
        }
    }
    pieces.push(Piece::Text(text));
    pieces
}

fn layout(version: Version) -> &'static Layout {
    static LAYOUTS: [OnceLock<Layout>; 4] = [const { OnceLock::new() }; 4];
    LAYOUTS[version as usize].get_or_init(|| {
        let real = match version {
            Version::V2_6 => include_str!("show-stat-2.6.csv"),
            Version::V2_8 => include_str!("show-stat-2.8.csv"),
            Version::V3_0 => include_str!("show-stat-3.0.csv"),
            Version::V3_2 => include_str!("show-stat-3.2.csv"),
        };
        let mut lines = real.lines();
        let mut next = || lines.next().unwrap_or_default();
        let header = next();
        let names: Vec<&str> = header.trim_start_matches("# ").split(',').collect();
        Layout {
            header: format!("{header}\n"),
            frontend: row(&names, next(), FRONTEND),
            server: row(&names, next(), SERVER),
            backend: row(&names, next(), BACKEND),
        }
    })
}

fn write_row<G: Copy>(row: &Row<G>, out: &mut String, value: impl Fn(G, &mut String)) {
    for piece in row {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Value(get) => value(*get, out),
        }
    }
    out.push('\n');
}

impl Model {
    /// The answer of the process that listens now, with its header and its empty last line.
    pub(in crate::world::sim) fn show_stat(&self) -> String {
        let layout = layout(self.spec.load_balancer.version);
        let process = &self.lb.processes[self.current_process()];
        let now = self.net.read_clock(super::super::network::LB, self.now);
        let offset = now - self.now;
        let mut out = String::with_capacity(layout.header.len() * 2);
        out.push_str(&layout.header);
        let proxy = |counters| ProxyView {
            model: self,
            process,
            counters,
            now,
            offset,
        };
        let frontend = proxy(&process.frontend);
        write_row(&layout.frontend, &mut out, |get, o| get(&frontend, o));
        for (index, server) in process.servers.iter().enumerate() {
            let view = ServerView {
                model: self,
                server,
                index,
                now,
                offset,
            };
            write_row(&layout.server, &mut out, |get, o| get(&view, o));
        }
        let backend = proxy(&process.backend);
        write_row(&layout.backend, &mut out, |get, o| get(&backend, o));
        out.push('\n');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::spec::{LoadBalancerSpec, WorldSpec};
    use super::*;

    #[test]
    fn every_version_has_as_many_cells_as_columns() {
        for version in [Version::V2_6, Version::V2_8, Version::V3_0, Version::V3_2] {
            let load_balancer = LoadBalancerSpec {
                version,
                ..LoadBalancerSpec::default()
            };
            let model = Model::new(
                WorldSpec {
                    load_balancer,
                    ..WorldSpec::default()
                },
                1,
            );
            let text = model.show_stat();
            let mut lines = text.lines();
            let columns = lines.next().expect("header").split(',').count();
            let rows: Vec<Vec<&str>> = lines.by_ref().take(4).map(|l| l.split(',').collect()).collect();
            assert!(rows.iter().all(|r| r.len() == columns), "{version:?}\n{text}");
            assert_eq!(rows[1][..2], ["istio-http-backend", "worker1"]);
            assert_eq!((rows[1][17], rows[1][36]), ("UP", "L7OK"), "{text}");
            assert_eq!((rows[2][17], rows[2][36]), ("DOWN", "L4CON"), "{text}");
        }
    }
}
