//! The channel protocol over WebSocket: the first byte (or digit) of a frame is its channel.

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role};

use super::super::status::Status;

/// The protocols in the order in which the server prefers them.
const OFFERS: [(&str, Protocol); 5] = [
    (
        "v5.channel.k8s.io",
        Protocol {
            version: 5,
            base64: false,
        },
    ),
    (
        "v4.channel.k8s.io",
        Protocol {
            version: 4,
            base64: false,
        },
    ),
    (
        "v4.base64.channel.k8s.io",
        Protocol {
            version: 4,
            base64: true,
        },
    ),
    (
        "channel.k8s.io",
        Protocol {
            version: 1,
            base64: false,
        },
    ),
    (
        "base64.channel.k8s.io",
        Protocol {
            version: 1,
            base64: true,
        },
    ),
];

/// What was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Protocol {
    /// 5 knows how to close one channel, 4 ends with a Status, 1 with plain text.
    pub(super) version: u8,
    /// Frames are text: a digit, then base64.
    base64: bool,
}

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Where frames go.
pub(super) struct Sender {
    protocol: Protocol,
    sink: SplitSink<Socket, Message>,
}

/// Where frames come from.
pub(super) struct Receiver {
    protocol: Protocol,
    stream: SplitStream<Socket>,
}

/// A frame from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// Bytes on a channel.
    Data(u8, Bytes),
    /// The client will send no more on a channel (version 5).
    Closed(u8),
}

/// Agrees on a protocol and answers 101; the connection is handed to `serve` once it is upgraded.
///
/// # Errors
/// 400 when no upgrade was asked for.
pub(super) fn upgrade<F>(
    request: &mut Request<hyper::body::Incoming>,
    serve: impl FnOnce(Protocol, Sender, Receiver) -> F + Send + 'static,
) -> Result<Response<Body>, Status>
where
    F: Future<Output = ()> + Send,
{
    let headers = request.headers();
    let says = |name, word: &str| {
        let lists = headers
            .get_all(name)
            .iter()
            .filter_map(|v: &HeaderValue| v.to_str().ok());
        lists
            .flat_map(|v| v.split(','))
            .any(|v| v.trim().eq_ignore_ascii_case(word))
    };
    let key = headers.get(SEC_WEBSOCKET_KEY).map(|k| derive_accept_key(k.as_bytes()));
    let (true, true, true, Some(key)) = (
        says(CONNECTION, "upgrade"),
        says(UPGRADE, "websocket"),
        headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|v| v == "13"),
        key,
    ) else {
        return Err(Status::bad_request("Upgrade request required"));
    };
    let Some((name, protocol)) = agree(headers) else {
        // No protocol in common: 403 with an empty body, and the connection ends.
        let mut refusal = Response::new(Body::empty());
        *refusal.status_mut() = StatusCode::FORBIDDEN;
        refusal
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        return Ok(refusal);
    };
    let upgraded = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgraded.await else { return };
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
        let (sink, stream) = socket.split();
        serve(protocol, Sender { protocol, sink }, Receiver { protocol, stream }).await;
    });
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answered = answer.headers_mut();
    answered.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answered.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(key) = HeaderValue::from_str(&key) {
        answered.insert(SEC_WEBSOCKET_ACCEPT, key);
    }
    answered.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
    Ok(answer)
}

/// The best protocol that both know. Who offers none is answered with an empty header and the oldest one.
fn agree(headers: &HeaderMap) -> Option<(&'static str, Protocol)> {
    let lists = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|v| v.to_str().ok());
    let offered: Vec<&str> = lists
        .flat_map(|v| v.split(','))
        .map(str::trim)
        .filter(|v| !v.is_empty())
        .collect();
    if offered.is_empty() {
        return Some((
            "",
            Protocol {
                version: 1,
                base64: false,
            },
        ));
    }
    OFFERS.iter().find(|(name, _)| offered.contains(name)).copied()
}

impl Sender {
    /// Sends bytes on a channel.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) async fn send(&mut self, channel: u8, bytes: &[u8]) -> Result<(), ()> {
        let message = if self.protocol.base64 {
            Message::text(format!("{channel}{}", BASE64.encode(bytes)))
        } else {
            let mut frame = Vec::with_capacity(bytes.len() + 1);
            frame.push(channel);
            frame.extend_from_slice(bytes);
            Message::binary(frame)
        };
        self.sink.send(message).await.map_err(|_| ())
    }

    /// Ends the connection: close code 1000, no reason.
    pub(super) async fn close(mut self) {
        let frame = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        let _ = self.sink.send(Message::Close(Some(frame))).await;
        let _ = self.sink.close().await;
    }
}

impl Receiver {
    /// The next frame; none when the client is gone.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        loop {
            let (channel, bytes) = match self.stream.next().await?.ok()? {
                Message::Binary(frame) if self.protocol.base64 => self.decode(&frame)?,
                Message::Binary(frame) if frame.is_empty() => continue,
                Message::Binary(frame) => (frame[0], frame.slice(1..)),
                Message::Text(text) => self.decode(text.as_bytes())?,
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            return Some(match (self.protocol.version, channel, bytes.first()) {
                (5, 255, Some(closed)) => Frame::Closed(*closed),
                _ => Frame::Data(channel, bytes),
            });
        }
    }

    fn decode(&self, frame: &[u8]) -> Option<(u8, Bytes)> {
        let (digit, text) = frame.split_first()?;
        if !self.protocol.base64 {
            return Some((*digit, Bytes::copy_from_slice(text)));
        }
        Some((digit.checked_sub(b'0')?, BASE64.decode(text).ok()?.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(offers: &[&'static str]) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        for offer in offers {
            headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(offer));
        }
        agree(&headers).map(|(name, _)| name)
    }

    #[test]
    fn the_newest_protocol_wins_whatever_the_order() {
        assert_eq!(
            offered(&["v4.channel.k8s.io,v5.channel.k8s.io"]),
            Some("v5.channel.k8s.io")
        );
        assert_eq!(offered(&["base64.channel.k8s.io"]), Some("base64.channel.k8s.io"));
        assert_eq!(offered(&[]), Some(""));
        assert_eq!(offered(&["v3.channel.k8s.io"]), None);
    }
}
