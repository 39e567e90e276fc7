//! The names that a configuration gives, as rows tell.

use rustc_hash::{FxHashMap, FxHashSet};

use super::configuration::{Configuration, Part};
use crate::table::Name;
use crate::table::facts::{Given, facts};
use crate::text::SectionKind;

/// The names that a whole configuration gives.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: FxHashMap<Name, FxHashSet<String>>,
    /// Proxies whose servers have names that are written nowhere.
    templated: FxHashSet<String>,
    /// What has a name that is made of an unknown variable: any of its kind may be given.
    open: FxHashSet<Name>,
}

impl Names {
    pub(super) fn of(configuration: &Configuration<'_>) -> Self {
        let mut names = Self::default();
        for part in &configuration.parts {
            names.add(part);
        }
        for section in SectionKind::all().map(|kind| facts().section(kind)) {
            if let Some(predefined) = section.predefined {
                for name in &section.names {
                    names.given.entry(*name).or_default().insert(predefined.to_owned());
                }
            }
        }
        names
    }

    fn add(&mut self, part: &Part<'_>) {
        let section_facts = facts().section(part.kind);
        if part.has_unknown_name() {
            self.open.extend(&section_facts.names);
            let keywords = part.lines.iter().filter_map(|line| line.words.first());
            let named = keywords.flat_map(|keyword| section_facts.named(&keyword.to_str_lossy()));
            self.open.extend(named.map(|named| named.name).filter(|name| !name.is_local()));
        }
        let Some(section) = part.name() else { return };
        for kind in &section_facts.names {
            self.given.entry(*kind).or_default().insert(section.clone().into_owned());
        }
        for line in &part.lines {
            let Some(keyword) = line.words.first() else { continue };
            for named in section_facts.named(&keyword.to_str_lossy()) {
                match named.given(&line.words) {
                    None => {}
                    Some(_) if named.name.is_local() => {}
                    Some(Given::Section) => {
                        self.given.entry(named.name).or_default().insert(section.clone().into_owned());
                    }
                    Some(Given::Word(word)) => {
                        if word.variable || named.name == Name::ServerTemplate {
                            self.templated.insert(section.clone().into_owned());
                        }
                        let path = format!("{section}/{}", word.to_str_lossy());
                        self.given.entry(named.name).or_default().insert(path);
                    }
                }
            }
        }
    }

    /// Returns whether something has a name.
    pub(super) fn has(&self, kind: Name, name: &str) -> bool {
        self.open.contains(&kind) || self.given.get(&kind).is_some_and(|names| names.contains(name))
    }

    /// Returns whether a server is there, as `backend/server`; one of a template may be.
    pub(super) fn has_server(&self, path: &str) -> bool {
        let proxy = path.split_once('/').map_or(path, |(proxy, _)| proxy);
        self.has(Name::Server, path) || self.templated.contains(proxy)
    }

    /// All names of a kind.
    pub(super) fn all(&self, kind: Name) -> impl Iterator<Item = &str> {
        self.given.get(&kind).into_iter().flatten().map(String::as_str)
    }
}

/// The names that a section gives for itself alone.
#[derive(Debug, Default)]
pub(super) struct LocalNames {
    given: FxHashMap<Name, FxHashSet<String>>,
    /// Whether a line whose keyword is an unknown variable may give any.
    is_open: bool,
    /// What has a name that is made of an unknown variable: any of its kind may be given.
    open: FxHashSet<Name>,
}

impl LocalNames {
    pub(super) fn of(part: &Part<'_>) -> Self {
        let mut names = Self::default();
        let section = facts().section(part.kind);
        for line in &part.lines {
            let Some(keyword) = line.words.first() else { continue };
            names.is_open |= keyword.variable;
            for named in section.named(&keyword.to_str_lossy()) {
                let name = match named.given(&line.words) {
                    Some(Given::Word(word)) if named.name.is_local() && word.variable => {
                        names.open.insert(named.name);
                        continue;
                    }
                    Some(Given::Word(word)) if named.name.is_local() => word.to_str_lossy().into_owned(),
                    // Of what has the name of the section, it counts that it is there.
                    Some(Given::Section) => String::new(),
                    _ => continue,
                };
                names.given.entry(named.name).or_default().insert(name);
            }
        }
        names
    }

    /// Returns whether the section may give a name.
    pub(super) fn may_have(&self, kind: Name, name: &str) -> bool {
        let is_open = self.is_open || self.open.contains(&kind);
        is_open || self.given.get(&kind).is_some_and(|names| names.contains(name))
    }

    /// Returns whether the section may have a stick table.
    pub(super) fn may_have_table(&self) -> bool {
        self.may_have(Name::Table, "")
    }
}
