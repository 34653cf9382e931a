//! Where requests go: the entry point of the environment.

use http::Uri;

use crate::world::port::{ErrorKind, WorldError};

/// The entry point, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `https`.
    pub(super) tls: bool,
    /// `Host` and `:authority`: host with its port when that is not the scheme's own.
    pub(super) authority: String,
    /// Name in the TLS handshake, and the one that the certificate must bear.
    pub(super) server_name: String,
    /// Where to connect: host or address, and port.
    pub(super) target: (String, u16),
    /// PEM of the authorities to trust; `None`: those of this machine.
    pub(super) ca_pem: Option<Vec<u8>>,
}

impl Entry {
    /// From `entry` of the environment.
    ///
    /// `connect_to` is `host:port` or `[v6]:port`; `Host` and the name in the TLS handshake stay those of the URL.
    ///
    /// # Errors
    ///
    /// `Unsupported` when the URL or `connect_to` makes no sense.
    pub fn new(url: &str, connect_to: Option<&str>, ca_pem: Option<Vec<u8>>) -> Result<Self, WorldError> {
        let bad = |what: &str, text: &str, help: &str| {
            WorldError::new(
                ErrorKind::Unsupported,
                format!("read `{what}: {text}`"),
                "not an address",
            )
            .with_help(help)
        };
        let bad_url = || bad("entry.url", url, "write http://host[:port] or https://host[:port]");
        let uri: Uri = url.parse().map_err(|_| bad_url())?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad_url()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(bad_url)?;
        let standard = if tls { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(standard);
        let server_name = host.trim_matches(['[', ']']).to_owned();
        let target = match connect_to {
            None => (server_name.clone(), port),
            Some(text) => split_port(text).ok_or_else(|| {
                bad(
                    "entry.connect_to",
                    text,
                    "write an address and a port: 203.0.113.211:443",
                )
            })?,
        };
        let authority = if port == standard {
            host.to_owned()
        } else {
            format!("{host}:{port}")
        };
        Ok(Self {
            tls,
            authority,
            server_name,
            target,
            ca_pem,
        })
    }
}

/// `host:port`, `[v6]:port`.
fn split_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    (!host.is_empty()).then_some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_name_are_those_of_the_url() {
        let entry = Entry::new("https://service-a.example.test", Some("203.0.113.211:8443"), None).expect("valid");
        assert_eq!(entry.authority, "service-a.example.test");
        assert_eq!(entry.server_name, "service-a.example.test");
        assert_eq!(entry.target, ("203.0.113.211".to_owned(), 8443));
        let entry = Entry::new("http://[::1]:8080", None, None).expect("valid");
        assert_eq!(
            (entry.authority.as_str(), entry.target),
            ("[::1]:8080", ("::1".to_owned(), 8080))
        );
    }

    #[test]
    fn nonsense_is_an_error() {
        for (url, connect_to) in [
            ("service-a:443", None),
            ("ftp://x", None),
            ("https://", None),
            ("http://x", Some("10.0.0.1")),
            ("http://x", Some("::1:80")),
            ("http://x", Some("10.0.0.1:http")),
        ] {
            assert!(Entry::new(url, connect_to, None).is_err(), "{url} {connect_to:?}");
        }
    }
}
