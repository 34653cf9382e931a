//! The HTTP client against real sockets: every outcome of its closed set, and what it says about connections.

mod goaway;
mod server;

use std::sync::{Arc, Mutex};

use gtrun::evidence::client::Outcome;
use gtrun::time::Duration;
use gtrun::world::cluster::SystemClock;
use gtrun::world::cluster::http::{Client, Entry};
use gtrun::world::port::{Clock, ConnectionUse, HttpClient, HttpRequest, HttpResult, HttpStage, Protocol};
use server::{Ending, Server};
use tokio_util::sync::CancellationToken;

pub(crate) fn request(path: &str) -> HttpRequest {
    HttpRequest {
        method: "GET".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: None,
        timeout: Duration::from_secs(5),
        connection: ConnectionUse::New,
        protocol: Protocol::H1,
        read_rate: None,
        stop_after: None,
        cancel: CancellationToken::new(),
        keep_body: 1024,
    }
}

pub(crate) fn client(url: &str, connect_to: Option<&str>, ca_pem: Option<&str>) -> Client {
    let entry = Entry::new(url, connect_to, ca_pem.map(|pem| pem.as_bytes().to_vec())).expect("entry");
    Client::new(entry, Arc::new(SystemClock::start())).expect("client")
}

pub(crate) async fn get(client: &Client, request: HttpRequest) -> HttpResult {
    client.send(Arc::new(request), None).await
}

fn over(use_: ConnectionUse, path: &str) -> HttpRequest {
    HttpRequest {
        connection: use_,
        ..request(path)
    }
}

#[tokio::test]
async fn every_ending_has_its_outcome() {
    let cases = [
        (Ending::Whole, Outcome::Ok, Some(200)),
        (Ending::Status503, Outcome::HttpError, Some(503)),
        (Ending::ResetOnAccept, Outcome::Reset, None),
        (Ending::CloseOnAccept, Outcome::ClosedEarly, None),
        (Ending::ResetAfterRequest, Outcome::Reset, None),
        (Ending::CloseAfterRequest, Outcome::ClosedEarly, None),
        (Ending::HalfHeadThenClose, Outcome::ClosedEarly, None),
        (Ending::HalfHeadThenReset, Outcome::Reset, None),
        (Ending::ShortBodyThenClose, Outcome::Truncated, Some(200)),
        (Ending::ShortChunksThenClose, Outcome::Truncated, Some(200)),
        (Ending::ShortBodyThenReset, Outcome::Truncated, Some(200)),
        (Ending::NotHttp, Outcome::ClosedEarly, None),
        (Ending::NoAnswer, Outcome::Timeout, None),
        (Ending::SlowBody, Outcome::Timeout, Some(200)),
    ];
    for (ending, outcome, status) in cases {
        let server = Server::start(ending).await;
        let client = client(&server.url(), None, None);
        let result = get(
            &client,
            HttpRequest {
                timeout: Duration::from_millis(400),
                ..request("/x")
            },
        )
        .await;
        assert_eq!(
            (result.outcome, result.status),
            (outcome, status),
            "{ending:?}: {result:?}"
        );
        // Whatever happened, the connection is named by both its ends, and it was asked for once.
        assert_eq!(
            result.remote.as_deref(),
            Some(server.address.to_string().as_str()),
            "{ending:?}"
        );
        assert_eq!(result.local_port, Some(server.peer(0).port()), "{ending:?}: {result:?}");
        assert_eq!(server.connections(), 1, "{ending:?}: sent again");
        assert!(result.started <= result.ended, "{ending:?}");
        assert_eq!(
            result.error.is_none(),
            outcome.whole() == Some(true),
            "{ending:?}: {result:?}"
        );
    }
}

#[tokio::test]
async fn a_refused_attempt_has_a_local_port() {
    let free = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        listener.local_addr().expect("address")
    };
    let result = get(&client(&format!("http://{free}"), None, None), request("/")).await;
    assert_eq!(result.outcome, Outcome::Refused, "{result:?}");
    assert!(result.local_port.is_some_and(|port| port != 0), "{result:?}");
    assert_eq!(result.remote, Some(free.to_string()));
    assert_eq!((result.connected, result.connection, result.sent), (None, None, None));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_dns_error() {
    let result = get(&client("http://no-such-host.invalid", None, None), request("/")).await;
    assert_eq!(result.outcome, Outcome::DnsError, "{result:?}");
    assert_eq!(result.local_port, None);
}

