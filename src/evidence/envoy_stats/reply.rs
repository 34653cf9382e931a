//! One reply of Envoy's admin page: `/stats`, `/stats?format=json` or `/stats/prometheus`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{GaugeValues, Reading as Gauges};
use crate::evidence::reading::{Reading, excerpt, number};

/// Reads a whole reply: text, JSON or Prometheus. An empty reply, an error text, or one without a single gauge is
/// unknown and never zero.
pub fn parse_reply(reply: &str) -> Gauges {
    let mut names = Reading::default();
    let mut collector = Collector::default();
    for line in reply.lines() {
        collector.line(line.as_bytes(), &mut names);
    }
    collector.finish(None)
}

/// Collects a reply line by line.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    values: BTreeMap<Arc<str>, u64>,
    failure: Option<String>,
    any: bool,
}

impl Collector {
    /// Takes one line.
    pub(crate) fn line(&mut self, line: &[u8], names: &mut Reading) {
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'#' {
            return;
        }
        self.any = true;
        if line[0] == b'{' {
            match serde_json::from_slice::<Stats<'_>>(line) {
                Ok(stats) => {
                    for s in stats.stats {
                        // Histograms have no name and no value of their own.
                        if let (Some(name), Some(value)) = (s.name, s.value)
                            && let Some(value) = value.as_u64()
                            && wanted(name.as_bytes())
                        {
                            self.values.insert(names.name(&name), value);
                        }
                    }
                }
                Err(e) => self.fail(format!("not a reply of Envoy: {e}").as_bytes()),
            }
            return;
        }
        if line.starts_with(b"envoy_") {
            if let Some((name, value)) = prometheus(line)
                && wanted(name.as_bytes())
            {
                self.values.insert(names.name(&name), value);
            }
            return;
        }
        // Names hold dots, bars and colons: the value stands after the last `: `.
        match memchr::memmem::rfind(line, b": ") {
            Some(at) if is_name(&line[..at]) => {
                if wanted(&line[..at])
                    && let Some(value) = number(&line[at + 2..])
                {
                    self.values.insert(names.name_of(&line[..at]), value);
                }
            }
            _ => self.fail(line),
        }
    }

    fn fail(&mut self, text: &[u8]) {
        if self.failure.is_none() {
            self.failure = Some(excerpt(text, 200));
        }
    }

    /// The reply is over; `before` is the reply before it in the same series.
    pub(crate) fn finish(self, before: Option<&Gauges>) -> Gauges {
        if !self.values.is_empty() {
            let like = match before {
                Some(Gauges::Values(v)) => Some(v),
                Some(Gauges::Unknown(_)) | None => None,
            };
            return Gauges::Values(GaugeValues::new(self.values, like));
        }
        Gauges::Unknown(match self.failure {
            Some(f) => f,
            None if self.any => "no gauge of requests in the reply".to_owned(),
            None => "empty reply".to_owned(),
        })
    }
}

/// A stat's name has a dot and no blank; an error text has blanks.
fn is_name(text: &[u8]) -> bool {
    memchr::memchr(b'.', text).is_some() && memchr::memchr(b' ', text).is_none()
}

/// Requests in flight and requests begun; not `upstream_rq_active_overflow` and the like, nor how often Envoy was
/// asked for its own statistics.
fn wanted(name: &[u8]) -> bool {
    name.ends_with(b"_rq_active") || (name.ends_with(b"_rq_total") && !OWN.iter().any(|own| name.starts_with(own)))
}

/// Listeners of Envoy and of its agent.
const OWN: [&[u8]; 3] = [b"http.admin.", b"http.agent.", b"http.stats."];

#[derive(Deserialize)]
struct Stats<'a> {
    #[serde(borrow)]
    stats: Vec<Stat<'a>>,
}

#[derive(Deserialize)]
struct Stat<'a> {
    #[serde(borrow)]
    name: Option<std::borrow::Cow<'a, str>>,
    value: Option<serde_json::Value>,
}

