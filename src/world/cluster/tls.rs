//! TLS: one provider (ring) for the whole process, and the client's trust anchors.

use std::sync::{Arc, Once};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Makes ring the provider of this process; further calls do nothing.
pub fn install_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// What a client trusts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trust<'a> {
    /// The certificates of a PEM file, and nothing else.
    Pem(&'a [u8]),
    /// What this machine trusts.
    System,
}

/// A client's configuration with these protocols in ALPN; the error is one sentence.
pub(super) fn client_config(trust: Trust<'_>, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, String> {
    install_provider();
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::Pem(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|e| format!("not a PEM certificate: {e:?}"))?;
                roots
                    .add(certificate)
                    .map_err(|e| format!("no usable certificate: {e}"))?;
            }
            if roots.is_empty() {
                return Err("no certificate in the file".to_owned());
            }
        }
        Trust::System => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err("this machine trusts no certificate authority; name one with `ca_file`".to_owned());
            }
        }
    }
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    // Session tickets would let a second handshake differ from the first; every connection is measured alike.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_refused() {
        for text in [
            "",
            "hello\n",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(client_config(Trust::Pem(text.as_bytes()), &[]).is_err(), "{text:?}");
        }
    }
}
