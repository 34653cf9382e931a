use indexmap::IndexMap;
use proptest::prelude::*;

use super::*;
use crate::diagnostic::{Code, FileId};
use crate::language::plan::Fsm;

fn id(text: &str) -> Id {
    Id::new(text).expect("an id")
}

/// The names that the examples speak of.
fn scope() -> Scope {
    let vars = [("work", "60s"), ("mode", "improved"), ("p", "99%")];
    let steps = [
        ("long", StepShape::Request),
        ("dl", StepShape::Request),
        ("steady", StepShape::Load),
        ("fresh", StepShape::Load),
        ("kept", StepShape::Load),
        ("evict", StepShape::Api),
        ("kill", StepShape::Api),
        ("read", StepShape::Command),
        ("ready", StepShape::PollHttp),
        ("pause", StepShape::Other),
    ];
    let probes = [
        ("hc", ProbeShape::Log),
        ("app", ProbeShape::Log),
        ("lblog", ProbeShape::Log),
        ("rst", ProbeShape::Other),
    ];
    let mut fsm_aliases = IndexMap::new();
    fsm_aliases.insert("READY".to_owned(), "OPEN".to_owned());
    Scope {
        vars: vars
            .iter()
            .map(|(name, value)| (id(name), Variable::from_text(value)))
            .collect(),
        steps: Some(steps.iter().map(|(name, shape)| (id(name), *shape)).collect()),
        probes: Some(probes.iter().map(|(name, shape)| (id(name), *shape)).collect()),
        containers: Some(["app", "hc", "sidecar"].map(id).into()),
        marks: Some(vec![id("warm")]),
        fsm: Some(Fsm {
            states: ["OPEN", "DRAINING", "CLOSING", "CLOSED"].map(str::to_owned).into(),
            aliases: fsm_aliases,
        }),
        env_known: true,
        ..Scope::default()
    }
}

fn read(text: &str, place: Place) -> Result<Expression, Vec<Finding>> {
    Expression::read(text, Span::new(FileId(0), 0, text.len()), place, &scope())
}

const ASSERTIONS: &[&str] = &[
    "active_zero_before(lb_down)",
    "first_active_zero_before(lb_down)",
    "lb_down_after(active_zero)",
    "kill_before(lb_down)",
    "before(transition(CLOSING, CLOSED), lb_down)",
    "after(finished(long), delete)",
    "within(delete, lb_down, 5s)",
    "within(delete, lb_down, vars.work)",
    "exists(transition(CLOSING, CLOSED))",
    "exists(transition(READY, any))",
    "never(rst)",
    "never(rst, from=delete, until=lb_down)",
    "never(lb_down(any), from=rollout_started, until=rollout_finished)",
    "count(rst) == 0",
    "count(log(hc, /event=transition from=\\w+ to=CLOSED/), from=delete) >= 1",
    "gap(active_zero, lb_down) > 0s",
    "gap(active_zero, lb_down) in -1s..6s",
    "always(active >= 1, from=delete, until=lb_down)",
    "always(lb_status != down and active >= 1, from=delete, until=active_zero)",
    "always(health == ok or health == not_found)",
    "status(long) == 200",
    "200 == status(long)",
    "ok == outcome(long)",
    "status(long) == 502 or outcome(long) == reset",
    "outcome(long) == \"closed_early\"",
    "duration(long) in 60s..62s",
    "duration(long) in 1m30s..1m32.5s",
    "duration(long) in vars.work..vars.work + 2s",
    "duration(long) in vars.work - 500ms..vars.work + 2s",
    "status(long) in 500..599",
    "protected(long) and not broken(long)",
    "not exists(rst) or not (protected(long) and status(long) == 200)",
    "not not protected(long)",
    "requests(steady) >= 300",
    "disrupted(kept) > disrupted(fresh)",
    "disruption_rate(steady) <= 0.1%",
    "disruption_rate(steady) in 0%..0.5%",
    "latency(steady, 99%) < 3s",
    "latency(steady, vars.p) < 3s",
    "down_time(any) <= 60s",
    "down_time < 1m",
    "lb_down.sessions >= 1",
    "lb_down.reason == \"Layer7 wrong status\"",
    "container_exit(app).code == 137",
    "rst.sender == lb",
    "rst(long).sender != client",
    "fate(long) == lost and cause(long) == pod_killed",
    "cause(long) == lb_down",
    "exists(log(app, /GET \\/sleep, (id=[0-9]{2,4}) \"x\"/))",
    "exists(mark(warm))",
    "before(mark(warm), delete)",
    "count(lb_down(others)) <= 2",
    "vars.mode == improved",
    "steps.evict.status == 429",
    "steps.evict.outcome == refused",
    "steps.long.outcome == reset",
    "steps.read.stdout == \"x\"",
    "target.node == worker1",
    "cut(long)",
    "complete(rst)",
    "sigterm_before(container_exit)",
    "gap(kill, ended(pause)) < 1h",
    "true",
];

