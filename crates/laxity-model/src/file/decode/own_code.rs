//! The user's own code.

use super::super::reader::{Fields, Item};
use crate::error::{ErrorKind, Findings};
use crate::{CodeSource, OwnCode, suggest};

/// The fields of each kind of code; the first says which kind it is.
pub(crate) const SOURCES: &[&[&str]] =
    &[&["library", "symbol", "init", "exit", "warm"], &["python", "warm"], &["command", "warm"]];

/// The field `run`, if it is there.
pub(super) fn own_code(fields: &Fields<'_>, findings: &mut Findings) -> Option<OwnCode> {
    let item = fields.get("run")?;
    let known = kind(&item, findings)?;
    let fields = item.table(known, "a table", findings)?;
    let source = match known[0] {
        "library" => {
            let symbol = fields.require("symbol", "`symbol = \"...\"`, the function to call", findings);
            CodeSource::Library {
                library: text(fields.get("library"), findings)?,
                symbol: text(symbol, findings)?,
                init: optional(fields.get("init"), findings),
                exit: optional(fields.get("exit"), findings),
            }
        }
        "python" => CodeSource::Python { function: text(fields.get("python"), findings)? },
        _ => {
            let command = fields.get("command")?;
            let words = command.list("a list of texts, as in `[\"./detector\", \"--once\"]`", findings)?;
            CodeSource::Command(
                words.iter().filter_map(|word| word.text("text", findings)).map(str::to_owned).collect(),
            )
        }
    };
    let warm = fields.get("warm").and_then(|item| item.boolean(findings)).unwrap_or(false);
    Some(OwnCode { source, warm })
}

fn text(item: Option<Item<'_>>, findings: &mut Findings) -> Option<String> {
    item?.text("text", findings).map(str::to_owned)
}

fn optional(item: Option<Item<'_>>, findings: &mut Findings) -> Option<String> {
    item.and_then(|item| text(Some(item), findings))
}

/// The entry of [`SOURCES`] that `item` writes.
fn kind(item: &Item<'_>, findings: &mut Findings) -> Option<&'static [&'static str]> {
    let example = "`{ library = \"libfusion.so\", symbol = \"camera\" }`, `{ python = \"module:function\" }` or \
                   `{ command = [\"./detector\"] }`";
    item.open(&format!("a table, as in {example}"), findings)?;
    let mut found = SOURCES.iter().filter(|known| item.node.field(known[0]).is_some());
    match (found.next(), found.next()) {
        (Some(known), None) => Some(known),
        (Some(one), Some(other)) => {
            let message = format!("has both `{}` and `{}`; a job runs one of them", one[0], other[0]);
            item.report(ErrorKind::Contradiction, message, findings);
            None
        }
        (None, _) => {
            let keys = suggest::list(SOURCES.iter().map(|known| known[0]));
            item.report(
                ErrorKind::MissingField,
                format_args!("does not say what to run ({keys}); write {example}"),
                findings,
            );
            None
        }
    }
}
