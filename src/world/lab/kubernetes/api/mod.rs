//! The API server: TLS on loopback, bearer tokens, HTTP/1.1 and HTTP/2.

mod access;
mod channel;
mod discovery;
mod exec;
mod log;
mod objects;
mod patch;
mod port_forward;
mod protobuf;
mod request;
mod table;
mod typed;
mod watch;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use access::{Role, User};
use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch as channel_watch;
use tokio_rustls::TlsAcceptor;

use self::log::LogQuery;
use super::kubelet::Kubelets;
use super::object::{is_terminating, list, name, namespace, new_uid, text};
use super::resource::Kind;
use super::selector::Selector;
use super::status::Status;
use super::store::{Object, Store};
use exec::Exec;
use patch::PatchKind;
use request::{Query, Target};

/// Largest body that is read: a real server takes 3 MiB.
const LARGEST: usize = 3 * 1024 * 1024;

/// The API server.
pub(crate) struct Api {
    pub(crate) store: Arc<Store>,
    pub(crate) kubelets: Arc<Kubelets>,
    pub(crate) users: Vec<User>,
}

type Answer = Result<Response<Body>, Status>;

impl Api {
    /// Serves connections until `stop`; then streams end without a word, as those of a server that goes away.
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        tls: TlsAcceptor,
        stop: channel_watch::Receiver<bool>,
    ) {
        let mut stopped = stop.clone();
        let accept = async {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let _ = stream.set_nodelay(true);
                tokio::spawn(Arc::clone(&self).connection(stream, tls.clone(), stop.clone()));
            }
        };
        tokio::select! {
            () = accept => {}
            _ = stopped.wait_for(|s| *s) => {}
        }
    }

    async fn connection(
        self: Arc<Self>,
        stream: tokio::net::TcpStream,
        tls: TlsAcceptor,
        mut stop: channel_watch::Receiver<bool>,
    ) {
        let Ok(stream) = tls.accept(stream).await else { return };
        let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stopped = stop.clone();
        let service = service_fn(move |request| {
            let (api, stop) = (Arc::clone(&self), stopped.clone());
            async move { Ok::<_, Infallible>(api.answer(request, stop).await) }
        });
        let io = TokioIo::new(stream);
        tokio::select! {
            _ = async {
                if h2 {
                    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
                } else {
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).with_upgrades().await;
                }
            } => {}
            _ = stop.wait_for(|s| *s) => {}
        }
    }

    async fn answer(&self, request: Request<Incoming>, stop: channel_watch::Receiver<bool>) -> Response<Body> {
        let pretty = wants_pretty(&request);
        let mut answer = match self.route(request, stop).await {
            Ok(answer) => answer,
            Err(status) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let mut answer = json_answer(code, &status.to_json(), pretty);
                if status.code == 403 {
                    answer
                        .headers_mut()
                        .insert("x-content-type-options", HeaderValue::from_static("nosniff"));
                }
                answer
            }
        };
        let headers = answer.headers_mut();
        if let Ok(id) = HeaderValue::from_str(&new_uid()) {
            headers.insert(HeaderName::from_static("audit-id"), id);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        answer
    }

    async fn route(&self, request: Request<Incoming>, stop: channel_watch::Receiver<bool>) -> Answer {
        let path = request.uri().path().to_owned();
        let pretty = wants_pretty(&request);
        if matches!(path.as_str(), "/healthz" | "/livez" | "/readyz") {
            return Ok(Response::new(Body::from("ok")));
        }
        let user = access::user(&self.users, request.headers()).ok_or_else(Status::unauthorized)?;
        if request.method() == Method::GET
            && let Some(found) = discovery::answer(&path)
        {
            return Ok(json_answer(StatusCode::OK, &found, pretty));
        }
        match path.trim_end_matches('/') {
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                let asked = objects::read_json(&read_body(request).await?)?;
                return Ok(json_answer(StatusCode::CREATED, &access::review(user, &asked), pretty));
            }
            "/apis/authentication.k8s.io/v1/selfsubjectreviews" => {
                return Ok(json_answer(StatusCode::CREATED, &access::who_am_i(user), pretty));
            }
            _ => {}
        }
        let target = Target::parse(&path).ok_or_else(Status::no_such_path)?;
        let query = Query::parse(request.uri());
        let verb = target.verb(request.method(), &query);
        if !user.may(verb, target.subresource) {
            let (within, own) = (target.namespace.unwrap_or_default(), target.name.unwrap_or_default());
            return Err(Status::forbidden(
                &user.name,
                verb,
                target.resource,
                target.subresource,
                within,
                own,
            ));
        }
        match target.subresource {
            "log" | "exec" | "portforward" => self.pod_connection(target, &query, request, stop),
            _ => self.object(target, &query, request, verb, stop).await,
        }
    }

    async fn object(
        &self,
        target: Target<'_>,
        query: &Query,
        request: Request<Incoming>,
        verb: &str,
        stop: channel_watch::Receiver<bool>,
    ) -> Answer {
        let (store, resource, pretty) = (&*self.store, target.resource, wants_pretty(&request));
        let as_table = table::wanted(header(request.headers(), ACCEPT));
        let ok = |object: Value| Ok(json_answer(StatusCode::OK, &object, pretty));
        match verb {
            "get" => {
                let own = target.name.unwrap_or_default();
                let object = store.need(resource.kind, target.namespace.unwrap_or_default(), own)?;
                match target.subresource {
                    "scale" => ok(objects::scale(&object)),
                    _ if as_table => ok(table::table(resource.kind, &[&object], revision_of(&object), true)),
                    _ => ok(Value::clone(&object)),
                }
            }
            "watch" => {
                let watch = watch::Watch {
                    resource,
                    namespace: target.namespace.map(str::to_owned),
                    selector: selector(query)?,
                    from: watch::version(query.get("resourceVersion"))?,
                    initial_events: query.flag("sendInitialEvents"),
                    bookmarks: query.flag("allowWatchBookmarks"),
                    timeout: query
                        .get("timeoutSeconds")
                        .and_then(|t| t.parse().ok())
                        .map(Duration::from_secs),
                    as_table,
                };
                let body = Body::from_stream(watch.stream(Arc::clone(&self.store), stop));
                let mut answer = Response::new(body);
                answer
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Ok(answer)
            }
            "list" => {
                let (revision, found) = self.list(target, query)?;
                if as_table {
                    let all: Vec<&Value> = found.iter().map(|o| &**o).collect();
                    return ok(table::table(resource.kind, &all, Some(revision), true));
                }
                // The items of a list do not repeat what they are.
                let items: Vec<Value> = found
                    .iter()
                    .map(|o| {
                        let mut item = Value::clone(o);
                        if let Some(map) = item.as_object_mut() {
                            map.shift_remove("kind");
                            map.shift_remove("apiVersion");
                        }
                        item
                    })
                    .collect();
                ok(json!({
                    "kind": format!("{}List", resource.name), "apiVersion": resource.api_version(),
                    "metadata": {"resourceVersion": revision.to_string()}, "items": items,
                }))
            }
            "create" if target.subresource == "eviction" => {
                let done = objects::evict(store, target, query, &read_body(request).await?)?;
                Ok(json_answer(StatusCode::CREATED, &done, pretty))
            }
            "create" if target.name.is_none() => {
                let made = objects::create(store, target, query, &read_body(request).await?)?;
                Ok(json_answer(StatusCode::CREATED, &made, pretty))
            }
            "update" => ok(objects::replace(store, target, query, &read_body(request).await?)?),
            "patch" => {
                let kind = PatchKind::of(header(request.headers(), CONTENT_TYPE))?;
                ok(objects::patch(store, target, query, kind, &read_body(request).await?)?)
            }
            "delete" if target.subresource.is_empty() => {
                ok(objects::delete(store, target, query, &read_body(request).await?)?)
            }
            "deletecollection" => {
                let (_, found) = self.list(target, query)?;
                objects::delete_all(store, resource, &found, query, &read_body(request).await?)?;
                ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn list(&self, target: Target<'_>, query: &Query) -> Result<(u64, Vec<Object>), Status> {
        if let Some(token) = query.get("continue").filter(|t| !t.is_empty()) {
            // Every list is given whole, so there is no token that this server has given.
            return Err(Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {token}"
            )));
        }
        let selector = selector(query)?;
        let (revision, mut found) = self.store.list(target.resource.kind, target.namespace);
        if query.get("resourceVersionMatch") == Some("Exact")
            && watch::version(query.get("resourceVersion"))?.is_some_and(|v| v < self.store.oldest())
        {
            return Err(Status::expired("The resourceVersion for the provided list is too old."));
        }
        found.retain(|o| selector.matches(o));
        Ok((revision, found))
    }

    /// What goes on between a client and the processes of a pod.
    fn pod_connection(
        &self,
        target: Target<'_>,
        query: &Query,
        mut request: Request<Incoming>,
        stop: channel_watch::Receiver<bool>,
    ) -> Answer {
        if request.method() != Method::GET {
            let mut refusal = Response::new(Body::from("bad method"));
            *refusal.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            return Ok(refusal);
        }
        let own = target.name.unwrap_or_default();
        let pod = self.store.need(Kind::Pod, target.namespace.unwrap_or_default(), own)?;
        let processes = self.kubelets.processes(&pod);
        match target.subresource {
            "log" => {
                let container = container_of(&pod, query)?;
                let asked = LogQuery::parse(query, chrono::Utc::now())?;
                let run = processes.and_then(|p| {
                    if query.flag("previous") {
                        p.previous(&container)
                    } else {
                        p.container(&container)
                    }
                });
                let run = run.ok_or_else(|| {
                    Status::bad_request(if query.flag("previous") {
                        format!("previous terminated container \"{container}\" in pod \"{own}\" not found")
                    } else {
                        format!("container \"{container}\" in pod \"{own}\" is waiting to start: ContainerCreating")
                    })
                })?;
                Ok(log::answer(asked, Arc::clone(&run.log), stop))
            }
            "exec" => {
                let exec = Exec::of(query, container_of(&pod, query)?);
                channel::upgrade(&mut request, move |protocol, sender, receiver| async move {
                    until(stop, exec.serve(processes, protocol, sender, receiver)).await;
                })
            }
            _ => {
                let ports = port_forward::ports(query)?;
                let ended = ["Succeeded", "Failed"].contains(&text(&pod, "/status/phase"));
                let Some(processes) = processes.filter(|p| !ended && !*p.gone().borrow()) else {
                    let mut refusal = Response::new(Body::from(format!("pod {own} has no running sandbox\n")));
                    *refusal.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                    refusal
                        .headers_mut()
                        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
                    return Ok(refusal);
                };
                let store = Arc::clone(&self.store);
                let terminating = move || {
                    store
                        .get(Kind::Pod, namespace(&pod), name(&pod))
                        .is_none_or(|p| is_terminating(&p))
                };
                channel::upgrade(&mut request, move |_, sender, receiver| async move {
                    until(
                        stop,
                        port_forward::serve(processes, terminating, ports, sender, receiver),
                    )
                    .await;
                })
            }
        }
    }
}