const CONDITIONS: &[&str] = &[
    "ended(long)",
    "lb_down",
    "active == 0",
    "exists(pod_gone) and lb_status == down",
    "kill",
    "count(lb_down(any)) >= 2",
    "status(long) == 200",
];

#[test]
fn what_is_right_is_read() {
    for text in ASSERTIONS {
        read(text, Place::Assertion).unwrap_or_else(|findings| panic!("{text}: {findings:?}"));
    }
    for text in CONDITIONS {
        for place in [Place::WaitFor, Place::When, Place::Until] {
            read(text, place).unwrap_or_else(|findings| panic!("{text}: {findings:?}"));
        }
    }
    for text in [
        "status == 200",
        "exit == 0 and stdout == \"ready\"",
        "body == ok",
        "outcome == refused or lb_down",
    ] {
        read(text, Place::PollUntil).unwrap_or_else(|findings| panic!("{text}: {findings:?}"));
    }
}

#[test]
fn what_was_read_survives_plan_json() {
    for (text, place) in ASSERTIONS
        .iter()
        .map(|t| (t, Place::Assertion))
        .chain(CONDITIONS.iter().map(|t| (t, Place::WaitFor)))
    {
        let expression = read(text, place).expect("it is right");
        let json = serde_json::to_string(&expression).expect("it is written");
        let back: Expression = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(back, expression, "{text}");
    }
}

#[test]
fn short_forms_are_written_out() {
    let condition = |text: &str| {
        let kind = read(text, Place::Assertion).expect("it is right").condition.kind;
        format!("{kind:?}").replace(|c: char| c.is_ascii_digit(), "")
    };
    assert_eq!(
        condition("lb_down_after(active_zero)"),
        condition("after(lb_down, active_zero)")
    );
    let events = |text: &str| match read(text, Place::Assertion).expect("it is right").condition.kind {
        ConditionKind::Before(first, second) => (first.event, second.event),
        other => panic!("{text}: {other:?}"),
    };
    let pair = (Event::ActiveZero, Event::Lb(LbChange::Down, None));
    assert_eq!(events("active_zero_before(lb_down)"), pair);
    assert_eq!(events("lb_down_after(active_zero)"), pair);
    assert_eq!(events("before(active_zero, lb_down)"), pair);
    assert_eq!(events("first_active_zero_before(lb_down)").0, Event::FirstActiveZero);
    assert_eq!(
        events("before(transition(READY, any), lb_down)").0,
        Event::Transition(Side::State("OPEN".into()), Side::Any)
    );
}

