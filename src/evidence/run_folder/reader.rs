//! Goes through the files of a folder and calls their readers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::name::{self, Known, LoadForm, Role};
use super::{OwnCall, ReadOptions, RunRecord};
use crate::evidence::arrival::Arrivals;
use crate::evidence::capture::{Capture, Losses};
use crate::evidence::envoy_log::JsonKeys;
use crate::evidence::haproxy_log::Parser;
use crate::evidence::hc_log::FsmNames;
use crate::evidence::lines::Lines;
use crate::evidence::load::{hey, reader as load_reader, tools};
use crate::evidence::pattern::Matcher;
use crate::evidence::reading::Reading;
use crate::evidence::thinning::room;
use crate::evidence::{
    Evidence, FileClock, FileId, NoteKind, SourceFile, SourceKind, capture, client, envoy_log, envoy_stats,
    haproxy_config, haproxy_csv, haproxy_log, hc_log, pod_watch, run_log,
};
use crate::time::Instant;

/// A configuration or a note of a capture is never larger.
const SMALL_FILE: u64 = 4 << 20;

/// Reads a folder.
pub(crate) fn read(folder: &Path, options: &ReadOptions) -> io::Result<Evidence> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let Ok(entry) = entry else { continue };
        if let Ok(name) = entry.file_name().into_string() {
            names.insert(name);
        }
    }
    let exists = |n: &str| names.contains(n);
    // A pattern asks for the log of its probe.
    let probes: Vec<String> = ["app"]
        .into_iter()
        .chain(options.log_probes.iter().map(String::as_str))
        .chain(options.patterns.iter().map(|(probe, _)| probe.as_str()))
        .map(str::to_owned)
        .collect();
    let known: Vec<(String, Known)> = names
        .iter()
        .filter_map(|n| Some((n.clone(), name::classify(n, &exists, &probes)?)))
        .filter(|(n, _)| folder.join(n).is_file())
        .collect();
    let mut folder = Folder {
        path: folder,
        names: &names,
        // gtrun's own folders hold files that no script ever wrote.
        own: ["run.json", "steps.jsonl", "journal.jsonl", "requests.jsonl"]
            .iter()
            .any(|n| exists(n)),
        probes: probes.clone(),
        patterns: &options.patterns,
        fsm: FsmNames::new(&options.fsm_states, &options.fsm_aliases),
        keys: JsonKeys::new(&options.envoy_json_keys),
        evidence: Evidence::default(),
        reading: Reading::default(),
    };
    // HAProxy's logs come last: they may need a year from the others, and the formats of the configuration.
    let (last, first): (Vec<_>, Vec<_>) = (0u32..).zip(&known).partition(|(_, (_, k))| k.role == Role::HaproxyLog);
    for (name, k) in &known {
        folder.register(name, k);
    }
    for (id, (name, k)) in first {
        folder.file(FileId(id), name, k);
    }
    let mut parser = Parser::new(
        folder.evidence.haproxy_config.as_ref(),
        options.haproxy_log_zone.as_deref(),
    );
    if let Some(near) = folder.some_moment() {
        parser.set_near(near);
    }
    // The finest first: `haproxy.log`, then rfc5424 before rfc3164.
    let mut last = last;
    last.sort_by_key(|(_, (name, _))| (name.contains("rfc3164"), name != "haproxy.log", name.clone()));
    for (i, (id, (name, _))) in last.into_iter().enumerate() {
        let room = if i == 0 {
            room::HAPROXY_LOG
        } else {
            room::FURTHER_HAPROXY_LOG
        };
        folder.haproxy_log(FileId(id), name, &mut parser, room);
    }
    folder.evidence.haproxy_logs.sort_by_key(|l| l.file);
    Ok(folder.finish())
}

struct Folder<'a> {
    path: &'a Path,
    names: &'a BTreeSet<String>,
    own: bool,
    probes: Vec<String>,
    patterns: &'a [(String, regex::Regex)],
    fsm: FsmNames,
    keys: JsonKeys,
    evidence: Evidence,
    reading: Reading,
}

