//! What a container's preStop hook runs: it asks the health checker and waits.

use std::net::Ipv4Addr;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::HC_PORT;

/// Begins the drain if `drain` is set, then waits until the health checker is CLOSED.
///
/// # Errors
/// The health checker cannot be reached or goes away: the hook has failed.
pub(crate) async fn run(who: &str, drain: bool) -> Result<(), String> {
    if drain {
        ask(Method::POST, &format!("/terminate?who={who}")).await?;
    }
    ask(Method::GET, &format!("/wait?who={who}")).await
}

async fn ask(method: Method, path: &str) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("cannot ask the health checker for {path}: {e}");
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, HC_PORT))
        .await
        .map_err(|e| failed(&e))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| failed(&e))?;
    let connection = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "hc")
        .body(Empty::<Bytes>::new())
        .map_err(|e| failed(&e))?;
    let response = sender.send_request(request).await.map_err(|e| failed(&e))?;
    if !response.status().is_success() {
        return Err(failed(&response.status()));
    }
    response.into_body().collect().await.map_err(|e| failed(&e))?;
    connection.abort();
    Ok(())
}
