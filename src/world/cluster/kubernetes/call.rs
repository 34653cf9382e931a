//! Calls of the API by their own paths: answers stay as they came.

use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::world::cluster::error;
use crate::world::port::{ApiAnswer, ErrorKind, WorldError};

/// A call that is about to be made.
pub(super) struct Call {
    method: Method,
    path: String,
    query: String,
    content_type: &'static str,
    body: Vec<u8>,
}

/// Content types of a patch.
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";
/// Only this keeps lists that are keyed by name.
pub(super) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// Longest wait for a whole answer.
const ANSWER: Duration = Duration::from_secs(20);

impl Call {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: String::new(),
            content_type: "application/json",
            body: Vec::new(),
        }
    }

    pub(super) fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push(if self.query.is_empty() { '?' } else { '&' });
        self.query.push_str(name);
        self.query.push('=');
        self.query.push_str(&encode(value));
        self
    }

    pub(super) fn body(mut self, content_type: &'static str, body: &Value) -> Self {
        self.content_type = content_type;
        self.body = body.to_string().into_bytes();
        self
    }

    fn request(&self) -> Result<Request<Body>, http::Error> {
        let mut request = Request::builder()
            .method(&self.method)
            .uri(format!("{}{}", self.path, self.query))
            .header("accept", "application/json");
        if !self.body.is_empty() {
            request = request.header("content-type", self.content_type);
        }
        request.body(Body::from(self.body.clone()))
    }
}

/// Everything but letters, digits and `-._~`, as RFC 3986 has it.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Sends a call and gives the answer's head; an error status is an error with the words of the API.
pub(super) async fn open(client: &Client, doing: &str, call: &Call) -> Result<http::Response<Body>, WorldError> {
    let request = call
        .request()
        .map_err(|e| WorldError::new(ErrorKind::Failed, doing, e.to_string()))?;
    let response = client.send(request).await.map_err(|e| error::kubernetes(doing, e))?;
    let status = response.status().as_u16();
    if status < 400 {
        return Ok(response);
    }
    let body = match response.into_body().collect().await {
        Ok(body) => body.to_bytes().to_vec(),
        Err(_) => Vec::new(),
    };
    Err(error::api_status(doing, status, &body))
}

/// Sends a call once and reads the whole answer.
pub(super) async fn send(client: &Client, doing: &str, call: &Call) -> Result<ApiAnswer, WorldError> {
    let answer = async {
        let response = open(client, doing, call).await?;
        let status = response.status().as_u16();
        let body = response
            .into_body()
            .collect()
            .await
            .map_err(|e| error::kubernetes(doing, e))?;
        let object = serde_json::from_slice(&body.to_bytes())
            .map_err(|e| WorldError::new(ErrorKind::Failed, doing, format!("the answer is not JSON: {e}")))?;
        Ok(ApiAnswer { status, object })
    };
    tokio::time::timeout(ANSWER, answer)
        .await
        .unwrap_or_else(|_| Err(error::late(doing)))
}

/// Sends a call that changes nothing; again when its answer was lost.
pub(super) async fn read(client: &Client, doing: &str, call: &Call) -> Result<Value, WorldError> {
    let answer = match send(client, doing, call).await {
        Err(error) if error.kind == ErrorKind::Interrupted => send(client, doing, call).await?,
        other => other?,
    };
    Ok(answer.object)
}

/// Reads a whole collection, page by page. The last page's `resourceVersion` is that of the whole.
pub(super) async fn list(
    client: &Client,
    doing: &str,
    path: &str,
    selectors: &[(&str, &str)],
) -> Result<(Vec<Value>, String), WorldError> {
    let mut items = Vec::new();
    let mut next = String::new();
    loop {
        let mut call = Call::get(path).query("limit", "500");
        for (name, value) in selectors {
            call = call.query(name, value);
        }
        if !next.is_empty() {
            call = call.query("continue", &next);
        }
        let page = match read(client, doing, &call).await {
            // The pages before are too old: from the beginning.
            Err(error) if error.status() == Some(410) && !next.is_empty() => {
                items.clear();
                next.clear();
                continue;
            }
            other => other?,
        };
        let (kind, version) = (&page["kind"], &page["apiVersion"]);
        let kind = kind.as_str().unwrap_or_default().trim_end_matches("List").to_owned();
        let version = version.as_str().unwrap_or_default().to_owned();
        if let Some(list) = page["items"].as_array() {
            for item in list {
                let mut item = item.clone();
                // Items of a list come without their kind; a watch names it.
                if let Some(object) = item.as_object_mut() {
                    object.entry("kind").or_insert_with(|| Value::from(kind.clone()));
                    object
                        .entry("apiVersion")
                        .or_insert_with(|| Value::from(version.clone()));
                }
                items.push(item);
            }
        }
        let meta = &page["metadata"];
        next = meta["continue"].as_str().unwrap_or_default().to_owned();
        if next.is_empty() {
            let version = meta["resourceVersion"].as_str().unwrap_or_default().to_owned();
            return Ok((items, version));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded() {
        let call = Call::get("/api/v1/pods")
            .query("labelSelector", "app=a,tier in (b)")
            .query("x", "ü");
        assert_eq!(call.query, "?labelSelector=app%3Da%2Ctier%20in%20%28b%29&x=%C3%BC");
    }
}