/// Does something until the server goes away.
async fn until(mut stop: channel_watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        _ = stop.wait_for(|s| *s) => {}
    }
}

/// The container that a query names, or the only one.
fn container_of(pod: &Value, query: &Query) -> Result<String, Status> {
    let names = |pointer: &str| {
        list(pod, pointer)
            .iter()
            .filter_map(|c| c["name"].as_str())
            .collect::<Vec<_>>()
    };
    let (main, init) = (names("/spec/containers"), names("/spec/initContainers"));
    match query.get("container").filter(|c| !c.is_empty()) {
        Some(wanted) if main.contains(&wanted) || init.contains(&wanted) => Ok(wanted.to_owned()),
        Some(wanted) => Err(Status::bad_request(format!(
            "container {wanted} is not valid for pod {}",
            name(pod)
        ))),
        None => match main.as_slice() {
            [only] => Ok((*only).to_owned()),
            several => Err(Status::bad_request(format!(
                "a container name must be specified for pod {}, choose one of: [{}]",
                name(pod),
                several.join(" ")
            ))),
        },
    }
}

fn selector(query: &Query) -> Result<Selector, Status> {
    Selector::parse(
        query.get("labelSelector").unwrap_or_default(),
        query.get("fieldSelector").unwrap_or_default(),
    )
}

fn revision_of(object: &Value) -> Option<u64> {
    text(object, "/metadata/resourceVersion").parse().ok()
}

fn header(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// Indented for people: curl and wget, or on request.
fn wants_pretty<T>(request: &Request<T>) -> bool {
    let agent = header(request.headers(), USER_AGENT);
    let query = Query::parse(request.uri());
    match query.get("pretty") {
        Some(_) => query.flag("pretty"),
        None => agent.starts_with("curl") || agent.starts_with("Wget"),
    }
}

fn json_answer(code: StatusCode, object: &Value, pretty: bool) -> Response<Body> {
    let text = if pretty {
        format!("{object:#}")
    } else {
        object.to_string()
    };
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = code;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

async fn read_body(request: Request<Incoming>) -> Result<Bytes, Status> {
    let body = Limited::new(request.into_body(), LARGEST).collect().await;
    body.map(http_body_util::Collected::to_bytes)
        .map_err(|e| Status::bad_request(e.to_string()))
}
