use std::path::{Path, PathBuf};

use super::*;
use crate::diagnostic::Style;
use crate::language::files::{Disk, Memory};
use crate::language::plan::{EnvironmentKind, Plan, TemplateContext, Verb};
use crate::language::vocabulary::{RunField, StepField};
use crate::language::{Id, Scalar};
use crate::time::Duration;

const SCENARIO: &str = "gtrun: 1\nname: base\nvars: { work: 20s, mode: improved, n: 3 }\nsteps:\n  - { id: long, request: { path: \"/sleep?seconds={{ seconds vars.work }}\", background: true } }\n  - { id: kill, delete_pod: {} }\n  - { wait_for: ended(long), when: vars.n == 3 }\npreconditions: { mode: \"{{ vars.mode }}\" }\nassertions:\n  - duration(long) >= vars.work\n";
const CLUSTER: &str = "gtrun: 1\nkind: cluster\ncontext: c\nworkload: { namespace: n, deployment: d }\nentry: { url: https://x.test }\nload_balancer: { host: lb, socket: /run/h.sock, backend: b, servers: { w1: w1 } }\nhosts: { lb: { ssh: u@lb }, w1: { ssh: u@w1, groups: [workers] } }\n";

fn files(list: &[(&str, &str)]) -> Memory {
    Memory(
        list.iter()
            .map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec()))
            .collect(),
    )
}

fn loaded(list: &[(&str, &str)], options: &LoadOptions) -> Loaded {
    load(Path::new(list[0].0), options, &files(list)).unwrap_or_else(|rejected| panic!("{}", shown(&rejected)))
}

fn rejected(list: &[(&str, &str)], options: &LoadOptions) -> Rejected {
    match load(Path::new(list[0].0), options, &files(list)) {
        Ok(_) => panic!("it was accepted"),
        Err(rejected) => rejected,
    }
}

fn shown(rejected: &Rejected) -> String {
    crate::diagnostic::render_human(&rejected.diagnostics, &rejected.sources, Style::PLAIN)
}

fn codes(rejected: &Rejected) -> Vec<Code> {
    rejected
        .diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .map(|d| d.code)
        .collect()
}

fn only(loaded: &Loaded) -> &Plan {
    assert_eq!(loaded.suite.runs.len(), 1);
    &loaded.suite.runs[0].plan
}

fn set(values: &[&str]) -> LoadOptions {
    LoadOptions {
        set: values.iter().map(|v| (*v).to_owned()).collect(),
        ..LoadOptions::default()
    }
}

#[test]
fn the_environment_is_chosen_by_the_first_who_names_it() {
    let with_own = SCENARIO.replace("name: base\n", "name: base\nenvironment: own\n");
    let env = |name: &str| CLUSTER.replace("context: c", &format!("context: {name}"));
    let (own, by_variable, by_option) = (env("own"), env("variable"), env("option"));
    let list = [
        ("repo/scenarios/s.yaml", with_own.as_str()),
        ("repo/.git/HEAD", ""),
        ("repo/scenarios/environments/own.yaml", own.as_str()),
        ("repo/environments/variable.yaml", by_variable.as_str()),
        ("elsewhere/option.yaml", by_option.as_str()),
    ];
    let context = |options: &LoadOptions| only(&loaded(&list, options)).environment.context.clone();
    let mut options = LoadOptions::default();
    assert_eq!(context(&options).as_deref(), Some("own"));
    options.gtrun_env = Some("variable".to_owned());
    assert_eq!(
        context(&options).as_deref(),
        Some("variable"),
        "found in the folder above"
    );
    options.environment = Some("elsewhere/option.yaml".to_owned());
    assert_eq!(context(&options).as_deref(), Some("option"));
    options.environment = Some("sim".to_owned());
    assert_eq!(
        only(&loaded(&list, &options)).environment.kind,
        EnvironmentKind::Sim,
        "sim exists without a file"
    );
    options.environment = Some("optoin".to_owned());
    assert_eq!(codes(&rejected(&list, &options)), [Code::EnvironmentMissing]);
    let none = loaded(&[("s.yaml", SCENARIO)], &LoadOptions::default());
    assert!(only(&none).environment.simulated());
}

