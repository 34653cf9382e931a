use super::words;

words! {
    /// The functions of the language.
    Function {
        Before "before" "`before(X, Y)`, `X_before(Y)`: X happened before Y. Passes when X's bracket ends before Y's begins, or when one source states the order directly"
        After "after" "`after(X, Y)`, `X_after(Y)`: X happened after Y"
        Within "within" "`within(X, Y, d)`: Y follows X in at most d; short for `gap(X, Y) in 0s..d`"
        Exists "exists" "`exists(X)`, `exists(X, from=A, until=B)`: X happened"
        Count "count" "`count(X)`, `count(X, from=A, until=B)`: how often X happened"
        Never "never" "`never(X)`, `never(X, from=A, until=B)`: X did not happen, and what would have shown it was watching"
        Gap "gap" "`gap(X, Y)`: the time from X to Y with its error, negative when Y came first"
        Always "always" "`always(cond, from=A, until=B)`: a condition on sampled signals holds over the whole window"
        Status "status" "`status(R)`: HTTP status of request R"
        Outcome "outcome" "`outcome(R)`: how request R ended for its client"
        Duration "duration" "`duration(R)`: time from the sending of request R to its end"
        Bytes "bytes" "`bytes(R)`: bytes of request R's body that arrived"
        Fate "fate" "`fate(R)`: the judgement of request R"
        Cause "cause" "`cause(R)`: why request R was broken or lost"
        Protected "protected" "`protected(R)`: short for `fate(R) == protected`"
        Broken "broken" "`broken(R)`: short for `fate(R) == broken`"
        Requests "requests" "`requests(L)`: number of requests that load L sent"
        Disrupted "disrupted" "`disrupted(L)`: number of requests of load L that were not answered whole"
        DisruptionRate "disruption_rate" "`disruption_rate(L)`: share of load L's requests that were not answered whole"
        Latency "latency" "`latency(L, 99%)`: a percentile of the time that load L's requests took, from their intended start"
        DownTime "down_time" "`down_time`, `down_time(any)`, `down_time(others)`: how long the server was DOWN"
        Complete "complete" "`complete(P)`: probe P was live before the first step and lost nothing"
    }
}

impl Function {
    /// How it is written; the first form of the meaning.
    pub fn usage(self) -> &'static str {
        self.meaning().split('`').nth(1).unwrap_or(self.as_str())
    }
}