/// Each wrong expression, the text that is underlined, and its code.
const WRONG: &[(&str, &str, Code)] = &[
    (
        "active_zero_befor(lb_down)",
        "active_zero_befor",
        Code::UnknownInExpression,
    ),
    ("actve_zero_before(lb_down)", "actve_zero", Code::UnknownInExpression),
    ("status(long) = 200", "=", Code::ExpressionSyntax),
    ("status(long) == ", "", Code::ExpressionSyntax),
    ("status(long == 200", "", Code::ExpressionSyntax),
    ("duration(long) in 60s", "", Code::ExpressionSyntax),
    ("duration(long) in 60..62s..", "..", Code::ExpressionSyntax),
    ("duration(long) in 60 s..62s", "60 s", Code::ExpressionSyntax),
    ("duration(long) in 62s..60s", "62s..60s", Code::Arguments),
    ("duration(long) >= 60", "60", Code::ExpressionType),
    ("duration(long) >= 5M", "5M", Code::Duration),
    ("never(rst, from: delete, until: lb_down)", ":", Code::ExpressionSyntax),
    ("never(rst, form=delete)", "form", Code::Arguments),
    ("finished(dl)_before(lb_down)", "_before", Code::ExpressionSyntax),
    ("status(long) == 200 && protected(long)", "&&", Code::ExpressionSyntax),
    ("status(long) == 200 || protected(long)", "||", Code::ExpressionSyntax),
    ("!exists(rst)", "!", Code::ExpressionSyntax),
    ("not", "", Code::ExpressionSyntax),
    ("exists(log(hc, /to=CLOSED", "/to=CLOSED", Code::ExpressionSyntax),
    ("exists(log(app, /job(/))", "/job(/", Code::ExpressionSyntax),
    ("exists(log(rst, /x/))", "rst", Code::Arguments),
    ("exists(log(ap, /x/))", "ap", Code::UnknownInExpression),
    ("status(long) in [502, 504]", "[", Code::ExpressionSyntax),
    ("1s < duration(long) < 2s", "<", Code::ExpressionSyntax),
    (
        "duration(long) >= {{ vars.work }}",
        "{{ vars.work }}",
        Code::TemplateInExpression,
    ),
    ("before(active_zero lb_down)", "lb_down", Code::ExpressionSyntax),
    ("before(active_zero, lb_down))", ")", Code::ExpressionSyntax),
    (
        "before(active_zero, active_zero)",
        "before(active_zero, active_zero)",
        Code::Arguments,
    ),
    ("before(active_zero)", "before", Code::Arguments),
    ("transition(CLOSING)_before(lb_down)", "_before", Code::ExpressionSyntax),
    ("exists(transition(CLOSING))", "transition(CLOSING)", Code::Arguments),
    ("exists(transition(CLOSING, CLOSD))", "CLOSD", Code::UnknownInExpression),
    ("count(rst) == 010", "010", Code::LeadingZero),
    ("disruption_rate(steady) <= 0,1%", ",", Code::ExpressionSyntax),
    ("disruption_rate(steady) <= 0.1", "0.1", Code::ExpressionType),
    ("status(long-2) == 200", "long-2", Code::Arguments),
    ("status(\"long\") == 200", "\"long\"", Code::Arguments),
    ("status(lang) == 200", "lang", Code::UnknownInExpression),
    ("status(steady) == 200", "steady", Code::Arguments),
    ("requests(long) > 1", "long", Code::Arguments),
    ("duration(long) in 1h30..2h", "1h30", Code::Duration),
    ("exists(log(hc, /a/b/))", "/))", Code::ExpressionSyntax),
    ("fate(long) == reset", "reset", Code::WrongWord),
    ("fate(long) == \"brokn\"", "\"brokn\"", Code::WrongWord),
    ("fate(long) < lost", "fate(long) < lost", Code::ExpressionType),
    ("active == 0", "active", Code::NotHere),
    ("always(exists(rst), from=delete)", "exists(rst)", Code::NotHere),
    ("always(status(long) == 200)", "status(long)", Code::NotHere),
    ("lb_down.session >= 1", "session", Code::UnknownInExpression),
    ("active_zero.code == 1", "code", Code::UnknownInExpression),
    ("vars.wrk == 60s", "wrk", Code::UnknownInExpression),
    ("work == 60s", "work", Code::UnknownInExpression),
    ("vars == 60s", "vars", Code::UnknownInExpression),
    ("steps.evict.stats == 429", "stats", Code::UnknownInExpression),
    ("steps.evct.status == 429", "evct", Code::UnknownInExpression),
    ("evict.status == 429", "evict", Code::ExpressionType),
    ("env.HOMELAB_TOKEN == x", "HOMELAB_TOKEN", Code::MissingEnv),
    ("target.nod == x", "nod", Code::UnknownInExpression),
    ("status(long)", "status(long)", Code::ExpressionType),
    ("gap(delete, lb_down)", "gap(delete, lb_down)", Code::ExpressionType),
    ("60s", "60s", Code::ExpressionType),
    ("protected(long) == true", "protected(long)", Code::ExpressionType),
    ("exists(lb_down or lb_up)", "lb_down or lb_up", Code::ExpressionType),
    ("exists(active)", "active", Code::ExpressionType),
    ("exists(status(long))", "status", Code::ExpressionType),
    ("exists(\"lb_down\")", "\"lb_down\"", Code::ExpressionType),
    ("exists()", "exists", Code::Arguments),
    ("exists(lb_down, lb_up)", "lb_up", Code::Arguments),
    ("exists(lb_down(worker1))", "worker1", Code::Arguments),
    ("lb_reload(any)", "lb_reload(any)", Code::Arguments),
    ("exists(rst, from=delete, from=lb_down)", "from", Code::Arguments),
    ("before(active_zero, lb_down, from=delete)", "from", Code::Arguments),
    ("latency(steady, 99) < 3s", "99", Code::ExpressionType),
    ("latency(steady, 0%) < 3s", "0%", Code::Arguments),
    ("duration(long) + 5 > 60s", "duration(long) + 5", Code::ExpressionType),
    ("outcome(long) + 5s > 60s", "outcome(long)", Code::ExpressionType),
    ("exists(mark(wram))", "wram", Code::UnknownInExpression),
    ("exists(sigterm(proxy))", "proxy", Code::UnknownInExpression),
    ("complete(hcc)", "hcc", Code::UnknownInExpression),
    (
        "status(long) == 200 and frobnicate(long)",
        "frobnicate",
        Code::UnknownInExpression,
    ),
    ("", "", Code::ExpressionSyntax),
    ("status(long) == ２00", "２", Code::ExpressionSyntax),
];

