//! What a request wants, read from its path and query as an API server reads it.

use http::{Method, Uri};

use super::super::resource::Resource;

/// A request for objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The kind.
    pub(crate) resource: &'static Resource,
    /// Its namespace; none for objects of the cluster and for lists over all namespaces.
    pub(crate) namespace: Option<&'a str>,
    /// The object; none for a collection.
    pub(crate) name: Option<&'a str>,
    /// The path below it; empty for the object itself.
    pub(crate) subresource: &'a str,
}

impl<'a> Target<'a> {
    /// Reads a path like `/apis/apps/v1/namespaces/n/deployments/d/scale`.
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/');
        let (group, version) = match parts.next()? {
            "api" => ("", parts.next()?),
            "apis" => (parts.next()?, parts.next()?),
            _ => return None,
        };
        let rest: Vec<&str> = parts.collect();
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, more @ ..] if !more.is_empty() && !matches!(more, ["status" | "finalize"]) => {
                (Some(*namespace), more)
            }
            all => (None, all),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, ""),
            [plural, name] => (*plural, Some(*name), ""),
            [plural, name, subresource] => (*plural, Some(*name), *subresource),
            _ => return None,
        };
        let resource = Resource::find(group, version, plural)?;
        let fits = if resource.namespaced {
            namespace.is_some() || name.is_none()
        } else {
            namespace.is_none()
        };
        let known = subresource.is_empty() || resource.subresource(subresource).is_some();
        (fits && known).then_some(Self {
            resource,
            namespace,
            name,
            subresource,
        })
    }

    /// The verb that decides about rights.
    pub(crate) fn verb(&self, method: &Method, query: &Query) -> &'static str {
        match (method, self.name) {
            (&Method::GET | &Method::HEAD, Some(_)) => "get",
            (&Method::GET | &Method::HEAD, None) if query.flag("watch") => "watch",
            (&Method::GET | &Method::HEAD, None) => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, Some(_)) => "delete",
            (&Method::DELETE, None) => "deletecollection",
            _ => "unknown",
        }
    }
}

/// The query of a request; a key may come more than once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads it.
    pub(crate) fn parse(uri: &Uri) -> Self {
        Self(axum::extract::Query::try_from_uri(uri).map(|q| q.0).unwrap_or_default())
    }

    /// The first value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Every value of a key.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Whether a key is there and says yes.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|v| matches!(v, "true" | "1" | "t" | "T" | "True" | "TRUE" | ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Option<(&'static str, Option<&str>, Option<&str>, &str)> {
        Target::parse(path).map(|t| (t.resource.plural, t.namespace, t.name, t.subresource))
    }

    #[test]
    fn paths_of_objects() {
        assert_eq!(parse("/api/v1/pods"), Some(("pods", None, None, "")));
        assert_eq!(parse("/api/v1/namespaces/n/pods"), Some(("pods", Some("n"), None, "")));
        assert_eq!(
            parse("/api/v1/namespaces/n/pods/p/exec"),
            Some(("pods", Some("n"), Some("p"), "exec"))
        );
        assert_eq!(parse("/api/v1/namespaces/n"), Some(("namespaces", None, Some("n"), "")));
        assert_eq!(
            parse("/api/v1/namespaces/n/status"),
            Some(("namespaces", None, Some("n"), "status"))
        );
        assert_eq!(parse("/api/v1/nodes/w"), Some(("nodes", None, Some("w"), "")));
        assert_eq!(
            parse("/apis/apps/v1/namespaces/n/deployments/d/scale"),
            Some(("deployments", Some("n"), Some("d"), "scale"))
        );
        for none in [
            "/api/v1/pods/p",
            "/api/v1/namespaces/n/nodes",
            "/apis/apps/v2/deployments",
            "/api/v1/namespaces/n/pods/p/nope",
            "/metrics",
            "/api/v1",
        ] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_key_may_come_more_than_once() {
        let query = Query::parse(&"/x?command=sh&command=-c&stdin=true&watch=1".parse().expect("uri"));
        assert_eq!(query.all("command").collect::<Vec<_>>(), ["sh", "-c"]);
        assert!(query.flag("stdin") && query.flag("watch") && !query.flag("tty"));
    }
}
