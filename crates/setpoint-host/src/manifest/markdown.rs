//! The reference of manifests as Markdown, for readers: made from the loader's own table.

use std::fmt::Write as _;

use super::table::{Field, READY, READY_ONE_OF, Section, TOP, Type};
use crate::item::StopSignal;

const BEGIN: &str = "\
# Manifests

<!-- Generated: `setpoint schema --markdown > docs/manifest.md` writes it anew from the table that the loader uses. -->

A *manifest* declares what should be on a host: directories, files, symbolic links, processes and commands, by name. This
page lists all that it may hold; [host.md](host.md) says what the commands do with it. To try one, save this as
`site.yaml`, then run `setpoint validate` beside it, which reports all errors at once, and `setpoint plan`:

```yaml
files:
  greeting: {content: \"hello\\n\"}
symlinks:
  latest: {target: greeting}
```

One of everything, beside a file `token.txt`:

```yaml
";

const RULES: &str = "\
## Rules

**Names.** A thing is known by its kind and its name, such as `file.config`. A name holds letters, digits and
any of `_ - . / @ + : ~`, is at most 200 bytes long, does not end with a slash, and is unique among its kind. Another path under the same name is a rename on
disk. Another name for what is in the same place is the same thing, which the plan says; otherwise another name is another
thing, unless `setpoint state mv` says that it is the same.

**Directories around things** need not be declared: those that are not there are made, and go again when nothing is in them
any more. What was there before stays.

**Values.** `${values.port}` stands for a value of the set, in all texts but `content`; dots lead into maps and lists. Templates
use them by name. `--var port=8081` sets one that is declared: what is declared as text stays text, anything else is read
as if it stood in the manifest (`--var 'names=[a, b]'`), and is the same kind of value: a boolean, a number, a list or a map.
One that is declared empty has to be given.

**The root** is remembered. Where the manifests say another one while something is in the old one, that is an error, and so is
another directory at its path; `setpoint state relocate` takes over what was moved by hand. A root that was renamed as a directory
is the same one.

**References.** `${kind.name.attribute}` stands for an attribute of another item, which then comes first. It is replaced in
all texts but `content`, and in a `template` before that is rendered. A `path`, and the `log` of a process, is absolute: with
the root before it, so that it can be handed to programs; where a path below the root is asked for, it may be written so too.
`$${` is a plain `${`; what does not begin with a word and a dot, such as the shell's `${HOME}`, is no reference.

**Order.** A thing comes after the directory that it is in, after what it refers to, and after what `after` names. Nothing
else has to be said.

**Changes.** What comes `after` another thing, or refers to it, waits while that is missing or failed, and stays whatever becomes of
it later. A process restarts when a file or link that it refers to changes, and with what `restart_on` names; a command is
applied again with what `redo_on` names. That it must be is remembered until it was.

**Templates** are Jinja. A value that is not there is an error, not an empty text.

**Several files.** A directory is read as all `*.yaml` and `*.yml` files directly in it, hidden ones left out, each with any
number of documents. They declare one set together. A file that has none of these sections, and fields that a manifest does
not have, is something else, and is passed over with a warning.

**Large files.** A content of more than 64 KiB is known by its digest, and read from its `source` when it is written.

**Editors.** `setpoint schema` prints the JSON Schema, made from the same table.
";

/// The reference of manifests as a page of Markdown: every field of every kind, and how values are written.
///
/// ```
/// let page = setpoint_host::reference();
/// assert!(page.starts_with("# Manifests"));
/// assert!(page.contains("| `prevent_destroy` |"));
/// ```
pub fn reference() -> String {
    let mut page = format!("{BEGIN}{}```\n\n", include_str!("example.yaml"));
    page.push_str("## Top level\n\n");
    fields(&mut page, TOP, |_| "");
    for section in Section::all() {
        self::section(&mut page, section);
    }
    values(&mut page);
    page.push_str(RULES);
    page
}

fn section(page: &mut String, section: &Section) {
    let Section { key, kind, about, one_of, .. } = section;
    // Writing to a string can't fail.
    let _ = writeln!(page, "## `{key}`\n\n{about} One of them is called `{kind}.NAME`.\n");
    fields(page, section.fields, |name| match name {
        name if section.required.contains(&name) => " **Required.**",
        _ => "",
    });
    if !one_of.is_empty() {
        let _ = writeln!(page, "Exactly one of {} must be there.\n", quoted(one_of, " or "));
    }
    for field in section.fields.iter().filter(|field| field.kind == Type::Ready) {
        let one_of = quoted(READY_ONE_OF, " or ");
        let _ = writeln!(
            page,
            "`{}` holds exactly one of {one_of}, and `timeout` where it is wanted:\n",
            field.name
        );
        fields(page, READY, |_| "");
    }
    let referable: Vec<String> =
        section.referable.iter().map(|attribute| format!("${{{kind}.NAME.{attribute}}}")).collect();
    let referable: Vec<&str> = referable.iter().map(String::as_str).collect();
    let _ = writeln!(page, "Others may refer to {}.\n", quoted(&referable, " and "));
}

fn fields(page: &mut String, fields: &[Field], demand: impl Fn(&str) -> &'static str) {
    page.push_str("| field | value | what it is |\n|---|---|---|\n");
    for Field { name, kind, about } in fields {
        let _ = writeln!(page, "| `{name}` | {} | {about}{} |", kind.name(), demand(name));
    }
    page.push('\n');
}

fn values(page: &mut String) {
    page.push_str("## Values\n\n| value | how it is written |\n|---|---|\n");
    for kind in Type::ALL {
        let _ = writeln!(page, "| {} | {} |", kind.name(), kind.form());
    }
    page.push('\n');
}

/// Words as code: `a`, `b` or `c`.
fn quoted(words: &[&str], last: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match words.as_slice() {
        [others @ .., word] if !others.is_empty() => format!("{}{last}{word}", others.join(", ")),
        words => words.concat(),
    }
}

impl Type {
    const ALL: [Self; 14] = [
        Self::Text,
        Self::Content,
        Self::Boolean,
        Self::Mode,
        Self::Account,
        Self::Wait,
        Self::Grace,
        Self::Signal,
        Self::Run,
        Self::References,
        Self::Environment,
        Self::Values,
        Self::Ready,
        Self::Port,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Content => "content",
            Self::Boolean => "boolean",
            Self::Mode => "mode",
            Self::Account => "account",
            Self::Wait => "time",
            Self::Grace => "time or 0",
            Self::Signal => "signal",
            Self::Run => "command",
            Self::References => "items",
            Self::Environment => "variables",
            Self::Values => "values",
            Self::Ready => "readiness",
            Self::Port => "port",
        }
    }

    fn form(self) -> String {
        match self {
            Self::Text => "text, in quotes where YAML wants them".to_owned(),
            Self::Content => "text, or base64 after the tag `!!binary`".to_owned(),
            Self::Boolean => "`true` or `false`, also as `True` or `TRUE`".to_owned(),
            Self::Mode => "three or four octal digits, such as `\"0644\"`; a `0` or `0o` may be before them".to_owned(),
            Self::Account => "a name, or a number".to_owned(),
            Self::Wait => {
                "a number with `ms`, `s`, `m` or `h`, such as `30s`, of at most a week; without a unit, seconds"
                    .to_owned()
            }
            Self::Grace => "as a time; 0 for none at all".to_owned(),
            Self::Signal => {
                let names: Vec<&str> = StopSignal::ALL.iter().map(|(name, _)| *name).collect();
                format!("{}, with or without `SIG` before it", quoted(&names, " or "))
            }
            Self::Run => "a line for the shell, or a list of a program and its arguments".to_owned(),
            Self::References => "a list of `kind.name`, such as `[file.config, process.web]`".to_owned(),
            Self::Environment => "a map of names to texts, such as `{LANG: C}`".to_owned(),
            Self::Values => {
                "a map of names to anything; `yes`, `no`, `on` and `off` are in quotes, and so are whole numbers of more than 64 \
                 bits, and what begins as a number to another base, such as `0x10`; none refers to another"
                    .to_owned()
            }
            Self::Ready => format!(
                "a map with one of {}, such as `{{port: 8080, timeout: 10s}}`",
                quoted(READY_ONE_OF, " or ")
            ),
            Self::Port => "a number from 1 to 65535, or one after a host, such as `db:5432`".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_every_kind_is_in_the_reference() {
        let page = reference();
        for section in Section::all() {
            let (_, part) = page.split_once(&format!("\n## `{}`\n", section.key)).unwrap();
            let part = part.split("\n## ").next().unwrap();
            for field in section.fields {
                let row = format!("| `{}` | {} | {}", field.name, field.kind.name(), field.about);
                assert!(part.contains(&row), "{row}");
            }
        }
    }

    #[test]
    fn every_kind_of_value_is_explained() {
        for field in Section::all().flat_map(|section| section.fields).chain(TOP).chain(READY) {
            assert!(Type::ALL.contains(&field.kind), "{}", field.name);
        }
    }
}
