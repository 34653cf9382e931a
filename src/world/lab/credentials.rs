//! The API server's certificate, the tokens of its users, and the kubeconfig that holds both.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use super::LabError;
use super::kubernetes::api::{Role, User};
use super::kubernetes::manifest::NAMESPACE;
use super::state::write_private;

/// What the API server shows and what its clients trust.
pub(crate) struct Tls {
    /// For the server's connections.
    pub(crate) acceptor: TlsAcceptor,
    /// For clients, in PEM.
    pub(crate) authority: String,
}

/// Makes an authority for this lab alone and a certificate for loopback.
///
/// # Errors
/// What the library says.
pub(crate) fn tls(lab: &str) -> Result<Tls, LabError> {
    let failed =
        |e: &dyn std::fmt::Display| LabError::NotReady(format!("cannot make the API server's certificate: {e}"));
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    authority
        .distinguished_name
        .push(DnType::CommonName, format!("gtrun lab {lab}"));
    let key = KeyPair::generate().map_err(|e| failed(&e))?;
    let authority = CertifiedIssuer::self_signed(authority, key).map_err(|e| failed(&e))?;
    let mut server = CertificateParams::new(vec!["localhost".to_owned()]).map_err(|e| failed(&e))?;
    server
        .subject_alt_names
        .push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
    server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    let key = KeyPair::generate().map_err(|e| failed(&e))?;
    let certificate = server.signed_by(&key, &authority).map_err(|e| failed(&e))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(&e))?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .map_err(|e| failed(&e))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Tls {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        authority: authority.pem(),
    })
}

/// The users: one who may do everything, one who may look, one who may do nothing.
pub(crate) fn users() -> Vec<User> {
    [
        ("gtrun-lab-admin", Role::Admin),
        ("gtrun-lab-viewer", Role::Viewer),
        ("gtrun-lab-nobody", Role::Nobody),
    ]
    .map(|(name, role)| {
        let secret: [u8; 24] = rand::random();
        let token = secret.iter().map(|b| format!("{b:02x}")).collect();
        User {
            name: name.to_owned(),
            token,
            role,
        }
    })
    .to_vec()
}

/// The name of a user's context.
pub(crate) fn context(lab: &str, role: Role) -> String {
    match role {
        Role::Admin => format!("gtrun-{lab}"),
        Role::Viewer => format!("gtrun-{lab}-viewer"),
        Role::Nobody => format!("gtrun-{lab}-nobody"),
    }
}

/// Writes the kubeconfig, as JSON, which every reader of YAML reads.
///
/// # Errors
/// The file system refuses.
pub(crate) fn write_kubeconfig(
    path: &Path,
    lab: &str,
    url: &str,
    authority: &str,
    users: &[User],
) -> Result<(), LabError> {
    let cluster = format!("gtrun-{lab}");
    let contexts: Vec<Value> = users
        .iter()
        .map(|u| {
            let context = json!({"cluster": cluster, "user": u.name, "namespace": NAMESPACE});
            json!({"name": context_name(lab, u), "context": context})
        })
        .collect();
    let config = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {
            "server": url, "certificate-authority-data": BASE64.encode(authority),
        }}],
        "users": users.iter().map(|u| json!({"name": u.name, "user": {"token": u.token}})).collect::<Vec<_>>(),
        "contexts": contexts, "current-context": context(lab, Role::Admin), "preferences": {},
    });
    write_private(path, format!("{config:#}\n").as_bytes())
}

fn context_name(lab: &str, user: &User) -> String {
    context(lab, user.role)
}
