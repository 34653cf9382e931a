//! HTTP/2: several requests on one connection, REFUSED_STREAM, RST_STREAM, GOAWAY.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use gtrun::evidence::client::Outcome;
use gtrun::world::port::{ConnectionUse, HttpRequest, Protocol};
use h2::Reason;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::{client, get, request};

/// An HTTP/2 server: what it does with a stream is in the path.
async fn start() -> (SocketAddr, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address");
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    (address, AbortOnDropHandle::new(task))
}

async fn serve(stream: tokio::net::TcpStream) {
    let mut connection = h2::server::handshake(stream).await.expect("preface");
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let head = http::Response::builder().status(200).body(()).expect("head");
        match path.as_str() {
            "/refuse" => respond.send_reset(Reason::REFUSED_STREAM),
            "/internal" => respond.send_reset(Reason::INTERNAL_ERROR),
            "/cut" => {
                let mut body = respond.send_response(head, false).expect("head");
                body.send_data(Bytes::from_static(b"part"), false).expect("data");
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    body.send_reset(Reason::INTERNAL_ERROR);
                });
            }
            "/goaway" => {
                connection.graceful_shutdown();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let mut body = respond.send_response(head, false).expect("head");
                    body.send_data(Bytes::from_static(b"whole"), true).expect("data");
                });
            }
            _ => {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let mut body = respond.send_response(head, false).expect("head");
                    body.send_data(Bytes::from_static(b"whole"), true).expect("data");
                });
            }
        }
    }
}

fn h2(path: &str) -> HttpRequest {
    HttpRequest {
        protocol: Protocol::H2,
        connection: ConnectionUse::Named("one".to_owned()),
        ..request(path)
    }
}

#[tokio::test]
async fn requests_run_side_by_side_on_one_connection() {
    let (address, _server) = start().await;
    let client = client(&format!("http://{address}"), None, None);
    let (a, b) = futures::future::join(get(&client, h2("/a")), get(&client, h2("/b"))).await;
    for result in [&a, &b] {
        assert_eq!(
            (result.outcome, result.bytes, result.connection),
            (Outcome::Ok, 5, Some(1)),
            "{result:?}"
        );
        assert_eq!(result.goaway, None);
    }
    assert_eq!([a.ordinal, b.ordinal], [Some(1), Some(2)]);
    assert!(b.started < a.ended && a.started < b.ended);
}

#[tokio::test]
async fn stream_errors_have_their_outcomes_and_leave_the_connection() {
    let (address, _server) = start().await;
    let client = client(&format!("http://{address}"), None, None);
    for (path, outcome, status) in [
        ("/refuse", Outcome::RefusedStream, None),
        ("/internal", Outcome::Reset, None),
        ("/cut", Outcome::Truncated, Some(200)),
        ("/", Outcome::Ok, Some(200)),
    ] {
        let result = get(&client, h2(path)).await;
        assert_eq!((result.outcome, result.status), (outcome, status), "{path}: {result:?}");
        assert_eq!(result.connection, Some(1), "{path}");
    }
}

#[tokio::test]
async fn a_goaway_is_seen_and_the_next_request_takes_another_connection() {
    let (address, _server) = start().await;
    let client = client(&format!("http://{address}"), None, None);
    let leaving = get(&client, h2("/goaway")).await;
    assert_eq!((leaving.outcome, leaving.bytes), (Outcome::Ok, 5), "{leaving:?}");
    let goaway = leaving.goaway.expect("seen");
    assert!(leaving.started < goaway && goaway < leaving.ended);
    let next = get(&client, h2("/")).await;
    assert_eq!(
        (next.outcome, next.connection, next.goaway),
        (Outcome::Ok, Some(2), None),
        "{next:?}"
    );
}

#[tokio::test]
async fn a_server_without_http2_is_a_tls_error() {
    let server = super::server::Tls::start("echo.example.test").await;
    let url = format!("https://echo.example.test:{}", server.address.port());
    let client = client(&url, Some(&server.address.to_string()), Some(&server.ca_pem));
    let result = get(&client, h2("/")).await;
    assert_eq!((result.outcome, result.status), (Outcome::TlsError, None), "{result:?}");
}
