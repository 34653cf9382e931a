//! `gtrun explain [WORD]`: what an event, a function, a verb, a key or a code means.

use crate::cli::exit::Exit;
use crate::cli::output;
use crate::language::reference::{Entry, EntryKind, entries, find, nearest_entry};

/// Arguments of `gtrun explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to explain: a code (GT0101), an event (lb_down), a function, a signal, a verb, a key; or a list: events, functions,
    /// signals, verbs, probes, keys, words, codes. Without it: all lists.
    word: Option<String>,
}

/// Prints what the word means.
pub(super) fn main(args: Args) -> Exit {
    let Some(word) = args.word else {
        let names = |kind: EntryKind| {
            entries()
                .into_iter()
                .filter(|entry| entry.kind == kind)
                .map(|entry| entry.name)
                .collect::<Vec<_>>()
        };
        let mut out = String::new();
        for kind in EntryKind::ALL {
            let mut names = names(kind);
            names.dedup();
            names.sort();
            names.dedup();
            out.push_str(&format!("{}\n  {}\n\n", kind.plural(), names.join(", ")));
        }
        out.push_str("`gtrun explain WORD` says what one means.\n");
        return output::print(&out);
    };
    if let Some(kind) = EntryKind::ALL
        .into_iter()
        .find(|kind| kind.plural() == word || kind.name() == word)
    {
        let list: String = entries().iter().filter(|entry| entry.kind == kind).map(short).collect();
        return output::print(&list);
    }
    let found = find(&word);
    if found.is_empty() {
        let near = nearest_entry(&word).map_or("`gtrun explain` lists all names".to_owned(), |near| {
            format!("did you mean `{near}`?")
        });
        eprintln!("gtrun: nothing is called `{word}`; {near}");
        return Exit::Usage;
    }
    output::print(&found.iter().map(long).collect::<Vec<_>>().join("\n"))
}

fn short(entry: &Entry) -> String {
    let first = entry.text.lines().next().unwrap_or_default();
    format!("{}\n    {first}\n", entry.usage_with_name())
}

fn long(entry: &Entry) -> String {
    format!(
        "{} ({})\n\n  {}\n",
        entry.usage_with_name(),
        entry.kind.name(),
        entry.text.replace('\n', "\n  ")
    )
}