#[test]
fn what_is_wrong_is_found_at_its_place() {
    for (text, underlined, code) in WRONG {
        let findings = read(text, Place::Assertion).expect_err(text);
        let first = &findings[0];
        assert_eq!(
            (&text[first.at.start..first.at.end], first.code),
            (*underlined, *code),
            "{text}: {findings:?}"
        );
    }
}

#[test]
fn only_the_end_knows_judgements() {
    for text in [
        "protected(long)",
        "before(active_zero, lb_down)",
        "never(rst)",
        "disrupted(steady) == 0",
        "gap(delete, lb_down) > 1s",
        "complete(rst)",
        "always(active > 0)",
    ] {
        let findings = read(text, Place::WaitFor).expect_err(text);
        assert_eq!(findings[0].code, Code::NotHere, "{text}: {findings:?}");
    }
    let findings = read("status == 200", Place::WaitFor).expect_err("a bare reply name outside a poll");
    assert_eq!(findings[0].code, Code::Arguments);
}

#[test]
fn all_findings_come_at_once() {
    let findings = read(
        "status(lang) == 200 and fate(long) == reset or exists(rts)",
        Place::Assertion,
    )
    .expect_err("three mistakes");
    assert_eq!(findings.len(), 3, "{findings:?}");
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        "(".repeat(200) + "true" + &")".repeat(200),
        "not ".repeat(10_000) + "true",
        "-".repeat(10_000) + "1 == 1",
    ] {
        assert_eq!(parse(&text).expect_err("too deep").code, Code::ExpressionSyntax);
    }
}

/// The tree without its places.
fn stripped(expr: &Expr) -> Expr {
    let inner = |e: &Expr| Box::new(stripped(e));
    let word = |w: &WordAt| WordAt {
        text: w.text.clone(),
        at: TextSpan::default(),
    };
    let kind = match &expr.kind {
        ExprKind::Or(a, b) => ExprKind::Or(inner(a), inner(b)),
        ExprKind::And(a, b) => ExprKind::And(inner(a), inner(b)),
        ExprKind::Not(a) => ExprKind::Not(inner(a)),
        ExprKind::Compare(a, op, b) => ExprKind::Compare(inner(a), *op, inner(b)),
        ExprKind::In(a, b, c) => ExprKind::In(inner(a), inner(b), inner(c)),
        ExprKind::Add(a, b) => ExprKind::Add(inner(a), inner(b)),
        ExprKind::Sub(a, b) => ExprKind::Sub(inner(a), inner(b)),
        ExprKind::Neg(a) => ExprKind::Neg(inner(a)),
        ExprKind::Name(name) => ExprKind::Name(Name {
            word: word(&name.word),
            arguments: name.arguments.as_ref().map(|list| {
                list.iter()
                    .map(|a| Argument {
                        label: a.label.as_ref().map(word),
                        value: stripped(&a.value),
                    })
                    .collect()
            }),
            fields: name.fields.iter().map(word).collect(),
        }),
        leaf @ (ExprKind::Number(_)
        | ExprKind::Percent(_)
        | ExprKind::Rate(..)
        | ExprKind::Duration(_)
        | ExprKind::Text(_)
        | ExprKind::Pattern(_)) => leaf.clone(),
    };
    Expr {
        at: TextSpan::default(),
        kind,
    }
}

