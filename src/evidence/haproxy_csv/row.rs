//! One row of `show stat`, by the names in the header.

use std::sync::Arc;

use super::{ServerStatus, StatFields, StatRow, StatusClass};
use crate::evidence::reading::{Reading, number};

/// The columns that are used, by HAProxy's own names. The order of columns is promised by nobody.
const NAMES: [&str; 32] = [
    "pxname",
    "svname",
    "status",
    "type",
    "scur",
    "qcur",
    "stot",
    "eresp",
    "econ",
    "hrsp_2xx",
    "hrsp_5xx",
    "wretr",
    "wredis",
    "cli_abrt",
    "srv_abrt",
    "chkfail",
    "chkdown",
    "lastchg",
    "downtime",
    "check_status",
    "check_code",
    "agent_status",
    "weight",
    "throttle",
    "addr",
    "hrsp_1xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_other",
    "req_tot",
    "lbtot",
    "check_duration",
];

#[derive(Clone, Copy)]
#[repr(usize)]
enum Column {
    Proxy = 0,
    Server,
    Status,
    Type,
    Scur,
    Qcur,
    Stot,
    Eresp,
    Econ,
    Hrsp2xx,
    Hrsp5xx,
    Wretr,
    Wredis,
    CliAbrt,
    SrvAbrt,
    Chkfail,
    Chkdown,
    Lastchg,
    Downtime,
    CheckStatus,
    CheckCode,
    AgentStatus,
    Weight,
    Throttle,
    Addr,
}

/// Where each used column is in this header.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    columns: [Option<usize>; NAMES.len()],
    /// Columns in front of `pxname` that somebody else added.
    pub(crate) leading: Vec<String>,
    /// Number of columns, the empty name after the last comma included.
    pub(crate) width: usize,
}

impl Header {
    /// Reads a header: a line with the fields `pxname` and `svname`, a `# ` before any of them.
    pub(crate) fn parse(fields: &[&[u8]]) -> Option<Self> {
        let names: Vec<&[u8]> = fields
            .iter()
            .map(|f| f.trim_ascii())
            .map(|f| f.strip_prefix(b"#").map_or(f, |f| f.trim_ascii_start()))
            .collect();
        let columns = NAMES.map(|name| names.iter().position(|n| *n == name.as_bytes()));
        let proxy = columns[Column::Proxy as usize]?;
        columns[Column::Server as usize]?;
        Some(Self {
            columns,
            leading: names[..proxy]
                .iter()
                .map(|n| String::from_utf8_lossy(n).to_ascii_lowercase())
                .collect(),
            width: names.len(),
        })
    }

    fn field<'f>(&self, fields: &[&'f [u8]], column: Column) -> Option<&'f [u8]> {
        let field = fields.get(self.columns[column as usize]?)?.trim_ascii();
        (!field.is_empty()).then_some(field)
    }

    /// The used columns end at this one: a shorter row is cut.
    pub(crate) fn last_used(&self) -> usize {
        [Column::Server, Column::Status, Column::Type, Column::Lastchg]
            .into_iter()
            .filter_map(|c| self.columns[c as usize])
            .max()
            .unwrap_or(0)
    }
}

/// What a row is.
pub(crate) enum Kind {
    /// A server or a backend.
    Row(StatRow),
    /// A frontend or a listener.
    NotAServer,
    /// Without a server's name: HAProxy 2.3 printed such rows.
    Nameless,
}