impl Folder<'_> {
    fn register(&mut self, name: &str, known: &Known) {
        let size = std::fs::metadata(self.path.join(name)).map_or(0, |m| m.len());
        let kind = known.kind();
        self.evidence.files.push(SourceFile {
            name: name.to_owned(),
            kind,
            clock: self.clock(kind, known),
            subject: known.subject.clone(),
            size,
        });
    }

    fn clock(&self, kind: SourceKind, known: &Known) -> FileClock {
        match kind {
            SourceKind::HaproxyConfig => FileClock::None,
            SourceKind::Client if matches!(known.role, Role::Curl { .. }) => FileClock::None,
            SourceKind::HaproxyCsv if known.role != Role::Stats(haproxy_csv::StatKind::Timeline) => FileClock::None,
            SourceKind::HcLog | SourceKind::EnvoyLog | SourceKind::ContainerLog | SourceKind::HaproxyLog => {
                FileClock::Own
            }
            SourceKind::Capture => match &known.subject {
                Some(host) if self.own => FileClock::Host(host.clone()),
                _ => FileClock::Own,
            },
            SourceKind::ClockExchange | SourceKind::Journal => FileClock::Gtrun,
            SourceKind::Client
            | SourceKind::Load
            | SourceKind::RunLog
            | SourceKind::EnvoyStats
            | SourceKind::HaproxyCsv
            | SourceKind::Watch => {
                if self.own {
                    FileClock::Gtrun
                } else {
                    FileClock::Own
                }
            }
        }
    }

    /// The part of a file of this kind in what is kept of all files of the kind.
    fn room(&self, file: FileId, all: usize) -> usize {
        let kind = self.evidence.file(file).kind;
        let files = self.evidence.files.iter().filter(|f| f.kind == kind).count();
        all / files.max(1)
    }

    /// Opens a file; a failure and an empty file are noted.
    fn open(&mut self, file: FileId, name: &str) -> Option<BufReader<File>> {
        match File::open(self.path.join(name)) {
            Ok(f) => {
                if self.evidence.file(file).size == 0 {
                    self.reading.note_file(
                        file,
                        NoteKind::Incomplete,
                        format!("{name} is empty: what should have written it did not run, or was stopped at once"),
                    );
                    return None;
                }
                Some(BufReader::with_capacity(1 << 16, f))
            }
            Err(e) => {
                self.unreadable(file, name, &e);
                None
            }
        }
    }

    fn unreadable(&mut self, file: FileId, name: &str, e: &io::Error) {
        self.reading
            .note_file(file, NoteKind::Unreadable, format!("{name} cannot be read: {e}"));
    }

    /// Runs a reader; an error of the disk in the middle becomes a note.
    fn with<T>(
        &mut self,
        file: FileId,
        name: &str,
        read: impl FnOnce(BufReader<File>, &mut Self) -> io::Result<T>,
    ) -> Option<T> {
        let source = self.open(file, name)?;
        match read(source, self) {
            Ok(t) => Some(t),
            Err(e) => {
                self.unreadable(file, name, &e);
                None
            }
        }
    }

    fn file(&mut self, file: FileId, name: &str, known: &Known) {
        let subject = known.subject.clone();
        match &known.role {
            Role::RunLog => {
                self.evidence.run_log = self.with(file, name, |s, f| run_log::reader::read(s, file, &mut f.reading));
            }
            Role::Curl { id } => {
                let r = self.with(file, name, |s, f| client::reader::read_curl(s, file, id, &mut f.reading));
                self.evidence.clients.extend(r.flatten());
            }
            Role::Requests => {
                let r = self.with(file, name, |s, f| client::reader::read_requests(s, file, &mut f.reading));
                self.evidence.clients.extend(r.into_iter().flatten());
            }
            Role::Load { id, form } => {
                let load = self.with(file, name, |s, f| match form {
                    LoadForm::Own => load_reader::read_own(s, file, id, &mut f.reading).map(Some),
                    LoadForm::Tsv => load_reader::read_tsv(s, file, id, &mut f.reading),
                    LoadForm::Hey => hey::read(s, file, id, &mut f.reading),
                    LoadForm::Tool => tools::read(s, file, id, &mut f.reading),
                });
                self.evidence.loads.extend(load.flatten());
            }
            Role::Hc { arrivals_only } => {
                let log = self.container_log(file, name, "hc", *arrivals_only, subject);
                self.evidence.hc_logs.extend(log);
            }
            Role::Container { arrivals_only } => {
                let probe = self.probe_of(name);
                let log = self.container_log(file, name, &probe, *arrivals_only, subject);
                self.evidence.container_logs.extend(log);
            }
            Role::Envoy { arrivals_only } => {
                let beside = self.arrivals(name);
                let keys = self.keys.clone();
                let matcher = Matcher::new("envoy", self.patterns);
                let room = self.room(file, room::ENVOY_LOG);
                let only = *arrivals_only;
                let log = self.with(file, name, |s, f| {
                    if only {
                        envoy_log::reader::read_arrivals(Arrivals::new(s), file, subject, &keys, matcher, room, &mut f.reading)
                    } else {
                        envoy_log::reader::read(s, beside, file, subject, &keys, matcher, room, &mut f.reading)
                    }
                });
                if let Some((log, matches)) = log {
                    self.evidence.envoy_logs.push(log);
                    self.evidence.log_matches.extend(matches);
                }
            }
            Role::Gauges => {
                let room = self.room(file, room::ENVOY_STATS);
                let series = self.with(file, name, |s, f| {
                    envoy_stats::reader::read(s, file, subject, room, &mut f.reading)
                });
                self.evidence.envoy_stats.extend(series);
            }
            Role::Stats(kind) => {
                let series = self.with(file, name, |s, f| haproxy_csv::reader::read(s, file, *kind, &mut f.reading));
                self.evidence.haproxy_csv.extend(series);
            }
            Role::HaproxyConfig => {
                if let Some(text) = self.small(file, name) {
                    let (config, notes) = haproxy_config::parse(&text, file);
                    self.evidence.haproxy_config = Some(config);
                    for note in notes {
                        let line = note.place.map_or(0, |p| p.line);
                        self.reading.note(file, line, note.kind, note.text);
                    }
                }
            }
            Role::Capture => self.capture(file, name, subject),
            Role::SkippedCapture => {
                let reason = self.small(file, name).unwrap_or_default();
                let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
                self.reading.note_file(
                    file,
                    NoteKind::Incomplete,
                    format!("there is no capture of this host: {reason}"),
                );
                self.evidence.captures.push(Capture {
                    file,
                    host: subject.unwrap_or_default(),
                    packets: Vec::new(),
                    losses: Losses {
                        skipped: Some(reason),
                        ..Losses::default()
                    },
                    has_syn: false,
                });
            }
            Role::Watch => {
                let watch = self.with(file, name, |s, f| pod_watch::reader::read(s, file, &mut f.reading));
                self.evidence.watches.extend(watch);
            }
            Role::WatchTable => self.reading.note_file(
                file,
                NoteKind::Unreadable,
                format!("{name} is a table of kubectl; record the watch as JSON: `kubectl get -w --output-watch-events -o json`"),
            ),
            Role::Clocks => {
                let clocks = self.json_lines(file, name, "a clock exchange");
                self.evidence.clock_exchanges.extend(clocks);
            }
            Role::Steps => {
                let calls: Vec<OwnCall> = self.json_lines(file, name, "a step");
                self.evidence.own_calls = last_of_each(calls);
            }
            Role::Run => {
                if let Some(text) = self.small(file, name) {
                    match serde_json::from_str::<RunRecord>(&text) {
                        Ok(run) => self.evidence.run = Some(run),
                        Err(e) => self.reading.note_file(
                            file,
                            NoteKind::Unreadable,
                            format!("run.json is not what gtrun writes ({e}); the rest is read as of an old folder"),
                        ),
                    }
                }
            }
            // What was changed and undone; the judgement needs the steps only.
            Role::Journal => {}
            Role::HaproxyLog => {}
        }
    }

    fn container_log(
        &mut self,
        file: FileId,
        name: &str,
        probe: &str,
        arrivals_only: bool,
        subject: Option<String>,
    ) -> Option<hc_log::HcLog> {
        let beside = self.arrivals(name);
        let fsm = self.fsm.clone();
        let matcher = Matcher::new(probe, self.patterns);
        let room = self.room(file, room::HC_LOG);
        let (log, matches) = self.with(file, name, |s, f| {
            if arrivals_only {
                hc_log::reader::read_arrivals(Arrivals::new(s), file, subject, &fsm, matcher, room, &mut f.reading)
            } else {
                hc_log::reader::read(s, beside, file, subject, &fsm, matcher, room, &mut f.reading)
            }
        })?;
        self.evidence.log_matches.extend(matches);
        Some(log)
    }

    /// Name of the probe that wrote `<probe>[-node].log`.
    fn probe_of(&self, name: &str) -> String {
        let stem = name.split(".log").next().unwrap_or(name);
        self.probes
            .iter()
            .find(|p| {
                stem.strip_prefix(p.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            })
            .cloned()
            .unwrap_or_else(|| stem.to_owned())
    }

    /// The file with the arrivals beside a raw log.
    fn arrivals(&self, name: &str) -> Option<Arrivals<BufReader<File>>> {
        let beside = name::arrivals_of(name).into_iter().find(|n| self.names.contains(n))?;
        let file = File::open(self.path.join(beside)).ok()?;
        Some(Arrivals::new(BufReader::new(file)))
    }

    fn capture(&mut self, file: FileId, name: &str, subject: Option<String>) {
        let host = subject.unwrap_or_default();
        let room = self.room(file, room::CAPTURE);
        let capture = self.with(file, name, |s, f| {
            capture::reader::read(s, file, &host, room, &mut f.reading)
        });
        let mut capture = capture.unwrap_or(Capture {
            file,
            host,
            packets: Vec::new(),
            losses: Losses {
                cut: true,
                ..Losses::default()
            },
            has_syn: false,
        });
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let err = format!("{stem}.err");
        if self.names.contains(&err)
            && let Some(text) = small_text(&self.path.join(&err))
        {
            capture::losses::read(&text, file, &mut capture.losses, &mut self.reading);
        }
        self.evidence.captures.push(capture);
    }

    fn haproxy_log(&mut self, file: FileId, name: &str, parser: &mut Parser, room: usize) {
        if !parser.has_near()
            && let Some(near) = own_year(&self.path.join(name))
        {
            parser.set_near(near);
        }
        if !parser.has_near() {
            self.reading.note_file(
                file,
                NoteKind::Remark,
                "no stamp in this folder tells the year of stamps like `Nov 29 16:12:45`; they are read as of the year 2000",
            );
        }
        let log = self.with(file, name, |s, f| {
            haproxy_log::reader::read(s, file, parser, room, &mut f.reading)
        });
        self.evidence.haproxy_logs.extend(log);
    }

    fn small(&mut self, file: FileId, name: &str) -> Option<String> {
        self.open(file, name)?;
        match small_text(&self.path.join(name)) {
            Some(text) => Some(text),
            None => {
                self.reading.note_file(
                    file,
                    NoteKind::Unreadable,
                    format!("{name} has more than {SMALL_FILE} bytes and is not what its name says"),
                );
                None
            }
        }
    }

    /// Records of one kind, one a line.
    fn json_lines<T: serde::de::DeserializeOwned>(&mut self, file: FileId, name: &str, what: &str) -> Vec<T> {
        self.with(file, name, |s, f| {
            let mut records = Vec::new();
            let mut lines = Lines::new(s);
            while let Some(line) = lines.next_line()? {
                if line.bytes.is_empty() {
                    continue;
                }
                match serde_json::from_slice(line.bytes) {
                    Ok(r) => records.push(r),
                    Err(_) if line.unterminated => f.reading.note(
                        file,
                        line.number,
                        NoteKind::Incomplete,
                        "the last record is cut and was not used",
                    ),
                    Err(e) => {
                        f.reading
                            .note(file, line.number, NoteKind::Incomplete, format!("not {what}: {e}"));
                    }
                }
            }
            Ok(records)
        })
        .unwrap_or_default()
    }

    /// Some moment of the run, for stamps without a year.
    fn some_moment(&self) -> Option<Instant> {
        let e = &self.evidence;
        let of_run_log = e.run_log.iter().flat_map(|l| &l.entries).find_map(|x| x.at.lo);
        let of_hc = e.hc_logs.iter().flat_map(|l| &l.lines).find_map(|x| x.at.lo);
        let of_csv = || {
            e.haproxy_csv
                .iter()
                .flat_map(|s| &s.samples)
                .find_map(|x| x.when.stamp.or(x.when.sent))
        };
        let of_gauges = || {
            e.envoy_stats
                .iter()
                .flat_map(|s| &s.samples)
                .find_map(|x| x.when.stamp.or(x.when.sent))
        };
        let of_envoy = || e.envoy_logs.iter().flat_map(|l| &l.requests).find_map(|x| x.started.lo);
        let of_load = || e.loads.iter().flat_map(|l| &l.requests).find_map(|x| x.started.lo);
        let of_clients = || e.clients.iter().find_map(|c| c.started.lo);
        let of_capture = || e.captures.iter().flat_map(|c| &c.packets).find_map(|p| p.at.lo);
        let of_watch = || e.watches.iter().flat_map(|w| &w.events).map(|x| x.arrival).next();
        of_run_log
            .or(of_hc)
            .or_else(of_csv)
            .or_else(of_gauges)
            .or_else(of_envoy)
            .or_else(of_load)
            .or_else(of_clients)
            .or_else(of_capture)
            .or_else(of_watch)
    }

    fn finish(mut self) -> Evidence {
        for (i, file) in (0u32..).zip(&mut self.evidence.files) {
            if self.reading.has_unknown_zone(FileId(i)) {
                file.clock = FileClock::OwnUnknownZone;
            }
        }
        if self.evidence.files.is_empty() {
            self.reading.note_folder(
                NoteKind::Unreadable,
                "the folder holds no file that is known as evidence",
            );
        }
        self.evidence.notes = self.reading.into_notes();
        self.evidence
    }
}

/// A year from the request dates (`[29/Nov/2026:16:12:45.703]`) in the log itself.
fn own_year(path: &PathBuf) -> Option<Instant> {
    let mut source = BufReader::new(File::open(path).ok()?.take(1 << 20));
    let mut line = Vec::new();
    loop {
        line.clear();
        if source.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        for at in memchr::memchr_iter(b'[', &line) {
            if let Some((stamp, _)) = crate::evidence::stamp::clf(&line[at + 1..]) {
                return Some(stamp.at);
            }
        }
    }
}

fn small_text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(SMALL_FILE + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() as u64 <= SMALL_FILE).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// A call is recorded when it is sent and again when it is over: the last record of a step counts.
fn last_of_each(calls: Vec<OwnCall>) -> Vec<OwnCall> {
    let mut out: Vec<OwnCall> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls {
        match index.get(&call.step) {
            Some(&i) => out[i] = call,
            None => {
                index.insert(call.step.clone(), out.len());
                out.push(call);
            }
        }
    }
    out
}
