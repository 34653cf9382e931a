//! The logs of containers, past and to come.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Timelike, Utc};
use futures::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::super::kubelet::log::{ContainerLog, Record, records};
use super::super::status::Status;
use super::super::timing::LOG_ENDS;
use super::request::Query;

/// What was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LogQuery {
    follow: bool,
    timestamps: bool,
    since: Option<DateTime<Utc>>,
    tail: Option<usize>,
    limit: Option<usize>,
}

impl LogQuery {
    /// Reads the query. `sinceTime` is cut to the second, as the kubelet cuts it.
    ///
    /// # Errors
    /// 400 for what is no time or no number.
    pub(super) fn parse(query: &Query, now: DateTime<Utc>) -> Result<Self, Status> {
        let number = |key: &str| {
            let value = query.get(key).map(str::parse::<i64>).transpose();
            let value = value.map_err(|_| Status::bad_request(format!("strconv.ParseInt: invalid {key}")))?;
            match value {
                Some(n) if n < 0 => Err(Status::bad_request(format!(
                    "{key}: must be greater than or equal to 0"
                ))),
                other => Ok(other),
            }
        };
        let since_time = query.get("sinceTime").map(DateTime::parse_from_rfc3339).transpose();
        let since_time = since_time.map_err(|e| Status::bad_request(format!("sinceTime: {e}")))?;
        let since = match (since_time, number("sinceSeconds")?) {
            (Some(at), _) => at.with_timezone(&Utc).with_nanosecond(0),
            (None, Some(seconds)) => Some(now - TimeDelta::seconds(seconds)),
            (None, None) => None,
        };
        let size = |n: Option<i64>| n.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        Ok(Self {
            follow: query.flag("follow"),
            timestamps: query.flag("timestamps"),
            since,
            tail: size(number("tailLines")?),
            limit: size(number("limitBytes")?),
        })
    }

    fn wants(&self, record: &Record<'_>) -> bool {
        let Some(since) = self.since else { return true };
        DateTime::parse_from_rfc3339(record.stamp).is_ok_and(|at| at >= since)
    }

    /// A record as the client sees it.
    fn write(&self, record: &Record<'_>, to: &mut Vec<u8>) {
        if self.timestamps {
            to.extend_from_slice(record.stamp.as_bytes());
            to.push(b' ');
        }
        to.extend_from_slice(record.text);
        if record.full {
            to.push(b'\n');
        }
    }
}

/// Answers with the log: 200 and plain text, whatever is in it. Of a followed log, what is there at the time of the call
/// comes first; it ends some time after the container.
pub(super) fn answer(query: LogQuery, log: Arc<ContainerLog>, stop: watch::Receiver<bool>) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(16);
    // The place where a follower begins is taken now and not when the client first reads.
    let start = log.subscribe();
    tokio::spawn(send(query, log, start, stop, sender));
    let mut answer = Response::new(Body::from_stream(
        ReceiverStream::new(receiver).map(Ok::<_, Infallible>),
    ));
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}

async fn send(
    query: LogQuery,
    log: Arc<ContainerLog>,
    mut written: watch::Receiver<super::super::kubelet::log::Written>,
    mut stop: watch::Receiver<bool>,
    to: mpsc::Sender<Bytes>,
) {
    let mut left = query.limit.unwrap_or(usize::MAX);
    let mut piece = async |mut bytes: Vec<u8>| {
        bytes.truncate(left);
        left -= bytes.len();
        (bytes.is_empty() || to.send(bytes.into()).await.is_ok()) && left > 0
    };
    let mut at = written.borrow_and_update().bytes;
    let past = log.read(0, at).unwrap_or_default();
    let kept: Vec<Record<'_>> = records(&past).filter(|r| query.wants(r)).collect();
    let first = query.tail.map_or(0, |tail| kept.len().saturating_sub(tail));
    let mut text = Vec::new();
    for record in &kept[first..] {
        query.write(record, &mut text);
    }
    if !piece(text).await || !query.follow {
        return;
    }
    loop {
        let now = *written.borrow_and_update();
        if now.bytes > at {
            let mut text = Vec::new();
            for record in records(&log.read(at, now.bytes).unwrap_or_default()) {
                query.write(&record, &mut text);
            }
            at = now.bytes;
            if !piece(text).await {
                return;
            }
        } else if now.ended {
            LOG_ENDS.pass().await;
            return;
        } else {
            tokio::select! {
                changed = written.changed() => if changed.is_err() { return },
                _ = stop.wait_for(|s| *s) => return,
                () = to.closed() => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn log_of(text: &'static [u8]) -> (tempfile::TempDir, Arc<ContainerLog>) {
        let folder = tempfile::tempdir().expect("folder");
        let log = Arc::new(ContainerLog::create(folder.path().join("0.log")).expect("log"));
        Arc::clone(&log).copy("stdout", text).await;
        (folder, log)
    }

    async fn read(query: &str, log: &Arc<ContainerLog>) -> String {
        let query = Query::parse(&format!("/log?{query}").parse().expect("uri"));
        let query = LogQuery::parse(&query, Utc::now()).expect("query");
        let stop = watch::Sender::new(false);
        let body = answer(query, Arc::clone(log), stop.subscribe()).into_body();
        String::from_utf8(body.collect().await.expect("body").to_bytes().to_vec()).expect("text")
    }

    #[tokio::test]
    async fn tail_limit_and_stamps() {
        let (_folder, log) = log_of(b"one\ntwo\nthree\n").await;
        assert_eq!(read("", &log).await, "one\ntwo\nthree\n");
        assert_eq!(read("tailLines=1", &log).await, "three\n");
        assert_eq!(read("tailLines=0", &log).await, "");
        assert_eq!(read("limitBytes=5", &log).await, "one\nt");
        assert_eq!(
            read("timestamps=true&tailLines=1", &log).await.len(),
            "2026-11-29T16:28:27.453947225Z three\n".len()
        );
        assert_eq!(read("sinceTime=2100-01-01T00:00:00Z", &log).await, "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_gets_every_line_and_ends_after_the_container() {
        let (_folder, log) = log_of(b"one\n").await;
        let writer = Arc::clone(&log);
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            Arc::clone(&writer).copy("stdout", b"two\n".as_slice()).await;
            writer.end();
        });
        assert_eq!(read("follow=true&tailLines=0", &log).await, "two\n");
    }

    #[test]
    fn since_time_is_cut_to_the_second() {
        let query = Query::parse(&"/log?sinceTime=2026-11-29T16:28:27.999Z".parse().expect("uri"));
        let parsed = LogQuery::parse(&query, Utc::now()).expect("query");
        assert_eq!(parsed.since, "2026-11-29T16:28:27Z".parse().ok());
    }
}
