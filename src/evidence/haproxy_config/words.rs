//! The words of a line of `haproxy.cfg`: quotes, backslashes and comments as HAProxy reads them.

/// Splits a line; a `#` outside quotes begins a comment.
pub(crate) fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut begun = false;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '#' => break,
            '\'' => {
                begun = true;
                word.extend(chars.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                begun = true;
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        // Inside double quotes a backslash keeps its meaning before these only.
                        '\\' => match chars.next() {
                            Some(e @ ('"' | '\\' | '$' | '\'' | ' ' | '#')) => word.push(e),
                            Some(e) => word.extend(['\\', e]),
                            None => word.push('\\'),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => {
                begun = true;
                match chars.next() {
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some('t') => word.push('\t'),
                    Some(e) => word.push(e),
                    None => {}
                }
            }
            c if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                    begun = false;
                }
            }
            c => {
                begun = true;
                word.push(c);
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotes_backslashes_and_comments() {
        for (line, expected) in [
            (
                "  server w1 10.0.0.1:80 check # no",
                &["server", "w1", "10.0.0.1:80", "check"][..],
            ),
            (
                r#"log-format "%ci:%cp [%tr] \"%r\" # in""#,
                &["log-format", r#"%ci:%cp [%tr] "%r" # in"#],
            ),
            (r"log-format %ci:%cp\ [%tr]\ %ft", &["log-format", "%ci:%cp [%tr] %ft"]),
            (r"log-format '%{+Q}r \d'", &["log-format", r"%{+Q}r \d"]),
            ("# all", &[]),
            (r#"a"b c"'d e'"#, &["ab cd e"]),
            (r#"x """#, &["x", ""]),
        ] {
            assert_eq!(split(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(line in "\\PC{0,80}") {
            let _ = split(&line);
        }
    }
}
