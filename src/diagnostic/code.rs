use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Declares the codes: number, variant, title, explanation and an example that gives it.
macro_rules! codes {
    ($( $number:literal $variant:ident $title:literal $explanation:literal $example:literal )*) => {
        /// Which kind of finding a diagnostic is. A code never changes its meaning; a retired one is never given out again.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $( #[doc = $title] $variant ),* }

        impl Code {
            /// Every code, by number.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),*];

            /// The number: `GT0001` is 1.
            pub const fn number(self) -> u16 {
                match self { $( Self::$variant => $number ),* }
            }

            /// A few words that name the kind.
            pub const fn title(self) -> &'static str {
                match self { $( Self::$variant => $title ),* }
            }

            /// What it means and why it is a finding, in full sentences.
            pub const fn explanation(self) -> &'static str {
                match self { $( Self::$variant => $explanation ),* }
            }

            /// A small text that gives it, and after `# right:` how it should be.
            pub const fn example(self) -> &'static str {
                match self { $( Self::$variant => $example ),* }
            }
        }
    };
}

codes! {
    1 YamlSyntax "not YAML"
    "The text is not YAML 1.2. The place is where reading stopped; where the mistake is often older, like a quote that was never closed, its beginning is shown too."
    "steps:\n  - id a\n    wait: 5s\n# right:\nsteps:\n  - id: a\n    wait: 5s"
    2 NotUtf8 "not UTF-8"
    "Scenario and environment files are UTF-8. The file holds bytes that are none, probably because an editor saved it in another encoding."
    "name: caf\\xe9\n# right: save the file as UTF-8"
    3 TabIndentation "tab in the indentation"
    "YAML forbids tabs in the indentation: editors show them with different widths, so nobody could see the structure. Tabs inside quotes and before a comment are fine."
    "steps:\n\t- wait: 5s\n# right:\nsteps:\n  - wait: 5s"
    4 DuplicateKey "the same key twice"
    "A mapping holds each key once. Readers that keep the last one silently drop half of a file, for instance after a merge conflict; gtrun refuses."
    "assertions:\n  - exists(rst)\nassertions:\n  - exists(cut(long))\n# right: one `assertions:` with both"
    5 SecondDocument "a second document"
    "A file is one document. `---` in the middle begins another, which would be ignored."
    "gtrun: 1\n---\ngtrun: 1\n# right: two files"
    6 Limit "a limit was passed"
    "A file may be 1 MiB long, 32 levels deep and hold 20,000 values after its aliases are filled in. Nobody writes more by hand; files that are built to exhaust memory do."
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n# ... doubled another twenty times"
    7 UnknownAnchor "an alias without an anchor"
    "`*name` repeats what `&name` marked earlier in the same file. No such mark stands before this place."
    "steps:\n  - *warmup\n# right:\nsteps:\n  - &warmup { wait: 5s }\n  - *warmup"
    8 UnsupportedTag "a YAML tag"
    "Tags such as `!!binary` or `!include` change what a value means. The language has none; use `include:` for files and quotes for texts."
    "name: !include name.txt\n# right:\ninclude: [common/names.yaml]"
    9 EmptyFile "an empty file"
    "The file holds nothing, or only comments. Start from `gtrun new NAME`."
    "# nothing here"
    10 Unreadable "a file that cannot be read"
    "The file does not exist, is no regular file, or may not be read."
    "gtrun run scenarios/missing.yaml"
    11 LeadingZero "a number with a leading zero"
    "In YAML 1.1 `010` was 8, in YAML 1.2 it is 10, and people read both. Numbers are decimal and begin with another digit than 0."
    "preconditions: { replicas: 010 }\n# right:\npreconditions: { replicas: 10 }"

    101 UnknownKey "an unknown key"
    "The key does not exist at this place. Nothing is ignored silently: a misspelt key would drop a whole check. The nearest known key is shown, or the place where the key belongs."
    "steps:\n  - { id: a, wiat: 5s }\n# right:\nsteps:\n  - { id: a, wait: 5s }"
    102 WrongType "a value of another kind"
    "A list stands where a text belongs, a text where a number belongs, and so on."
    "steps:\n  - wait: [5s]\n# right:\nsteps:\n  - wait: 5s"
    103 UnknownWord "a word that is not in the list"
    "The value is one of a few words, and this is none of them."
    "steps:\n  - wait_for: lb_down\n    on_timeout: ignore\n# right:\n    on_timeout: continue"
    104 Null "nothing where a value belongs"
    "`null`, `~` and an empty value are never values here: they are what is left when a line was forgotten. A verb without options is written with `{}`."
    "steps:\n  - delete_pod:\n# right:\nsteps:\n  - delete_pod: {}"
    105 MissingKey "a key is missing"
    "An object lacks a key that it needs."
    "steps:\n  - request: { timeout: 5s }\n# right:\nsteps:\n  - request: { path: /, timeout: 5s }"
    106 NoVerb "an object without its kind"
    "A step has exactly one verb, a probe exactly one kind. Here stands none."
    "steps:\n  - id: pause\n# right:\nsteps:\n  - id: pause\n    wait: 5s"
    107 TwoVerbs "an object with two kinds"
    "A step has exactly one verb, a probe exactly one kind. Here stand two; make two list items of it."
    "steps:\n  - wait: 5s\n    delete_pod: {}\n# right:\nsteps:\n  - wait: 5s\n  - delete_pod: {}"
    108 Duration "not a duration"
    "A duration is written with its unit: us, ms, s, m, h, from large to small, each once. Nobody remembers whether a bare 60 means seconds, and other tools read 5M as five months."
    "steps:\n  - wait: 60\n# right:\nsteps:\n  - wait: 60s"
    109 Spelling "a value in another spelling"
    "The value is a text with a fixed form, such as a rate `50/s`, a percentage `0.1%` or a size per second `1MB/s`, and this text has another form."
    "steps:\n  - load: { rate: 50 per second, path: / }\n# right:\nsteps:\n  - load: { rate: 50/s, path: / }"
    110 LanguageVersion "another language version"
    "`gtrun: 1` names the version of the language that the file is written in. This gtrun reads version 1."
    "gtrun: 2\n# right:\ngtrun: 1"
    111 Empty "an empty list"
    "A list or mapping that must hold something is empty. What does nothing proves nothing."
    "assertions: []\n# right:\nassertions:\n  - active_zero_before(lb_down)"
    112 OutOfRange "a number out of range"
    "The number is smaller or larger than what makes sense here."
    "preconditions: { replicas: -1 }\n# right:\npreconditions: { replicas: 1 }"
    113 BadName "not a name"
    "Names of scenarios are lower-case letters, digits and `-`; ids of steps, probes and variables are lower-case letters, digits and `_`, a letter first, so that expressions can say them."
    "steps:\n  - { id: long-request, wait: 5s }\n# right:\nsteps:\n  - { id: long_request, wait: 5s }"
    114 NotAScenario "not a scenario"
    "After merging its includes a scenario has a name, at least one step and at least one assertion. Zero assertions would be a green run that proves nothing."
    "gtrun: 1\nname: s7\nsteps: [{ wait: 5s }]\n# right: add `assertions:`"

    201 DuplicateId "the same id twice"
    "The id of a step is unique in the file, lists under `parallel` and `finally` included."
    "steps:\n  - { id: load, wait: 1s }\n  - { id: load, wait: 2s }\n# right: two ids"
    202 ReservedId "an id that means something else"
    "Events, functions, signals, roots and words of the expression language cannot be ids: an assertion that names one would have two meanings."
    "steps:\n  - { id: delete, delete_pod: {} }\n# right:\nsteps:\n  - { id: kill, delete_pod: {} }"
    203 UnknownName "an unknown name"
    "A template or an option names a variable, step, probe, container or host that does not exist."
    "vars: { grace: 30s }\nsteps:\n  - delete_pod: { grace: \"{{ vars.grce }}\" }\n# right:\n  - delete_pod: { grace: \"{{ vars.grace }}\" }"
    204 TemplateSyntax "a template that cannot be read"
    "Templates are `{{ path }}` and `{{ seconds path }}` or `{{ millis path }}`, nothing else: no blocks, partials, comments or triple braces. `\\{{` is a literal."
    "path: \"/sleep?{{#if vars.a}}x{{/if}}\"\n# right:\npath: \"/sleep?seconds={{ seconds vars.work }}\""
    205 TemplateType "a template of another type"
    "The value that the template gives has another type than the key wants, or the helper wants a duration."
    "vars: { who: me }\nsteps:\n  - wait: \"{{ vars.who }}\"\n# right:\nvars: { who: 5s }"
    206 TooEarly "a value that is not known yet"
    "In durations, numbers and booleans only `vars` and `env` may stand: everything else becomes known only while the run goes on, and the plan must be complete before."
    "steps:\n  - wait: \"{{ steps.long.duration }}\"\n# right: a variable"
    207 SetValue "a --set that does not fit"
    "`--set name=value` replaces a variable that the scenario declares in `vars`, with a value of the same type."
    "gtrun run s2.yaml --set work=15\n# right:\ngtrun run s2.yaml --set work=15s"
    208 MissingEnv "an environment variable that is not set"
    "The file says `env.NAME`, and gtrun was started without NAME."
    "headers: { Authorization: \"Bearer {{ env.TOKEN }}\" }\n# right: TOKEN=... gtrun run s2.yaml"

    301 ExpressionSyntax "an expression that cannot be read"
    "The text is no expression of the assertion language. The place is inside the expression."
    "assertions:\n  - status(long) = 200\n# right:\nassertions:\n  - status(long) == 200"
    302 UnknownInExpression "an unknown name in an expression"
    "The expression names no known event, function, signal, step, probe or variable. The nearest name is shown."
    "assertions:\n  - actve_zero_before(lb_down)\n# right:\nassertions:\n  - active_zero_before(lb_down)"
    303 Arguments "wrong arguments"
    "The event or function takes other arguments."
    "assertions:\n  - exists(transition(CLOSING))\n# right:\nassertions:\n  - exists(transition(CLOSING, CLOSED))"
    304 ExpressionType "types that do not fit"
    "The two sides of a comparison have different types, or something stands where an event, a condition or a value belongs."
    "assertions:\n  - duration(long) >= 60\n# right:\nassertions:\n  - duration(long) >= 60s"
    305 WrongWord "a word of another set"
    "Outcomes, fates, causes and states have their own words; this one belongs to another set or to none."
    "assertions:\n  - fate(long) == reset\n# right:\nassertions:\n  - outcome(long) == reset"
    306 NotHere "not possible at this place"
    "An expression means a moment or a whole run. A signal has a value at a moment: in `wait_for`, `when` and inside `always(...)`. A judgement such as `fate` exists only after the run."
    "assertions:\n  - active == 0\n# right:\nassertions:\n  - always(active >= 1, from=delete, until=lb_down)"
    307 NoSource "nothing can produce this event"
    "No probe and no step of the scenario can show the event, so the assertion could never be decided."
    "probes: { rst: { rst_capture: {} } }\nassertions:\n  - exists(log(app, /ready/))\n# right: add a container_log probe named app"
    308 TemplateInExpression "braces in an expression"
    "Expressions are no templates: they name `vars.work`, `steps.evict.status` and `target.node` directly."
    "assertions:\n  - duration(long) >= {{ vars.work }}\n# right:\nassertions:\n  - duration(long) >= vars.work"
    309 YamlCut "YAML cut the expression"
    "Without quotes YAML ends a text at ` #`, makes a mapping of `: `, and inside `[ ]` and `{ }` ends it at a comma. The rest of the expression was lost."
    "assertions: [ before(active_zero, lb_down) ]\n# right:\nassertions: [ \"before(active_zero, lb_down)\" ]"

    401 IncludeMissing "an include that cannot be read"
    "An include is a file relative to the file that names it."
    "include: [comon/probes.yaml]\n# right:\ninclude: [common/probes.yaml]"
    402 IncludeOutside "an include outside the repository"
    "Includes stay inside the repository of the scenario, so that validating a pull request reads nothing else of the machine."
    "include: [/etc/passwd]"
    403 IncludeCircle "includes in a circle"
    "The file includes itself, directly or through others, or includes are nested more than 8 deep."
    "# a.yaml\ninclude: [b.yaml]\n# b.yaml\ninclude: [a.yaml]"
    404 Variation "a variation that varies nothing"
    "`matrix` and `sweep` name declared variables or steps and give each at least one value; a control changes something."
    "controls: { same: { must: fail } }\n# right:\ncontrols: { no_drain: { vars: { mode: current }, must: fail } }"
    405 TooManyRuns "too many runs"
    "Matrix, sweep and repeat together give more than 10,000 runs."
    "repeat: 1000000"

    501 EnvironmentMissing "an environment that cannot be found"
    "`--env NAME` is `environments/NAME.yaml` beside the scenario, then in every folder above it up to the root of the repository. `sim` and `lab` exist without a file."
    "gtrun run s2.yaml --env homlab\n# right:\ngtrun run s2.yaml --env homelab"
    502 EnvironmentIncomplete "an environment that lacks something"
    "A `cluster` environment needs `context`, `workload`, `entry`, `load_balancer` and `hosts`."
    "gtrun: 1\nkind: cluster\n# right: see scenarios/environments/homelab.yaml"
    503 EnvironmentConflict "an environment that contradicts itself"
    "A host, a server or a state is named that the environment does not declare, or a key belongs to another kind of environment."
    "hosts:\n  lb: { ssh: ubuntu@lb, jump: [bastion] }\n# right: declare `bastion` too, or have it in ~/.ssh/config"
    504 WrongFile "another kind of file"
    "A scenario stands where an environment belongs, or the other way round. A file with `kind:` is an environment."
    "gtrun run scenarios/environments/lab.yaml"

    601 NeverAwaited "a request that nobody waits for"
    "The run ends when its last step ends. A request in the background that no `wait_for: ended(...)` awaits is cut off by the end of the run."
    "steps:\n  - { id: long, request: { path: /, background: true } }\n# right: add `- wait_for: ended(long)`"
    602 CannotFit "times that cannot fit"
    "A time limit is shorter than what it must outlast, so the result is known before the run."
    "steps:\n  - { wait_for: lb_down, timeout: 1s }   # inter 2s, fall 2: at least 2s"
    603 Vacuous "an assertion that nothing could change"
    "Whatever a run shows, the assertion holds, or it never holds. It proves nothing."
    "assertions:\n  - count(rst) >= 0\n# right:\nassertions:\n  - count(rst) == 0"

    604 Unpinned "a cluster without a pinned target"
    "Without `context` and `workload.namespace`, steps that delete, evict, scale or drain would act on whatever context and namespace happen to be current."
    "gtrun: 1\nkind: cluster\nworkload: { deployment: service-a-igw }\n# right: name `context` and `workload.namespace`"

    605 EndsTooEarly "a request that ends before the disturbance"
    "The request in the background is over before the step that disturbs the pod begins: nothing is at stake."
    "steps:\n  - { id: short, request: { path: \"/sleep?seconds=1\", background: true } }\n  - wait: 5s\n  - delete_pod: {}"
    606 UnusedVariable "a variable that nothing uses"
    "The variable is declared and never used; perhaps a template has another name."
    "vars: { work: 60s }   # and no {{ vars.work }}"
    607 NoDisturbance "nothing at stake"
    "No step acts on the cluster or a host, yet assertions speak of a disturbance."
    "steps: [{ wait: 60s }]\nassertions: [active_zero_before(lb_down)]"
    608 Discouraged "allowed, and probably not meant"
    "The file says something that is possible and that usually is a mistake; the message says which."
    "steps:\n  - { id: long, request: { path: /, expect_in_flight: true } }   # not in the background"

    901 AssertionFailed "an assertion failed"
    "The evidence of a run refutes the assertion. The events that refute it are shown with their brackets."
    "active_zero_before(lb_down)   # lb_down came first"
    902 AssertionInconclusive "an assertion could not be decided"
    "The evidence of a run neither shows nor refutes the assertion. What was missing, and the cheapest change that would settle it, are shown."
    "active_zero_before(lb_down)   # the brackets overlap"
}

impl Code {
    /// The heading under which the code stands in the reference.
    pub const fn chapter(self) -> &'static str {
        match self.number() {
            0..=99 => "The text",
            100..=199 => "Keys and values",
            200..=299 => "Names and templates",
            300..=399 => "Expressions",
            400..=499 => "Includes and variation",
            500..=599 => "Environments",
            600..=699 => "Warnings",
            _ => "Findings of a run",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GT{:04}", self.number())
    }
}

/// The text is no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no code; codes look like GT0101")]
pub struct UnknownCode(pub String);

impl FromStr for Code {
    type Err = UnknownCode;

    /// `GT0101`, in any case.
    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        let upper = text.to_ascii_uppercase();
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.to_string() == upper)
            .ok_or_else(|| UnknownCode(text.to_owned()))
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_read_back() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].number() < pair[1].number()));
        for code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(*code));
            assert!(
                !code.title().is_empty() && code.explanation().ends_with('.') && !code.example().is_empty(),
                "{code}"
            );
        }
        assert!("GT9999".parse::<Code>().is_err());
    }
}
