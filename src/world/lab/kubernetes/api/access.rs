//! Who asks, and what they may do.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::object::{now, text};

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Everything.
    Admin,
    /// Look at everything; nothing else, and no exec.
    Viewer,
    /// Nothing.
    Nobody,
}

/// Somebody who can log in with a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct User {
    /// As refusals name it.
    pub(crate) name: String,
    /// Sent as `Authorization: Bearer TOKEN`.
    pub(crate) token: String,
    /// What they may do.
    pub(crate) role: Role,
}

impl User {
    /// Whether a verb on a kind (or on the path below an object of it) is allowed.
    pub(crate) fn may(&self, verb: &str, subresource: &str) -> bool {
        match self.role {
            Role::Admin => true,
            Role::Viewer => {
                matches!(verb, "get" | "list" | "watch") && !matches!(subresource, "exec" | "portforward" | "attach")
            }
            Role::Nobody => false,
        }
    }
}

/// The user of a request, if its token is known.
pub(crate) fn user<'a>(users: &'a [User], headers: &HeaderMap) -> Option<&'a User> {
    let given = headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Bearer ")?
        .trim();
    users.iter().find(|u| u.token == given)
}

/// The answer to a `SelfSubjectAccessReview`.
pub(crate) fn review(user: &User, asked: &Value) -> Value {
    let attributes = &asked["spec"]["resourceAttributes"];
    let subresource = match text(attributes, "/subresource") {
        // Clients also write it into the resource.
        "" => text(attributes, "/resource").split_once('/').map_or("", |(_, sub)| sub),
        sub => sub,
    };
    let allowed = user.may(text(attributes, "/verb"), subresource);
    let mut status = json!({"allowed": allowed});
    if allowed {
        status["reason"] = "RBAC: allowed by the lab".into();
    }
    json!({
        "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "metadata": {"creationTimestamp": null}, "spec": asked["spec"], "status": status,
    })
}

/// The answer to a `SelfSubjectReview` (`kubectl auth whoami`).
pub(crate) fn who_am_i(user: &User) -> Value {
    json!({
        "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": now()},
        "status": {"userInfo": {"username": user.name, "groups": ["system:authenticated"]}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_looks_and_touches_nothing() {
        let viewer = User {
            name: "v".into(),
            token: "t".into(),
            role: Role::Viewer,
        };
        assert!(viewer.may("watch", "") && viewer.may("get", "log"));
        assert!(!viewer.may("delete", "") && !viewer.may("get", "exec"));
        let asked = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods/exec"}}});
        assert_eq!(review(&viewer, &asked)["status"]["allowed"], false);
    }

    #[test]
    fn only_a_known_token_is_somebody() {
        let users = [User {
            name: "a".into(),
            token: "t".into(),
            role: Role::Admin,
        }];
        let mut headers = HeaderMap::new();
        assert_eq!(user(&users, &headers), None);
        headers.insert(AUTHORIZATION, "Bearer x".parse().expect("header"));
        assert_eq!(user(&users, &headers), None);
        headers.insert(AUTHORIZATION, "Bearer t".parse().expect("header"));
        assert_eq!(user(&users, &headers), Some(&users[0]));
    }
}