#[tokio::test]
async fn the_stages_come_in_order_and_bracket_the_request() {
    let server = Server::start(Ending::Whole).await;
    let client = client(&server.url(), None, None);
    let stages = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&stages);
    let watcher = Arc::new(move |stage: HttpStage| seen.lock().expect("lock").push(stage));
    let result = client.send(Arc::new(request("/x?a=b")), Some(watcher)).await;
    let stages = stages.lock().expect("lock").clone();
    let [
        HttpStage::Sending { at, local_port, remote },
        HttpStage::Answering {
            at: answered,
            status: 200,
        },
    ] = &stages[..]
    else {
        panic!("{stages:?}");
    };
    assert_eq!(Some(*local_port), result.local_port);
    assert_eq!(Some(remote), result.remote.as_ref());
    let order = [
        Some(result.started),
        result.connected,
        Some(*at),
        result.sent,
        result.first_byte,
        Some(*answered),
        Some(result.ended),
    ];
    let order: Vec<_> = order.into_iter().map(|t| t.expect("known")).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!((result.body.as_slice(), result.bytes), (&b"ok"[..], 2));
    let head = server.requests().remove(0);
    assert!(head.starts_with("GET /x?a=b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {}\r\n", server.address)), "{head}");
    assert!(!head.contains("connection:"), "{head}");
}

#[tokio::test]
async fn connections_are_new_pooled_or_named() {
    let server = Server::start(Ending::KeepAlive).await;
    let client = client(&server.url(), None, None);
    let pool = || ConnectionUse::Pool("steady".to_owned());
    let named = || ConnectionUse::Named("mine".to_owned());
    let mut seen = Vec::new();
    for use_ in [
        ConnectionUse::New,
        ConnectionUse::New,
        pool(),
        pool(),
        named(),
        pool(),
        named(),
    ] {
        let result = get(&client, over(use_, "/")).await;
        assert_eq!(result.outcome, Outcome::Ok, "{result:?}");
        seen.push((result.connection.expect("known"), result.ordinal.expect("known")));
    }
    assert_eq!(seen, [(1, 1), (2, 1), (3, 1), (3, 2), (4, 1), (3, 3), (4, 2)]);
    assert_eq!(server.connections(), 4);
    // Two at once need two connections of a pool, and wait for each other on a named one.
    let two = |use_: fn() -> ConnectionUse| {
        let (a, b) = (over(use_(), "/slow"), over(use_(), "/slow"));
        futures::future::join(get(&client, a), get(&client, b))
    };
    let (a, b) = two(|| ConnectionUse::Pool("steady".to_owned())).await;
    assert_ne!(a.connection, b.connection);
    let (a, b) = two(|| ConnectionUse::Named("mine".to_owned())).await;
    assert_eq!((a.connection, b.connection), (Some(4), Some(4)));
    assert_eq!((a.ordinal, b.ordinal), (Some(3), Some(4)));
    assert!(b.sent >= Some(a.ended), "{a:?} {b:?}");
}

#[tokio::test]
async fn a_kept_connection_found_closed_is_replaced_and_one_that_breaks_is_reported() {
    // Closed by the server while idle: another connection is taken, nothing was sent on the old one.
    let server = Server::start(Ending::CloseWhenIdle).await;
    let client = client(&server.url(), None, None);
    let pool = || over(ConnectionUse::Pool("p".to_owned()), "/");
    assert_eq!(get(&client, pool()).await.outcome, Outcome::Ok);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let second = get(&client, pool()).await;
    assert_eq!(
        (second.outcome, second.connection, second.ordinal),
        (Outcome::Ok, Some(2), Some(1))
    );
    assert_eq!(server.requests().len(), 2);

    // Closed or reset in answer to a request: an outcome, never sent again.
    for (ending, outcome) in [
        (Ending::CloseOnSecond, Outcome::ClosedEarly),
        (Ending::ResetOnSecond, Outcome::Reset),
    ] {
        let server = Server::start(ending).await;
        let client = self::client(&server.url(), None, None);
        assert_eq!(get(&client, pool()).await.outcome, Outcome::Ok);
        let second = get(&client, pool()).await;
        assert_eq!((second.outcome, second.ordinal), (outcome, Some(2)), "{second:?}");
        assert_eq!((server.connections(), server.requests().len()), (1, 2));
    }
}

