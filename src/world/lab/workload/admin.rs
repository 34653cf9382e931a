//! Envoy's admin interface as the health checker uses it.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::ENVOY_ADMIN_PORT;
use super::envoy::{APP_CLUSTER, STAT_PREFIX};

/// How long one exchange may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Requests in flight: in the ingress listener and towards the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// `http.<ingress>.downstream_rq_active`.
    pub(crate) downstream: u64,
    /// `cluster.<application>.upstream_rq_active`.
    pub(crate) upstream: u64,
}

/// Reads the two gauges. A gauge that is absent is an error and not a zero.
///
/// # Errors
/// What went wrong, for the log.
pub(crate) async fn in_flight() -> Result<InFlight, String> {
    let path = "/stats?filter=downstream_rq_active%7Cupstream_rq_active";
    let (_, body) = exchange(http::Method::GET, path).await?;
    read_gauges(&body)
}

fn read_gauges(body: &str) -> Result<InFlight, String> {
    // Names hold `|`, `.` and `:`; the value stands after the last `: `.
    let gauges: HashMap<&str, &str> = body.lines().filter_map(|l| l.rsplit_once(": ")).collect();
    let read = |name: String| {
        let value = gauges.get(name.as_str()).ok_or_else(|| format!("no gauge {name}"))?;
        value.parse().map_err(|_| format!("{name} is {value}"))
    };
    Ok(InFlight {
        downstream: read(format!("http.{STAT_PREFIX}.downstream_rq_active"))?,
        upstream: read(format!("cluster.{APP_CLUSTER}.upstream_rq_active"))?,
    })
}

/// Tells Envoy to drain its listeners gracefully; returns the status and what it said.
///
/// # Errors
/// What went wrong, for the log.
pub(crate) async fn drain_listeners() -> Result<(u16, String), String> {
    exchange(http::Method::POST, "/drain_listeners?graceful").await
}

async fn exchange(method: http::Method, path: &str) -> Result<(u16, String), String> {
    let work = async {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, ENVOY_ADMIN_PORT))
            .await
            .map_err(|e| e.to_string())?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| e.to_string())?;
        let connection = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "envoy")
            .body(Empty::<Bytes>::new())
            .map_err(|e| e.to_string())?;
        let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
        let status = response.status().as_u16();
        let body = response
            .into_body()
            .collect()
            .await
            .map_err(|e| e.to_string())?
            .to_bytes();
        connection.abort();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    };
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| Err("no answer within 3s".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_poll_itself_and_the_health_check_are_not_counted() {
        let body = "cluster.inbound|8000||.upstream_rq_active: 2\n\
                    cluster.inbound|8000||.upstream_rq_active_overflow: 9\n\
                    cluster.inbound|8001||.upstream_rq_active: 1\n\
                    http.admin.downstream_rq_active: 1\n\
                    http.inbound_0.0.0.0_8080.downstream_rq_active: 3\n";
        assert_eq!(
            read_gauges(body),
            Ok(InFlight {
                downstream: 3,
                upstream: 2
            })
        );
    }

    #[test]
    fn an_absent_gauge_is_no_zero() {
        let error = read_gauges("http.admin.downstream_rq_active: 1\n").expect_err("absent");
        assert_eq!(error, "no gauge http.inbound_0.0.0.0_8080.downstream_rq_active");
    }
}
