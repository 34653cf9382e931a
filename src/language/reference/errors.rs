//! `docs/errors.md`.

use crate::diagnostic::Code;

/// Every code with what it means and an example.
pub fn errors() -> String {
    let mut out = String::from(
        "# Errors and warnings\n\nEvery finding about a scenario or an environment file has a code. A code never changes its meaning. `gtrun explain CODE` shows the\nsame text. Codes from GT0601 to GT0699 are warnings: the file is used as it is, and it probably does not say what was meant.\n",
    );
    let mut chapter = "";
    for code in Code::ALL {
        if code.chapter() != chapter {
            chapter = code.chapter();
            out.push_str(&format!("\n## {chapter}\n"));
        }
        out.push_str(&format!(
            "\n### {code}: {}\n\n{}\n\n```yaml\n{}\n```\n",
            code.title(),
            code.explanation(),
            code.example()
        ));
    }
    out
}