fn plain(kind: ExprKind) -> Expr {
    Expr {
        at: TextSpan::default(),
        kind,
    }
}

/// Any tree that the parser can make.
fn tree() -> impl Strategy<Value = Expr> {
    let word =
        || "[a-z_][a-z0-9_]{0,6}".prop_filter("no keyword", |w| !matches!(w.as_str(), "and" | "or" | "not" | "in"));
    let word_at = move || {
        word().prop_map(|text| WordAt {
            text,
            at: TextSpan::default(),
        })
    };
    let leaf = prop_oneof![
        (0u32..100_000, 0u32..1000).prop_map(|(a, b)| plain(ExprKind::Number(f64::from(a) + f64::from(b) / 1000.0))),
        (0u32..1000).prop_map(|a| plain(ExprKind::Percent(f64::from(a) / 10.0))),
        (1u32..1000, any::<bool>())
            .prop_map(|(a, s)| plain(ExprKind::Rate(f64::from(a), if s { Per::Second } else { Per::Minute }))),
        (0i64..1 << 52).prop_map(|n| plain(ExprKind::Duration(crate::time::Duration::from_nanos(n)))),
        "[^\"']{0,8}".prop_map(|text| plain(ExprKind::Text(text))),
        "[^\\\\]{0,8}".prop_map(|text| plain(ExprKind::Pattern(text))),
        (word_at(), prop::collection::vec(word_at(), 0..3)).prop_map(|(word, fields)| plain(ExprKind::Name(Name {
            word,
            arguments: None,
            fields
        }))),
    ];
    leaf.prop_recursive(4, 48, 4, move |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let op = prop::sample::select(vec![
            CompareOp::Eq,
            CompareOp::Ne,
            CompareOp::Lt,
            CompareOp::Le,
            CompareOp::Gt,
            CompareOp::Ge,
        ]);
        let argument =
            (prop::option::of(word_at()), inner.clone()).prop_map(|(label, value)| Argument { label, value });
        prop_oneof![
            (boxed(), boxed()).prop_map(|(a, b)| plain(ExprKind::Or(a, b))),
            (boxed(), boxed()).prop_map(|(a, b)| plain(ExprKind::And(a, b))),
            boxed().prop_map(|a| plain(ExprKind::Not(a))),
            (boxed(), op, boxed()).prop_map(|(a, op, b)| plain(ExprKind::Compare(a, op, b))),
            (boxed(), boxed(), boxed()).prop_map(|(a, b, c)| plain(ExprKind::In(a, b, c))),
            (boxed(), boxed()).prop_map(|(a, b)| plain(ExprKind::Add(a, b))),
            (boxed(), boxed()).prop_map(|(a, b)| plain(ExprKind::Sub(a, b))),
            boxed().prop_map(|a| plain(ExprKind::Neg(a))),
            (
                word_at(),
                prop::collection::vec(argument, 0..3),
                prop::collection::vec(word_at(), 0..2)
            )
                .prop_map(|(word, arguments, fields)| plain(ExprKind::Name(Name {
                    word,
                    arguments: Some(arguments),
                    fields
                }))),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,60}") {
        let _ = read(&text, Place::Assertion);
        let _ = read(&text, Place::PollUntil);
    }

    #[test]
    fn no_sequence_of_words_panics(words in prop::collection::vec(prop::sample::select(vec![
        "active_zero", "lb_down", "_before", "before", "(", ")", ",", "=", "==", "in", "..", "+", "-", "not", "and", "or", "long",
        "steady", "status", "60s", "5", "0.1%", "vars", ".", "work", "from", "always", "active", "\"x\"", "/x/", "transition", "any",
    ]), 0..14)) {
        let text = words.join(" ");
        let _ = read(&text, Place::Assertion);
        let _ = read(&words.concat(), Place::WaitFor);
    }

    #[test]
    fn what_is_shown_is_read_back(expr in tree()) {
        let text = expr.to_string();
        let back = parse(&text).unwrap_or_else(|finding| panic!("{text}: {finding:?}"));
        prop_assert_eq!(stripped(&back), expr, "{}", text);
    }
}