/// `envoy_cluster_upstream_rq_active{envoy_cluster_name="inbound|8080||"} 3` by the name that `/stats` gives it.
fn prometheus(line: &[u8]) -> Option<(String, u64)> {
    let line = std::str::from_utf8(line).ok()?;
    let (series, value) = line.rsplit_once(' ')?;
    let value = number(value.split('.').next()?.as_bytes())?;
    let (metric, labels) = series.split_once('{').unwrap_or((series, ""));
    let metric = metric.strip_prefix("envoy_")?;
    let label = |suffix: &str| {
        labels.trim_end_matches('}').split("\",").find_map(|pair| {
            let (key, value) = pair.split_once("=\"")?;
            key.trim()
                .ends_with(suffix)
                .then(|| value.trim_end_matches('"').to_owned())
        })
    };
    if let Some(stat) = metric.strip_prefix("cluster_") {
        let cluster = label("cluster_name")?;
        return Some((format!("cluster.{cluster}.{stat}"), value));
    }
    let rest = metric.strip_prefix("http_")?;
    let at = rest.rfind("downstream_rq_")?;
    let (middle, stat) = rest.split_at(at);
    let Some(prefix) = label("conn_manager_prefix") else {
        // Without the label the prefix is a part of the metric's name.
        return Some((format!("http.{}.{stat}", middle.trim_end_matches('_')), value));
    };
    Some((format!("http.{prefix}{}.{stat}", unmangled(middle)), value))
}

/// Istio's prefix `inbound_0.0.0.0_8080;` is cut at its first dot: label `inbound_0`, and the rest with `_` for what
/// may not stand in a metric's name.
fn unmangled(middle: &str) -> String {
    let middle = middle.strip_suffix('_').unwrap_or(middle);
    if middle.is_empty() {
        return String::new();
    }
    if let Some(port) = middle.strip_prefix("0_0_0_") {
        let (port, semicolon) = match port.strip_suffix('_') {
            Some(p) => (p, ";"),
            None => (port, ""),
        };
        return format!(".0.0.0_{port}{semicolon}");
    }
    format!(".{middle}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(reply: &str) -> Vec<(String, u64)> {
        match parse_reply(reply) {
            Gauges::Values(v) => v.iter().map(|(k, v)| (k.to_string(), *v)).collect(),
            Gauges::Unknown(why) => panic!("{why}"),
        }
    }

    fn owned(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
    }

    #[test]
    fn text_json_and_prometheus_agree() {
        let expected = owned(&[
            ("cluster.inbound|8080||.upstream_rq_active", 3),
            ("http.admin.downstream_rq_active", 1),
            ("http.inbound_0.0.0.0_8080;.downstream_rq_active", 3),
        ]);
        let text = "cluster.inbound|8080||.upstream_rq_active: 3\ncluster.inbound|8080||.upstream_rq_active_overflow: 0\n\
            http.admin.downstream_rq_active: 1\nhttp.inbound_0.0.0.0_8080;.downstream_rq_active: 3\n\
            http.admin.downstream_rq_time: No recorded values\n\
            cluster.old|x.upstream_rq_time: P0(nan,1.0) P25(nan,1.025)\n";
        let json = r#"{"stats":[{"name":"cluster.inbound|8080||.upstream_rq_active","value":3},{"name":"http.admin.downstream_rq_active","value":1},{"name":"http.inbound_0.0.0.0_8080;.downstream_rq_active","value":3},{"histograms":{"supported_quantiles":[0,25]}}]}"#;
        let prom = "# TYPE envoy_cluster_upstream_rq_active gauge\n\
            envoy_cluster_upstream_rq_active{envoy_cluster_name=\"inbound|8080||\"} 3\n\
            envoy_cluster_upstream_rq_active_overflow{envoy_cluster_name=\"inbound|8080||\"} 0\n\
            envoy_http_0_0_0_8080__downstream_rq_active{envoy_http_conn_manager_prefix=\"inbound_0\"} 3\n\
            envoy_http_downstream_rq_active{envoy_http_conn_manager_prefix=\"admin\"} 1\n";
        assert_eq!(values(text), expected);
        assert_eq!(values(json), expected);
        assert_eq!(values(prom), expected);
    }

    #[test]
    fn what_is_no_reply_is_unknown() {
        let unknown = |reply: &str| match parse_reply(reply) {
            Gauges::Unknown(why) => why,
            Gauges::Values(v) => panic!("{v:?}"),
        };
        assert_eq!(unknown(""), "empty reply");
        assert_eq!(unknown("exec-failed"), "exec-failed");
        assert_eq!(unknown("upstream connect error: 111"), "upstream connect error: 111");
        assert_eq!(unknown("server.state: 0\n"), "no gauge of requests in the reply");
        assert!(unknown("{\"stats\":").starts_with("not a reply of Envoy"));
    }

    proptest! {
        #[test]
        fn no_text_panics(reply in "(envoy_http_|envoy_cluster_|\\{|http\\.|cluster\\.)?\\PC{0,80}") {
            let _ = parse_reply(&reply);
        }
    }
}
