//! Command lines for the remote shell, so written that nothing outlives the session.
//!
//! A remote process does not notice that its session is lost. So each has a watchdog that reads the session's standard
//! input (it ends with the session, however that ends, `kill -9` of gtrun included) and a time limit by `timeout` for a
//! host that is cut off and never hears of the end.

/// One argument, safe in any POSIX shell.
pub(super) fn quote(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// A script with its arguments; `name` is `$0`, and stands in the process list.
pub(super) fn shell(script: &str, name: &str, arguments: &[&str]) -> String {
    let mut line = format!("exec sh -c {} {}", quote(script), quote(name));
    for argument in arguments {
        line.push(' ');
        line.push_str(&quote(argument));
    }
    line
}

/// The same, ended by `timeout` after `limit` seconds.
pub(super) fn shell_within(limit: u64, script: &str, name: &str, arguments: &[&str]) -> String {
    let limit = limit.to_string();
    let mut all = vec![limit.as_str(), "sh", "-c", script, name];
    all.extend(arguments);
    shell(
        r#"l=$1; shift
if command -v timeout >/dev/null 2>&1; then exec timeout -k 5 "$l" "$@"; fi
exec "$@""#,
        name,
        &all,
    )
}

/// Runs `"$@"` from the third argument on: `$0` is the word that begins the last line of standard error, `$1` the limit
/// in seconds, `$2` `root` or `user`. That last line is `<word> <exit>`; it is missing when the session was lost.
///
/// With `timeout` inside of sudo the limit works for a root process too. Where sudo allows only certain commands it is
/// left out, and `sudo kill` may be refused: such a command ends when it ends.
///
/// The end is sent to the group that `timeout` makes, and more than once: one that is told to stop in the moment in which
/// it starts its command goes without it (seen with coreutils 9.1). sudo hands on no signal from its own process group,
/// hence `setsid`.
const GUARD: &str = r#"exec 3<&0 </dev/null
n=$0; l=$1; who=$2; shift 2
t=; if command -v timeout >/dev/null 2>&1; then t="timeout -k 5 $l"; fi
if [ "$who" = root ] && [ "$(id -u)" != 0 ]; then
  if [ -n "$t" ] && sudo -n -l $t "$@" >/dev/null 2>&1; then set -- sudo -n $t "$@"; else set -- sudo -n "$@"; fi
else
  set -- $t "$@"
fi
"$@" 3<&- & p=$!
end() { kill -s "$1" -- "-$p" || kill -s "$1" "$p" || { [ "$who" = root ] && setsid -w sudo -n kill -s "$1" "$p"; }; }
{ cat <&3; trap '' TERM; end TERM; sleep 0.3; end TERM; sleep 6; end KILL; } >/dev/null 2>&1 & w=$!
wait "$p"; s=$?
kill "$w" 2>/dev/null
printf '\n%s %s\n' "$n" "$s" >&2"#;

/// A command with watchdog and limit; `word` begins the last line of its standard error.
pub(super) fn guarded(word: &str, limit: u64, root: bool, argv: &[String]) -> String {
    let limit = limit.to_string();
    let mut all = vec![limit.as_str(), if root { "root" } else { "user" }];
    all.extend(argv.iter().map(String::as_str));
    shell(GUARD, word, &all)
}

/// Takes the last line of a guarded command off its standard error; `None` when it is not there.
pub(super) fn take_exit(word: &str, stderr: &mut Vec<u8>) -> Option<i32> {
    let text = stderr.strip_suffix(b"\n")?;
    let start = memchr::memrchr(b'\n', text)?;
    let line = std::str::from_utf8(&text[start + 1..]).ok()?;
    let exit = line.strip_prefix(word)?.strip_prefix(' ')?.parse().ok()?;
    stderr.truncate(start);
    Some(exit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::{Command, Output, Stdio};

    /// As sshd does it: the line is given to the user's shell. `open`: the session's input stays open meanwhile.
    fn run(line: &str, open: bool) -> Output {
        let mut child = Command::new("sh")
            .args(["-c", line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sh");
        let input = child.stdin.take().filter(|_| open);
        let output = child.wait_with_output().expect("sh");
        drop(input);
        output
    }

    #[test]
    fn the_exit_is_told_for_every_way_to_end() {
        let argv = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (words, exit, stdout, stderr) in [
            (&["true"][..], 0, "", ""),
            (&["sh", "-c", "echo out; echo err >&2; exit 7"], 7, "out\n", "err\n"),
            (&["sh", "-c", "printf unended >&2; exit 255"], 255, "", "unended"),
            (&["sh", "-c", "kill -9 $$"], 137, "", ""),
            (
                &["printf", "%s|", "$HOME; 'x' \"y\"", "", "a\nb"],
                0,
                "$HOME; 'x' \"y\"||a\nb|",
                "",
            ),
        ] {
            let mut output = run(&guarded("END", 5, false, &argv(words)), true);
            assert_eq!(
                take_exit("END", &mut output.stderr),
                Some(exit),
                "{words:?}: {output:?}"
            );
            assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{words:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(said.trim_start_matches("Killed\n"), stderr, "{words:?}");
        }
    }

    #[test]
    fn the_end_of_input_ends_the_command() {
        let begun = std::time::Instant::now();
        let mut output = run(
            &guarded("END", 60, false, &["sleep".to_owned(), "30".to_owned()]),
            false,
        );
        assert!(begun.elapsed().as_secs() < 10);
        assert_eq!(take_exit("END", &mut output.stderr), Some(143));
    }

    #[test]
    fn the_limit_ends_the_command() {
        let line = guarded("END", 1, false, &["sleep".to_owned(), "30".to_owned()]);
        let mut output = run(&line, true);
        assert_eq!(take_exit("END", &mut output.stderr), Some(124));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_argument_arrives_as_it_is(arguments in proptest::collection::vec("[^\0]{0,12}", 1..4)) {
            let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let output = run(&shell("for a; do printf '%s\\037' \"$a\"; done", "name", &words), true);
            let expected: String = words.iter().map(|w| format!("{w}\x1f")).collect();
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        }

        #[test]
        fn only_the_own_last_line_is_an_exit(text in "[^\0]{0,40}") {
            let mut bytes = text.clone().into_bytes();
            if !text.contains("WORD") {
                prop_assert_eq!(take_exit("WORD", &mut bytes), None);
                prop_assert_eq!(bytes, text.into_bytes());
            }
        }
    }
}