#[test]
fn a_world_fits_the_preconditions_and_the_environment_wins() {
    let env =
        "gtrun: 1\nkind: sim\nseed: 9\nworld: { load_balancer: { inter: 1s }, clocks: { lb: { offset: -20ms } } }\n";
    let scenario = SCENARIO.replace(
        "mode: \"{{ vars.mode }}\"",
        "mode: current, load_balancer: { inter: 3s, fall: 4 }",
    );
    let list = [("s.yaml", scenario.as_str()), ("environments/sim.yaml", env)];
    let loaded = loaded(&list, &LoadOptions::default());
    let plan = only(&loaded);
    let world = plan.environment.world.as_ref().expect("sim has a world");
    assert_eq!((world.mode.as_str(), world.load_balancer.fall), ("current", 4));
    assert_eq!(
        world.load_balancer.inter,
        Duration::from_secs(1),
        "the file wins, and preflight will say so"
    );
    assert_eq!(plan.preconditions.load_balancer.inter, Some(Duration::from_secs(3)));
    assert_eq!(
        (world.clocks["lb"].offset, plan.environment.seed),
        (Duration::from_millis(-20), 9)
    );
}

#[test]
fn set_replaces_a_variable_with_a_value_of_its_type() {
    let loaded = loaded(&[("s.yaml", SCENARIO)], &set(&["work=15s", "mode=5"]));
    let plan = only(&loaded);
    let Verb::Request(request) = &plan.steps[0].verb else {
        panic!("the first step is the request")
    };
    assert_eq!(request.path.as_literal(), Some("/sleep?seconds=15"));
    assert_eq!(
        plan.preconditions.mode.as_deref(),
        Some("5"),
        "a text takes what is written"
    );
    assert_eq!(plan.vars["work"].value, Scalar::Duration(Duration::from_secs(15)));
    for wrong in ["work=15", "wrok=15s", "work", "n=abc", "n=[1]", "work="] {
        assert_eq!(
            codes(&rejected(&[("s.yaml", SCENARIO)], &set(&[wrong]))),
            [Code::SetValue],
            "{wrong}"
        );
    }
}

#[test]
fn includes_merge_and_keep_the_places_of_what_wins() {
    let top = "gtrun: 1\nname: top\ninclude: [common/a.yaml, common/b.yaml]\nvars: { work: 30s }\npreconditions: { replicas: 2 }\nassertions:\n  - status(long) == 200\n";
    let a = "gtrun: 1\nvars: { work: 1s, other: 1s }\nsteps:\n  - { wait: 1s }\npreconditions: { mode: current, replicas: 1 }\n";
    let b = SCENARIO.replace("n: 3", "n: 3, other: 2s");
    let list = [
        ("s/top.yaml", top),
        ("s/common/a.yaml", a),
        ("s/common/b.yaml", b.as_str()),
    ];
    let loaded = loaded(&list, &LoadOptions::default());
    let plan = only(&loaded);
    assert_eq!(plan.name, "top", "a name is never inherited");
    let value = |name: &str| plan.vars[name].text.clone();
    assert_eq!(
        (value("work").as_str(), value("other").as_str()),
        ("30s", "2s"),
        "here wins, then the later file"
    );
    assert_eq!(
        (plan.preconditions.replicas, plan.preconditions.mode.as_deref()),
        (Some(2), Some("improved"))
    );
    assert_eq!(
        (plan.steps.len(), plan.assertions.len()),
        (3, 1),
        "sections are replaced whole"
    );
    assert_eq!(loaded.sources.place(plan.assertions[0].span), "s/top.yaml:7:5");
    assert_eq!(loaded.sources.place(plan.steps[1].span), "s/common/b.yaml:6:17");
    let unused: Vec<String> = loaded.warnings.iter().map(|w| w.message.clone()).collect();
    assert!(unused.iter().any(|w| w.contains("`other`")), "{unused:?}");
}

#[test]
fn an_error_in_an_include_is_shown_there() {
    let top = "gtrun: 1\nname: top\ninclude: [part.yaml]\n";
    let part = "gtrun: 1\nsteps:\n  - wait: 5\nassertions:\n  - statsu(long) == 200\n";
    let rejected = rejected(&[("top.yaml", top), ("part.yaml", part)], &LoadOptions::default());
    let places: Vec<String> = rejected
        .diagnostics
        .iter()
        .filter_map(|d| d.span())
        .map(|span| rejected.sources.place(span))
        .collect();
    assert_eq!(
        places,
        ["part.yaml:3:11", "part.yaml:5:5"],
        "both at once:\n{}",
        shown(&rejected)
    );
}

#[test]
fn a_name_of_an_include_is_not_enough() {
    let rejected = rejected(
        &[
            ("top.yaml", "gtrun: 1\ninclude: [base.yaml]\n"),
            ("base.yaml", SCENARIO),
        ],
        &LoadOptions::default(),
    );
    assert_eq!(codes(&rejected), [Code::NotAScenario]);
}