#[tokio::test]
async fn a_stream_can_be_stopped_read_slowly_or_given_up() {
    let server = Server::start(Ending::EndlessEvents).await;
    let client = client(&server.url(), None, None);
    let stopped = get(
        &client,
        HttpRequest {
            stop_after: Some(Duration::from_millis(300)),
            ..request("/events")
        },
    )
    .await;
    assert_eq!(
        (stopped.outcome, stopped.status),
        (Outcome::Ok, Some(200)),
        "{stopped:?}"
    );
    assert!(stopped.bytes > 0 && stopped.error.is_none());
    let took = stopped.ended - stopped.started;
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(3),
        "{took}"
    );

    let cancel = CancellationToken::new();
    let aborted = HttpRequest {
        cancel: cancel.clone(),
        ..request("/events")
    };
    let (aborted, ()) = futures::future::join(get(&client, aborted), async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        cancel.cancel();
    })
    .await;
    assert_eq!((aborted.outcome, aborted.status), (Outcome::Aborted, Some(200)));

    // Nothing to stop: it had not begun.
    let silent = Server::start(Ending::NoAnswer).await;
    let silent = get(
        &self::client(&silent.url(), None, None),
        HttpRequest {
            stop_after: Some(Duration::from_millis(100)),
            ..request("/")
        },
    )
    .await;
    assert_eq!((silent.outcome, silent.status), (Outcome::Timeout, None));

    let server = Server::start(Ending::Megabyte).await;
    let slow = get(
        &self::client(&server.url(), None, None),
        HttpRequest {
            read_rate: Some(1_000_000.0),
            keep_body: 3,
            ..request("/download")
        },
    )
    .await;
    assert_eq!((slow.outcome, slow.bytes, slow.body.len()), (Outcome::Ok, 1_000_000, 3));
    let took = slow.ended - slow.started;
    assert!(
        took >= Duration::from_millis(900) && took < Duration::from_secs(4),
        "{took}"
    );
    // The server could not run ahead: its last byte left shortly before ours arrived.
    assert!(server.last_write() >= took.to_std() - std::time::Duration::from_millis(600));
}

#[tokio::test]
async fn tls_keeps_host_and_name_and_says_what_is_wrong() {
    let server = server::Tls::start("echo.example.test").await;
    let url = format!("https://echo.example.test:{}", server.address.port());
    let to = server.address.to_string();
    let good = get(&client(&url, Some(&to), Some(&server.ca_pem)), request("/")).await;
    assert_eq!(good.outcome, Outcome::Ok, "{good:?}");
    let body = String::from_utf8(good.body).expect("text");
    let host = format!("host: echo.example.test:{}", server.address.port());
    assert_eq!(body, format!("sni echo.example.test, {host}"));

    let other = server::Tls::start("other.example.test").await;
    let plain = Server::start(Ending::SpeaksFirst).await;
    let closing = Server::start(Ending::CloseOnAccept).await;
    for (to, ca, outcome) in [
        (other.address, &other.ca_pem, Outcome::TlsError),
        (server.address, &other.ca_pem, Outcome::TlsError),
        (plain.address, &server.ca_pem, Outcome::TlsError),
        (closing.address, &server.ca_pem, Outcome::ClosedEarly),
    ] {
        let result = get(&client(&url, Some(&to.to_string()), Some(ca)), request("/")).await;
        assert_eq!((result.outcome, result.status), (outcome, None), "{to}: {result:?}");
        assert!(result.local_port.is_some() && result.error.is_some());
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_never_sent() {
    let server = Server::start(Ending::Whole).await;
    let client = client(&server.url(), None, None);
    let bad_header = HttpRequest {
        headers: vec![("x".to_owned(), "a\nb".to_owned())],
        ..request("/")
    };
    for bad in [request("no-slash"), request("/a b"), bad_header] {
        let result = get(&client, bad).await;
        assert_eq!(result.outcome, Outcome::Aborted, "{result:?}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_clock_of_a_result_is_the_one_given() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let server = Server::start(Ending::Whole).await;
    let entry = Entry::new(&server.url(), None, None).expect("entry");
    let client = Client::new(entry, Arc::clone(&clock)).expect("client");
    let before = clock.now();
    let result = get(&client, request("/")).await;
    assert!(before <= result.started && result.ended <= clock.now());
}
