//! What the server has: versions, groups, kinds.

use serde_json::{Value, json};

use super::super::manifest::KUBELET_VERSION;
use super::super::resource::{RESOURCES, VERBS, api_version};

/// Groups that hold no objects but take reviews.
const REVIEWS: [(&str, &str, &str); 2] = [
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    (
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
    ),
];

/// The answer at a path of discovery, if it is one.
pub(crate) fn answer(path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["version"] => Some(version()),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        })),
        ["apis"] => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups()})),
        ["api", "v1"] => Some(resources("", "v1")),
        ["apis", group] => groups().into_iter().find(|g| g["name"] == *group).map(|mut g| {
            g["kind"] = "APIGroup".into();
            g["apiVersion"] = "v1".into();
            g
        }),
        ["apis", group, version] => {
            let list = resources(group, version);
            let found = list["resources"].as_array().is_some_and(|r| !r.is_empty());
            found.then_some(list)
        }
        ["openapi", "v3"] => Some(json!({"paths": {}})),
        _ => None,
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "34", "gitVersion": KUBELET_VERSION, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "gtrun lab", "platform": "linux/amd64",
    })
}

fn groups() -> Vec<Value> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    let reviews = REVIEWS.iter().map(|(group, _, _)| (*group, "v1"));
    for pair in RESOURCES
        .iter()
        .filter(|r| !r.group.is_empty())
        .map(|r| (r.group, r.version))
        .chain(reviews)
    {
        if !names.contains(&pair) {
            names.push(pair);
        }
    }
    names
        .into_iter()
        .map(|(group, version)| {
            let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
            json!({"name": group, "versions": [version], "preferredVersion": version})
        })
        .collect()
}

fn resources(group: &str, version: &str) -> Value {
    let mut list = Vec::new();
    for r in RESOURCES.iter().filter(|r| (r.group, r.version) == (group, version)) {
        let mut entry = json!({
            "name": r.plural, "singularName": r.singular, "namespaced": r.namespaced, "kind": r.name, "verbs": VERBS,
        });
        if !r.short.is_empty() {
            entry["shortNames"] = json!(r.short);
        }
        if !r.categories.is_empty() {
            entry["categories"] = json!(r.categories);
        }
        list.push(entry);
        for s in r.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", r.plural, s.name), "singularName": "", "namespaced": r.namespaced,
                "kind": s.kind, "verbs": s.verbs,
            });
            if (s.group, s.version) != (r.group, r.version) {
                entry["group"] = s.group.into();
                entry["version"] = s.version.into();
            }
            list.push(entry);
        }
    }
    for (_, plural, kind) in REVIEWS.iter().filter(|(g, _, _)| *g == group && version == "v1") {
        list.push(json!({"name": plural, "singularName": kind.to_lowercase(), "namespaced": false, "kind": kind, "verbs": ["create"]}));
    }
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version), "resources": list,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_discovered() {
        for r in &RESOURCES {
            let path = if r.group.is_empty() {
                "/api/v1".into()
            } else {
                format!("/apis/{}/{}", r.group, r.version)
            };
            let list = answer(&path).expect("group");
            let names: Vec<_> = list["resources"]
                .as_array()
                .expect("list")
                .iter()
                .map(|e| e["name"].clone())
                .collect();
            assert!(names.contains(&r.plural.into()), "{}", r.plural);
        }
        assert_eq!(answer("/apis/nope/v1"), None);
        assert_eq!(answer("/metrics"), None);
    }

    #[test]
    fn eviction_is_announced_with_its_own_group() {
        let list = answer("/api/v1").expect("core");
        let eviction = list["resources"]
            .as_array()
            .expect("list")
            .iter()
            .find(|e| e["name"] == "pods/eviction");
        assert_eq!(
            eviction.map(|e| (&e["group"], &e["kind"])),
            Some((&"policy".into(), &"Eviction".into()))
        );
    }
}