#[test]
fn matrix_sweep_and_repeat_make_runs_with_names() {
    let varied = format!(
        "{SCENARIO}matrix: {{ mode: [current, improved], work: [15s, 60s], exclude: [{{ mode: current, work: 60s }}], include: [{{ mode: nolb }}] }}\nsweep: {{ phase: {{ of: kill, against: haproxy_check, points: 2 }} }}\nrepeat: 2\ncontrols: {{ none: {{ vars: {{ mode: off }}, must: fail }} }}\n"
    );
    let loaded = loaded(&[("s.yaml", varied.as_str())], &LoadOptions::default());
    let paths: Vec<&str> = loaded.suite.runs.iter().map(|run| run.path.as_str()).collect();
    assert_eq!(paths.len(), 4 * 2 * 2 + 3, "{paths:?}");
    assert_eq!(paths[0], "mode=current,work=15s/phase-00/1");
    assert_eq!(paths[3], "mode=current,work=15s/phase-01/2");
    assert_eq!(paths[15], "mode=nolb/phase-01/2");
    assert_eq!(
        &paths[16..],
        ["control=none,work=15s", "control=none,work=60s", "control=none"],
        "the control overrides the axis"
    );
    let control = &loaded.suite.runs[16];
    assert_eq!(
        (
            control.control.as_ref().map(Id::as_str),
            control.plan.preconditions.mode.as_deref()
        ),
        (Some("none"), Some("off"))
    );
    let phase = loaded.suite.runs[3].plan.phase.as_ref().expect("a phase");
    assert_eq!(phase.offset(Duration::from_secs(2)), Duration::from_secs(1));
    let pinned = super::load(
        Path::new("s.yaml"),
        &set(&["mode=improved"]),
        &files(&[("s.yaml", varied.as_str())]),
    )
    .expect("it is right");
    assert!(
        pinned
            .suite
            .runs
            .iter()
            .filter(|run| run.control.is_none())
            .all(|run| run.path.starts_with("mode=improved") || run.path.starts_with("mode=nolb"))
    );
}

#[test]
fn a_variable_sweeps_through_a_range() {
    let swept = format!("{SCENARIO}sweep: {{ work: {{ from: 10s, to: 11s, points: 3 }} }}\n");
    let loaded = loaded(&[("s.yaml", swept.as_str())], &LoadOptions::default());
    let paths: Vec<&str> = loaded.suite.runs.iter().map(|run| run.path.as_str()).collect();
    assert_eq!(paths, ["work=10s", "work=10.5s", "work=11s"]);
}

#[test]
fn secrets_stay_out_of_the_plan() {
    let secret = SCENARIO.replace(
        "background: true",
        "background: true, headers: { Authorization: \"Bearer {{ env.TOKEN }} {{ run.id }}\" }",
    );
    let list = [("s.yaml", secret.as_str())];
    let mut options = LoadOptions {
        env_known: true,
        ..LoadOptions::default()
    };
    assert_eq!(codes(&rejected(&list, &options)), [Code::MissingEnv]);
    options.env.insert("TOKEN".to_owned(), "hunter2-very-secret".to_owned());
    let loaded = loaded(&list, &options);
    let plan = only(&loaded);
    assert_eq!(plan.secrets, ["hunter2-very-secret"]);
    let json = serde_json::to_string(plan).expect("a plan is written");
    assert!(!json.contains("hunter2"), "{json}");
    let Verb::Request(request) = &plan.steps[0].verb else {
        panic!("the first step is the request")
    };
    let mut context = TemplateContext::default();
    context.run.insert(RunField::Id, "r7".to_owned());
    assert_eq!(
        request.headers[0].value.render(&context).as_deref(),
        Ok("Bearer hunter2-very-secret r7")
    );
    let back: Plan = serde_json::from_str(&json).expect("a plan is read back");
    let Verb::Request(request) = &back.steps[0].verb else {
        panic!("the first step is the request")
    };
    assert!(
        request.headers[0].value.render(&context).is_err(),
        "the secret is not kept"
    );
}

#[test]
fn templates_are_filled_in_when_the_step_runs() {
    let later = SCENARIO.replace("{ id: kill, delete_pod: {} }", "{ id: kill, request: { path: \"/x?a={{ steps.long.status }}&b={{ millis steps.long.duration }}&c=\\\\{{ d }}\" } }");
    let loaded = loaded(&[("s.yaml", later.as_str())], &LoadOptions::default());
    let Verb::Request(request) = &only(&loaded).steps[1].verb else {
        panic!("the second step is a request")
    };
    let mut context = TemplateContext::default();
    assert!(request.path.render(&context).is_err());
    let result = [
        (StepField::Status, "200".to_owned()),
        (StepField::Duration, "1.5s".to_owned()),
    ];
    context.steps.insert(Id::new("long").expect("an id"), result.into());
    assert_eq!(
        request.path.render(&context).as_deref(),
        Ok("/x?a=200&b=1500&c={{ d }}")
    );
}

