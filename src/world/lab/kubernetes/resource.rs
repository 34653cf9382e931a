//! The kinds of objects that the lab's API serves, with the words that discovery tells clients.

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    ConfigMap,
    Endpoints,
    Event,
    Namespace,
    Node,
    Pod,
    Service,
    ServiceAccount,
    DaemonSet,
    Deployment,
    ReplicaSet,
    StatefulSet,
    HorizontalPodAutoscaler,
    Lease,
    EndpointSlice,
    PodDisruptionBudget,
}

/// What discovery says about a kind.
#[derive(Debug)]
pub(crate) struct Resource {
    /// The kind.
    pub(crate) kind: Kind,
    /// API group; empty for the core.
    pub(crate) group: &'static str,
    /// Version within the group.
    pub(crate) version: &'static str,
    /// `kind` of the objects.
    pub(crate) name: &'static str,
    /// The word in the path.
    pub(crate) plural: &'static str,
    /// The word for one.
    pub(crate) singular: &'static str,
    /// Abbreviations that kubectl accepts.
    pub(crate) short: &'static [&'static str],
    /// Groups of kinds that kubectl accepts, as `all`.
    pub(crate) categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub(crate) namespaced: bool,
    /// Paths below an object.
    pub(crate) subresources: &'static [Subresource],
}

/// A path below an object.
#[derive(Debug)]
pub(crate) struct Subresource {
    /// The last word of the path.
    pub(crate) name: &'static str,
    /// Group, version and kind of what it takes or gives.
    pub(crate) group: &'static str,
    /// See `group`.
    pub(crate) version: &'static str,
    /// See `group`.
    pub(crate) kind: &'static str,
    /// What can be done with it.
    pub(crate) verbs: &'static [&'static str],
}

/// What can be done with every kind.
pub(crate) const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

const STATUS: &[&str] = &["get", "patch", "update"];

const fn status(group: &'static str, version: &'static str, kind: &'static str) -> Subresource {
    Subresource {
        name: "status",
        group,
        version,
        kind,
        verbs: STATUS,
    }
}

const SCALE: Subresource = Subresource {
    name: "scale",
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
    verbs: STATUS,
};

macro_rules! resource {
    ($kind:ident, $group:literal, $version:literal, $plural:literal, $singular:literal, $short:expr, $categories:expr,
     $namespaced:literal, $sub:expr) => {
        Resource {
            kind: Kind::$kind,
            group: $group,
            version: $version,
            name: stringify!($kind),
            plural: $plural,
            singular: $singular,
            short: &$short,
            categories: &$categories,
            namespaced: $namespaced,
            subresources: &$sub,
        }
    };
}

const POD_SUBRESOURCES: [Subresource; 5] = [
    Subresource {
        name: "eviction",
        group: "policy",
        version: "v1",
        kind: "Eviction",
        verbs: &["create"],
    },
    Subresource {
        name: "exec",
        group: "",
        version: "v1",
        kind: "PodExecOptions",
        verbs: &["create", "get"],
    },
    Subresource {
        name: "log",
        group: "",
        version: "v1",
        kind: "Pod",
        verbs: &["get"],
    },
    Subresource {
        name: "portforward",
        group: "",
        version: "v1",
        kind: "PodPortForwardOptions",
        verbs: &["create", "get"],
    },
    status("", "v1", "Pod"),
];

/// Every kind, in the order in which discovery lists them.
pub(crate) static RESOURCES: [Resource; 16] = [
    resource!(ConfigMap, "", "v1", "configmaps", "configmap", ["cm"], [], true, []),
    resource!(Endpoints, "", "v1", "endpoints", "endpoints", ["ep"], [], true, []),
    resource!(Event, "", "v1", "events", "event", ["ev"], [], true, []),
    resource!(
        Namespace,
        "",
        "v1",
        "namespaces",
        "namespace",
        ["ns"],
        [],
        false,
        [status("", "v1", "Namespace")]
    ),
    resource!(
        Node,
        "",
        "v1",
        "nodes",
        "node",
        ["no"],
        [],
        false,
        [status("", "v1", "Node")]
    ),
    resource!(Pod, "", "v1", "pods", "pod", ["po"], ["all"], true, POD_SUBRESOURCES),
    resource!(
        Service,
        "",
        "v1",
        "services",
        "service",
        ["svc"],
        ["all"],
        true,
        [status("", "v1", "Service")]
    ),
    resource!(
        ServiceAccount,
        "",
        "v1",
        "serviceaccounts",
        "serviceaccount",
        ["sa"],
        [],
        true,
        []
    ),
    resource!(
        DaemonSet,
        "apps",
        "v1",
        "daemonsets",
        "daemonset",
        ["ds"],
        ["all"],
        true,
        [status("apps", "v1", "DaemonSet")]
    ),
    resource!(
        Deployment,
        "apps",
        "v1",
        "deployments",
        "deployment",
        ["deploy"],
        ["all"],
        true,
        [SCALE, status("apps", "v1", "Deployment")]
    ),
    resource!(
        ReplicaSet,
        "apps",
        "v1",
        "replicasets",
        "replicaset",
        ["rs"],
        ["all"],
        true,
        [SCALE, status("apps", "v1", "ReplicaSet")]
    ),
    resource!(
        StatefulSet,
        "apps",
        "v1",
        "statefulsets",
        "statefulset",
        ["sts"],
        ["all"],
        true,
        [SCALE, status("apps", "v1", "StatefulSet")]
    ),
    resource!(
        HorizontalPodAutoscaler,
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "horizontalpodautoscaler",
        ["hpa"],
        ["all"],
        true,
        [status("autoscaling", "v2", "HorizontalPodAutoscaler")]
    ),
    resource!(Lease, "coordination.k8s.io", "v1", "leases", "lease", [], [], true, []),
    resource!(
        EndpointSlice,
        "discovery.k8s.io",
        "v1",
        "endpointslices",
        "endpointslice",
        [],
        [],
        true,
        []
    ),
    resource!(
        PodDisruptionBudget,
        "policy",
        "v1",
        "poddisruptionbudgets",
        "poddisruptionbudget",
        ["pdb"],
        [],
        true,
        [status("policy", "v1", "PodDisruptionBudget")]
    ),
];

impl Kind {
    /// Its words.
    pub(crate) fn resource(self) -> &'static Resource {
        // The table has every kind once (see the test).
        RESOURCES.iter().find(|r| r.kind == self).unwrap_or(&RESOURCES[0])
    }
}

impl Resource {
    /// The kind at a path.
    pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        RESOURCES
            .iter()
            .find(|r| (r.group, r.version, r.plural) == (group, version, plural))
    }

    /// `apiVersion` of the objects.
    pub(crate) fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }

    /// `pods`, `deployments.apps`: how messages name the kind.
    pub(crate) fn qualified(&self) -> String {
        qualified(self.plural, self.group)
    }

    /// The path below an object, by its name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.kind.resource().subresources.iter().find(|s| s.name == name)
    }
}

/// `v1`, `apps/v1`.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// `pods`, `deployments.apps`.
pub(crate) fn qualified(word: &str, group: &str) -> String {
    if group.is_empty() {
        word.to_owned()
    } else {
        format!("{word}.{group}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_in_the_table_once() {
        for resource in &RESOURCES {
            assert!(std::ptr::eq(resource.kind.resource(), resource), "{}", resource.name);
            assert_eq!(
                RESOURCES.iter().filter(|r| r.kind == resource.kind).count(),
                1,
                "{}",
                resource.name
            );
        }
    }
}
