//! What the API says when it refuses: `Status` objects with the codes, reasons and words of a real API server.

use serde_json::{Value, json};

use super::resource::{Resource, qualified};

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    /// The HTTP status.
    pub(crate) code: u16,
    /// `NotFound`, `Conflict`, ...
    pub(crate) reason: &'static str,
    /// The sentence.
    pub(crate) message: String,
    /// What it is about; null when there is nothing to say.
    pub(crate) details: Value,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
        }
    }

    fn about(mut self, name: &str, group: &str, kind: &str) -> Self {
        let mut details = serde_json::Map::new();
        for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
            if !value.is_empty() {
                details.insert(key.into(), value.into());
            }
        }
        self.details = Value::Object(details);
        self
    }

    /// 404: there is no such object.
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} \"{name}\" not found", resource.qualified()),
        )
        .about(name, resource.group, resource.plural)
    }

    /// 404: there is no such path.
    pub(crate) fn no_such_path() -> Self {
        Self {
            details: json!({}),
            ..Self::new(404, "NotFound", "the server could not find the requested resource")
        }
    }

    /// 405: the path exists, the method does not.
    pub(crate) fn method_not_allowed() -> Self {
        Self {
            details: json!({}),
            ..Self::new(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            )
        }
    }

    /// 409: an object of this name is there already.
    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", resource.qualified()),
        )
        .about(name, resource.group, resource.plural)
    }

    /// 409: the object was changed since the client read it.
    pub(crate) fn conflict(resource: &Resource, name: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": the object has been modified; please apply your changes to \
             the latest version and try again",
            resource.qualified()
        );
        Self::new(409, "Conflict", message).about(name, resource.group, resource.plural)
    }

    /// 409: a precondition of a deletion does not hold. `what` is `UID` or `ResourceVersion`.
    pub(crate) fn precondition(resource: &Resource, name: &str, what: &str, wanted: &str, found: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": the {what} in the precondition ({wanted}) does not match the \
             {what} in record ({found}). The object might have been {}",
            qualified(resource.name, resource.group),
            if what == "UID" {
                "deleted and then recreated"
            } else {
                "modified"
            },
        );
        Self::new(409, "Conflict", message).about(name, resource.group, resource.name)
    }

    /// 400 with a sentence.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: this user may not do that.
    pub(crate) fn forbidden(
        user: &str,
        verb: &str,
        resource: &Resource,
        sub: &str,
        namespace: &str,
        name: &str,
    ) -> Self {
        let path = if sub.is_empty() {
            resource.plural.to_owned()
        } else {
            format!("{}/{sub}", resource.plural)
        };
        let scope = if namespace.is_empty() {
            "at the cluster scope".into()
        } else {
            format!("in the namespace \"{namespace}\"")
        };
        let object = if name.is_empty() {
            String::new()
        } else {
            format!(" \"{name}\"")
        };
        let message = format!(
            "{}{object} is forbidden: User \"{user}\" cannot {verb} resource \"{path}\" in API group \"{}\" {scope}",
            resource.qualified(),
            resource.group
        );
        Self::new(403, "Forbidden", message).about(name, resource.group, resource.plural)
    }

    /// 410: the version asked for is no longer kept.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 415: no such kind of patch.
    pub(crate) fn unsupported_media_type() -> Self {
        Self {
            details: json!({}),
            ..Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        }
    }

    /// 422: the server cannot make sense of the patch.
    pub(crate) fn rejected_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self {
            details: json!({}),
            ..Self::new(422, "Invalid", message)
        }
    }

    /// 422: what a patch or a body makes of an object is no object of its kind.
    pub(crate) fn bad_patch(object: &Value, why: &str) -> Self {
        // The real server names no object here, and shows all of it.
        let why = format!("Invalid value: {}: {why}", Value::from(object.to_string()));
        Self {
            details: json!({"causes": [{"reason": "FieldValueInvalid", "message": why, "field": "patch"}]}),
            ..Self::new(422, "Invalid", format!(" \"\" is invalid: patch: {why}"))
        }
    }

    /// 422: a field has a value that it cannot have.
    pub(crate) fn invalid(resource: &Resource, name: &str, field: &str, why: &str) -> Self {
        let kind = qualified(resource.name, resource.group);
        let mut status = Self::new(422, "Invalid", format!("{kind} \"{name}\" is invalid: {field}: {why}")).about(
            name,
            resource.group,
            resource.name,
        );
        status.details["causes"] = json!([{"reason": "FieldValueInvalid", "message": why, "field": field}]);
        status
    }

    /// 429: a disruption budget forbids an eviction.
    pub(crate) fn budget(name: &str, needs: i64, has: i64) -> Self {
        let cause = format!("The disruption budget {name} needs {needs} healthy pods and has {has} currently");
        Self {
            details: json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]}),
            ..Self::new(
                429,
                "TooManyRequests",
                "Cannot evict pod as it would violate the pod's disruption budget.",
            )
        }
    }

    /// The object as it is sent.
    pub(crate) fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status["code"] = self.code.into();
        status
    }

    /// The answer to something that worked and has no object to show.
    pub(crate) fn success(code: u16) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
    }
}