/// What is written to `plan.json` is read back the same: every scenario and example of the repository.
#[test]
fn plans_are_read_back_as_they_were_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for folder in ["scenarios", "examples", "tests/corpus/ok"] {
        for entry in std::fs::read_dir(root.join(folder))
            .expect("the folder is there")
            .flatten()
        {
            let path = entry.path();
            if path.extension().is_none_or(|e| e != "yaml") {
                continue;
            }
            let loaded =
                load(&path, &LoadOptions::default(), &Disk).unwrap_or_else(|rejected| panic!("{}", shown(&rejected)));
            for run in loaded.suite.runs.iter().take(3) {
                let json = serde_json::to_string_pretty(&run.plan).expect("a plan is written");
                let back: Plan =
                    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert!(
                    back == run.plan,
                    "{}: {}",
                    path.display(),
                    serde_json::to_string_pretty(&back).expect("a plan is written")
                );
                count += 1;
            }
        }
    }
    assert!(count > 30, "only {count} plans");
}

/// The schema and the types agree: a document that the schema lets pass is read by the types.
#[test]
fn what_the_schema_accepts_the_types_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let substitutes = [
        "null",
        "5",
        "-1",
        "1.5",
        "\"x y\"",
        "5s",
        "\"{{ vars.work }}\"",
        "true",
        "[]",
        "{}",
        "[null]",
        "{ zz: 1 }",
        "\"\"",
        "\"10/s\"",
        "99999999999999999999s",
        "0",
        "\"any\"",
    ];
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("examples"))
        .expect("the folder is there")
        .flatten()
    {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("it is readable");
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        // Every value of a flow or block entry, one at a time: `key: value` to the end of the value.
        for (at, _) in text.match_indices(": ").step_by(2) {
            let end = text[at + 2..]
                .find([',', '\n', '}', ']'])
                .map_or(text.len(), |n| at + 2 + n);
            let substitute = substitutes[count % substitutes.len()];
            let changed = format!("{}{substitute}{}", &text[..at + 2], &text[end..]);
            count += 1;
            let list = [(name.as_str(), changed.as_str())];
            let (_, found) = validate(Path::new(&name), &LoadOptions::default(), &files(&list));
            for diagnostic in &found.diagnostics {
                let foreign = [
                    "missing field",
                    "invalid type",
                    "unknown field",
                    "invalid value",
                    "unknown variant",
                ];
                assert!(
                    !foreign.iter().any(|words| diagnostic.message.contains(words)),
                    "{name}: {}\n{changed}",
                    diagnostic.message
                );
            }
        }
    }
    assert!(count > 200, "only {count} documents");
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8]) {
        let files = Memory(vec![(PathBuf::from("s.yaml"), bytes.to_vec())]);
        let (_, found) = validate(Path::new("s.yaml"), &LoadOptions::default(), &files);
        let _ = shown(&found);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            check(&bytes);
        }

        #[test]
        fn no_text_panics(text in "(gtrun: 1\n)?[-a-z:{}\\[\\] \n\"'#&*|>!%@,?0-9ü\t]{0,120}") {
            check(text.as_bytes());
        }

        /// A right file with a piece cut out, doubled or replaced.
        #[test]
        fn no_cut_panics(from in 0usize..400, len in 0usize..40, piece in "[-a-z:{}\\[\\] \n\"'#,0-9]{0,6}") {
            let text: Vec<char> = SCENARIO.chars().collect();
            let from = from.min(text.len());
            let to = (from + len).min(text.len());
            let changed: String = text[..from].iter().copied().chain(piece.chars()).chain(text[to..].iter().copied()).collect();
            check(changed.as_bytes());
        }
    }

    #[test]
    fn hostile_sizes_end_soon() {
        check(&vec![b'a'; MAX_BYTES + 5]);
        check("[".repeat(10_000).as_bytes());
        check(("- ".repeat(10_000) + "x").as_bytes());
        check("a: &a [*a]\n".as_bytes());
        let mut bomb = String::from("gtrun: 1\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..40 {
            bomb.push_str(&format!(
                "a{level}: &a{level} [{}]\n",
                vec![format!("*a{}", level - 1); 10].join(",")
            ));
        }
        check(bomb.as_bytes());
        check(("gtrun: 1\nassertions:\n".to_owned() + &"  - status(long) = 200\n".repeat(2000)).as_bytes());
    }

    use crate::language::source::MAX_BYTES;
}