/// Reads a row; `before` are the rows of the sample before, whose fields it shares where they are the same.
pub(crate) fn parse(header: &Header, columns: &[&[u8]], before: &[StatRow], reading: &mut Reading) -> Kind {
    let text = |c: Column| header.field(columns, c);
    let count = |c: Column| text(c).and_then(number);
    let Some(server) = text(Column::Server) else {
        return Kind::Nameless;
    };
    let is_backend = match text(Column::Type) {
        Some(b"1") => true,
        Some(b"2") => false,
        Some(_) => return Kind::NotAServer,
        None if server == b"FRONTEND" => return Kind::NotAServer,
        None => server == b"BACKEND",
    };
    let check = text(Column::CheckStatus);
    let running = check.is_some_and(|c| c.starts_with(b"*"));
    let check = check.map(|c| c.strip_prefix(b"*").map_or(c, |c| c.trim_ascii_start()));
    let fields = StatFields {
        proxy: reading.name_of(text(Column::Proxy).unwrap_or_default()),
        server: reading.name_of(server),
        is_backend,
        status: status_of(text(Column::Status).unwrap_or_default(), reading),
        scur: count(Column::Scur),
        qcur: count(Column::Qcur),
        stot: count(Column::Stot),
        eresp: count(Column::Eresp),
        econ: count(Column::Econ),
        hrsp_2xx: count(Column::Hrsp2xx),
        hrsp_5xx: count(Column::Hrsp5xx),
        wretr: count(Column::Wretr),
        wredis: count(Column::Wredis),
        cli_abrt: count(Column::CliAbrt),
        srv_abrt: count(Column::SrvAbrt),
        chkfail: count(Column::Chkfail),
        chkdown: count(Column::Chkdown),
        check_status: check.filter(|c| !c.is_empty()).map(|c| reading.name_of(c)),
        check_code: count(Column::CheckCode).and_then(|n| u16::try_from(n).ok()),
        check_running: running,
        agent_status: text(Column::AgentStatus).map(|c| {
            let c = c.strip_prefix(b"*").map_or(c, |c| c.trim_ascii_start());
            reading.name_of(c)
        }),
        weight: count(Column::Weight),
        throttle: count(Column::Throttle),
        addr: text(Column::Addr).map(|c| reading.name_of(c)),
    };
    let fields = match before.iter().find(|r| ***r == fields) {
        Some(row) => Arc::clone(&row.fields),
        None => Arc::new(fields),
    };
    Kind::Row(StatRow {
        lastchg: count(Column::Lastchg),
        downtime: count(Column::Downtime),
        fields,
    })
}

fn status_of(text: &[u8], reading: &mut Reading) -> ServerStatus {
    let text = reading.name_of(text);
    let (class, health) = classify(&text);
    ServerStatus { class, text, health }
}

/// `UP 1/2`: class and health.
fn classify(text: &str) -> (StatusClass, Option<(i32, i32)>) {
    let (word, detail) = match text.strip_prefix("no check") {
        Some(rest) => ("no check", rest.trim_start()),
        None => text.split_once(' ').map_or((text, ""), |(w, d)| (w, d.trim())),
    };
    let health = text
        .rsplit(' ')
        .next()
        .and_then(|d| d.split_once('/'))
        .and_then(|(n, d)| Some((n.parse().ok()?, d.parse().ok()?)));
    // Anything but a health or a remark in parentheses is a word of a future version.
    let plain = detail.is_empty() || detail.starts_with('(') || health.is_some();
    let class = match word {
        _ if !plain => StatusClass::Unknown,
        "UP" if health.is_some() => StatusClass::GoingDown,
        "UP" => StatusClass::Up,
        "DOWN" if health.is_some() => StatusClass::ComingUp,
        "DOWN" => StatusClass::Down,
        "DRAIN" => StatusClass::Drain,
        "NOLB" => StatusClass::Nolb,
        "MAINT" => StatusClass::Maint,
        "no check" => StatusClass::NoCheck,
        "OPEN" | "STOP" | "PAUSED" => StatusClass::NotAServer,
        _ => StatusClass::Unknown,
    };
    (class, health)
}

impl ServerStatus {
    /// Reads a status word of HAProxy: `UP`, `UP 1/2`, `MAINT (via istio-ingress/worker1)`.
    pub fn parse(text: &str) -> Self {
        let (class, health) = classify(text);
        Self {
            class,
            text: Arc::from(text),
            health,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_class() {
        use StatusClass::{ComingUp, Down, Drain, GoingDown, Maint, NoCheck, Nolb, NotAServer, Unknown, Up};
        for (text, class, health) in [
            ("OPEN", NotAServer, None),
            ("STOP", NotAServer, None),
            ("PAUSED", NotAServer, None),
            ("UP", Up, None),
            ("UP 2/3", GoingDown, Some((2, 3))),
            ("UP -1/2", GoingDown, Some((-1, 2))),
            ("no check", NoCheck, None),
            ("DOWN", Down, None),
            ("DOWN 1/2", ComingUp, Some((1, 2))),
            ("DOWN (agent)", Down, None),
            ("NOLB", Nolb, None),
            ("NOLB 1/3", Nolb, Some((1, 3))),
            ("DRAIN", Drain, None),
            ("DRAIN 2/3", Drain, Some((2, 3))),
            ("DRAIN (agent)", Drain, None),
            ("MAINT", Maint, None),
            ("MAINT (via istio-ingress/worker1)", Maint, None),
            ("MAINT (resolution)", Maint, None),
            ("SOMETHING NEW 1/2", Unknown, Some((1, 2))),
            ("UPPER", Unknown, None),
            ("UP soon", Unknown, None),
            ("", Unknown, None),
        ] {
            let status = ServerStatus::parse(text);
            assert_eq!((status.class, status.health), (class, health), "{text}");
        }
    }
}
