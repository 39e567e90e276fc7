//! What changes about an item, attribute by attribute.

use std::borrow::Cow;

use setpoint_graph::{ItemHandle, differing};
use setpoint_host::{Process, WholeAttribute, attributes};
use setpoint_plan::AttributeChange;
use similar::TextDiff;

/// What is shown in place of a value that must not be.
pub(crate) const MASKED: &str = "(sensitive)";
/// How many lines of a content are shown where all of it comes or goes.
const LINES_SHOWN: usize = 12;

/// One attribute that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedAttribute {
    pub(crate) name: &'static str,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
    /// Whether the item stays, and it is not declared any more.
    pub(crate) dropped: bool,
}

/// The words for lines that are not shown.
pub(crate) fn more_lines(count: usize) -> String {
    if count == 1 { "… 1 more line".to_owned() } else { format!("… {count} more lines") }
}

/// A value as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) text: String,
    /// The value in a line, where it is a text of many lines.
    pub(crate) line: Option<String>,
}

/// The attributes that differ between two values of an item, or all of the only one.
pub(crate) fn changes(old: Option<&ItemHandle>, new: Option<&ItemHandle>) -> Vec<ChangedAttribute> {
    let stays = old.is_some() && new.is_some();
    let difference = |(old, new): (Option<WholeAttribute>, Option<WholeAttribute>)| {
        let name = new.as_ref().or(old.as_ref()).map_or("", |attribute| attribute.name);
        let dropped = stays && new.is_none() && name != Process::RUNNING;
        ChangedAttribute { name, old: old.as_ref().map(shown), new: new.as_ref().map(shown), dropped }
    };
    differing(&all(old), &all(new)).into_iter().map(difference).collect()
}

fn all(item: Option<&ItemHandle>) -> Vec<WholeAttribute> {
    item.map(attributes).unwrap_or_default()
}

fn shown(attribute: &WholeAttribute) -> Value {
    if attribute.sensitive {
        return Value { text: MASKED.to_owned(), line: None };
    }
    Value { text: attribute.value.clone(), line: attribute.line.clone() }
}

impl ChangedAttribute {
    /// The lines in which it is shown, the first with the attribute's name.
    pub(crate) fn lines(&self) -> Vec<String> {
        let name = self.name;
        match (&self.old, &self.new) {
            // Of two texts; anything else, such as one that is too long, is told by its size and its digest.
            (Some(old), Some(new)) if old.is_multiline() && new.is_multiline() => {
                let (old, new) = (old.visible(), new.visible());
                let diff = TextDiff::from_lines(&*old, &*new);
                let diff = diff.unified_diff().context_radius(2).to_string();
                let mut lines = vec![format!("{name}:")];
                lines.extend(diff.lines().map(|line| format!("  {line}")));
                lines
            }
            (Some(old), Some(new)) => vec![format!("{name}: {} → {}", old.in_line(), new.in_line())],
            (Some(old), None) if self.dropped && !old.is_multiline() => {
                vec![format!("{name}: {} → not declared", old.in_line())]
            }
            (None, Some(only)) | (Some(only), None) => only.lines(name),
            (None, None) => Vec::new(),
        }
    }

    /// The same as data: two texts are whole, as is the only one. Beside a digest, a text is quoted, so that it is not taken for one.
    pub(crate) fn data(&self) -> AttributeChange {
        let (old, new) = (self.old.as_ref(), self.new.as_ref());
        let is_mixed = old.zip(new).is_some_and(|(old, new)| old.is_multiline() != new.is_multiline());
        let text = |value: &Value| if is_mixed { value.short() } else { &value.text }.to_owned();
        AttributeChange { attribute: self.name.to_owned(), old: old.map(text), new: new.map(text) }
    }
}

impl Value {
    fn is_multiline(&self) -> bool {
        self.line.is_some()
    }

    /// The value in a line.
    fn short(&self) -> &str {
        self.line.as_deref().unwrap_or(&self.text)
    }

    /// The text of many lines, in which it can be seen where a line ends as on other systems.
    fn visible(&self) -> Cow<'_, str> {
        if self.text.contains('\r') {
            Cow::Owned(self.text.replace('\r', "␍"))
        } else {
            Cow::Borrowed(&self.text)
        }
    }

    /// The value as it may stand in a line: what would end the line is an escape.
    fn in_line(&self) -> Cow<'_, str> {
        let text = self.short();
        if !text.contains(char::is_control) {
            return Cow::Borrowed(text);
        }
        let escaped = |character: char| {
            if character.is_control() {
                character.escape_default().collect::<String>()
            } else {
                character.to_string()
            }
        };
        Cow::Owned(text.chars().map(escaped).collect())
    }

    fn lines(&self, name: &str) -> Vec<String> {
        if !self.is_multiline() {
            return vec![format!("{name}: {}", self.in_line())];
        }
        let text = self.visible();
        let count = text.lines().count();
        let mut lines = vec![format!("{name}:")];
        lines.extend(text.lines().take(LINES_SHOWN).map(|line| format!("  | {line}")));
        if count > LINES_SHOWN {
            lines.push(format!("  {}", more_lines(count - LINES_SHOWN)));
        }
        lines
    }
}
