//! What a row, or an option of one, says beyond its grammar: the attributes after ` ; `.

use super::grammar::{Direction, Versions};
use super::names::{Naming, Reference};
use super::resources::{EnvironmentChange, Provision, Resource, RuntimeRule, Step};
use super::rules::Rule;
use super::samples::Stage;
use super::{Repetition, Text};
use crate::model::{Field, ObjectKind, Value};

/// The attributes of a row, or of an option.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an attribute of its own")]
pub(crate) struct Attributes {
    /// The list of which each such line, or option, is an element.
    pub(crate) list: Option<Field>,
    /// The field that keeps the comment of the line.
    pub(crate) metadata: Option<Field>,
    /// In which directions it counts.
    pub(crate) direction: Direction,
    /// For an option that is only read: the options of which one has to stand beside it.
    pub(crate) read_beside: Vec<&'static str>,
    /// What a second such line does.
    pub(crate) repeat: Repeat,
    /// For a list whose first element the API shows a second time: the fields of an element, and of its double.
    pub(crate) mirror: Vec<(Field, Field)>,
    /// What the API adds to what it is sent where a field is not given, and what it belongs to is.
    pub(crate) implied: Option<(Field, Value)>,
    /// Where HAProxy can change it without a reload, if anywhere.
    pub(crate) runtime: Option<RuntimeRule>,
    /// The versions that accept it of something that is added to a running HAProxy.
    pub(crate) dynamic: Option<Versions>,
    /// The values that are accepted of it then; all, where there are none.
    pub(crate) dynamic_values: Vec<&'static str>,
    /// Where no server can be added to a running HAProxy beside it.
    pub(crate) static_servers: Option<StaticServers>,
    /// The same of the opposite of an option that toggles.
    pub(crate) dynamic_no: Option<Versions>,
    /// Of an option: the paths of those of which one switches it on as well where a file has both, and not in what is added to a
    /// running HAProxy.
    pub(crate) follows: Vec<&'static str>,
    /// The path of the option beside which it follows others.
    pub(crate) follows_beside: Option<&'static str>,
    /// The paths of the values beside which it does not.
    pub(crate) follows_unless: Vec<&'static str>,
    /// The fields that are never shown.
    pub(crate) secret: Vec<Field>,
    /// Where another value tells whether it is a secret: the field, and what its value holds then.
    pub(crate) secret_if: Vec<SecretIf>,
    /// Of an option: what it sets. Of those that set the same, the last holds.
    pub(crate) sets: Vec<&'static str>,
    /// Of an option: to what it adds something. Of those that add to the same, the order counts beside one that takes away.
    pub(crate) adds_to: Vec<&'static str>,
    /// Of the opposite of an option that toggles: whether it takes away from what others add to.
    pub(crate) takes_away: bool,
    /// The lines among which its place matters.
    pub(crate) sequences: Vec<Sequence>,
    /// What holds where it is not given, by version.
    pub(crate) defaults: Vec<(Versions, &'static str)>,
    /// What one of its values is where the line does not give it.
    pub(crate) default_of: Option<(Field, &'static str)>,
    /// Where its default does not hold.
    pub(crate) default_unless: Vec<Unless>,
    /// Whether no HAProxy has it, although the schema has a property for it.
    pub(crate) refused: bool,
    /// The sections in which HAProxy accepts it, if not in all that can hold it.
    pub(crate) places: Vec<ObjectKind>,
    /// What has to hold between its values.
    pub(crate) rule: Option<&'static Rule>,
    /// For the place of children: whether there can be several.
    pub(crate) several: Multiplicity,
    /// For what opens a section: within which names it has to have one of its own.
    pub(crate) unique: Option<Unique>,
    /// What it is beside the schema, if it is not of the schema.
    pub(crate) text: Option<Text>,
    /// What its values refer to.
    pub(crate) references: Vec<Reference>,
    /// What HAProxy wants of what it refers to.
    pub(crate) references_require: Option<Resource>,
    /// The settings of the section without which HAProxy does not look up what it refers to.
    pub(crate) references_if: Vec<&'static str>,
    /// What its values give names to.
    pub(crate) names: Vec<Naming>,
    /// The field that names the stick table it works on; where it is not given, that is the section's own.
    pub(crate) stick_table: Option<Field>,
    /// The versions that warn of it, and what to do instead.
    pub(crate) deprecated: Option<(Versions, &'static str)>,
    /// The versions that accept it only after `expose-experimental-directives`.
    pub(crate) experimental: Option<Versions>,
    /// The options that HAProxy wants or refuses beside it.
    pub(crate) company: Company,
    /// Whether HAProxy ignores it, with a warning.
    pub(crate) ignored: bool,
    /// Whether HAProxy ignores it in what others start from, such as `default-server`.
    pub(crate) no_default: bool,
    /// For what opens a section: the word that begins a line without which HAProxy refuses it.
    pub(crate) wants: Option<&'static str>,
    /// Whether HAProxy does not look at what follows the name of such a section.
    pub(crate) ignores_rest: bool,
    /// Where no other may have its value.
    pub(crate) distinct: Option<Distinct>,
    /// What it gives to others.
    pub(crate) provides: Vec<Provision>,
    /// What it can't be without.
    pub(crate) requires: Vec<Provision>,
    /// What it can't be without in something that is added to a running HAProxy.
    pub(crate) dynamic_requires: Vec<Provision>,
    /// Values that have to be less than a number that `global` sets: the field, and the path of that number.
    pub(crate) less_than: Vec<(Field, &'static str)>,
    /// What it does, if it is a step of a health check.
    pub(crate) step: Option<Step>,
    /// The name of the lines below that start from its values.
    pub(crate) base: Option<&'static str>,
    /// The name of the lines above that it starts from.
    pub(crate) based_on: Option<&'static str>,
    /// Whether its value is a file that HAProxy loads when it starts, and not later.
    pub(crate) loads: bool,
    /// Whether its section is in use after such a line, if it decides that.
    pub(crate) state: Option<bool>,
    /// Whether HAProxy accepts it in `defaults` sections only where these have a name.
    pub(crate) wants_named_defaults: bool,
    /// Of an option of servers: the values with which a server's place in a consistent hash does not follow from the order of
    /// servers; all, where there are none.
    pub(crate) hash_place: Option<Vec<&'static str>>,
    /// What it does to the environment.
    pub(crate) environment: Option<EnvironmentChange>,
    /// For what opens a section: the name that one has which HAProxy makes by itself.
    pub(crate) predefined: Option<&'static str>,
    /// When its expressions are evaluated.
    pub(crate) stage: Option<&'static Stage>,
    /// When it is created among others: what is referred to comes first.
    pub(crate) rank: Option<i32>,
    /// Where such lines stand among the other lines of their section that have places.
    pub(crate) place: Option<u8>,
    /// What an algorithm makes of its servers.
    pub(crate) servers: Option<Servers>,
    /// Whether `no` may stand before it, although it does not toggle.
    pub(crate) negatable: bool,
    /// The versions in which its address can't be one of QUIC.
    pub(crate) no_quic: Option<Versions>,
    /// The versions in which an address of QUIC is experimental.
    pub(crate) experimental_quic: Option<Versions>,
    /// The versions in which its address can't be one of datagrams.
    pub(crate) no_datagrams: Option<Versions>,
    /// The versions of HAProxy that have it, where not those of the schema.
    pub(crate) haproxy: Option<Versions>,
}

/// Whether a section can have several children of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Multiplicity {
    /// As many as one likes.
    #[default]
    Many,
    /// As many as have names of their own: HAProxy refuses the second.
    UniqueNames,
    /// As many as have names of their own: HAProxy warns of the second, and passes over it.
    UniqueNamesWarned,
    /// Just one.
    One,
}

/// Within which sections a name must be given once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unique {
    /// The names of the groups of sections, each with the versions that look at it; none for those of its own kind.
    pub(crate) groups: Vec<(&'static str, Versions)>,
    /// Whether HAProxy warns only.
    pub(crate) is_warned: bool,
}

/// What a second line of a directive does to the first, or the same option once more in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It takes its place.
    #[default]
    Last,
    /// `repeat=first`: HAProxy ignores it, with a warning.
    First,
    /// `repeat=refused`: HAProxy refuses it.
    Refused,
    /// `repeat=add`: its words come after those of the first, as if all stood in one line; those of an option after a comma.
    Add,
    /// `repeat=merge`: its options come beside those of the first, and win over the same ones: `default-server`.
    Merge,
    /// `repeat=beside`: both hold, which the schema can't say: from the second on, such lines are not modelled, nor is a line that
    /// has the option twice.
    Beside,
}

impl Repeat {
    /// Finds what a row calls by a name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "first" => Self::First,
            "refused" => Self::Refused,
            "add" => Self::Add,
            "merge" => Self::Merge,
            "beside" => Self::Beside,
            _ => return None,
        })
    }
}

/// Where no server can be added to a running HAProxy.
#[derive(Clone, Debug)]
pub(crate) struct StaticServers {
    /// The versions that do not accept one.
    pub(crate) versions: Versions,
    /// The values with which they don't; all, where there are none.
    pub(crate) values: Vec<&'static str>,
    /// Whether they do where an algorithm is stated.
    pub(crate) unless_balance: bool,
}

/// Where no other may have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distinct {
    /// `distinct`: among such lines of a section.
    Section,
    /// `distinct=numbered`: among such lines of a section, of which those without one are numbered in their order.
    Numbered,
    /// `distinct=everywhere`: in the whole configuration.
    Everywhere,
}

impl Distinct {
    /// Finds what rows call by a name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Section,
            "numbered" => Self::Numbered,
            "everywhere" => Self::Everywhere,
            _ => return None,
        })
    }
}

/// Lines of which the order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) name: &'static str,
    /// The word of the line that has to be the same for the order to count.
    pub(crate) key: Option<usize>,
}

/// Where a default does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unless {
    /// Whether the `global` section is meant, not the section itself.
    pub(crate) is_global: bool,
    pub(crate) path: &'static str,
    /// The value that the field has there; any, if there is none.
    pub(crate) value: Option<&'static str>,
}

/// A value that is a secret where another one holds a text.
#[derive(Clone, Debug)]
pub(crate) struct SecretIf {
    pub(crate) secret: Field,
    pub(crate) field: Field,
    /// Parts of the other value, in capitals.
    pub(crate) parts: Vec<&'static str>,
}

/// What an algorithm makes of the servers of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Servers {
    /// Whether servers can be added and weights changed while HAProxy runs: `dynamic`.
    pub(crate) are_dynamic: bool,
    /// Whether their order counts: `ordered`.
    pub(crate) are_ordered: bool,
    /// Whether `hash-type` decides over both: `hashed`.
    pub(crate) are_hashed: bool,
}

/// The options that HAProxy wants or refuses beside an option, or in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Company {
    /// Those of which it wants one.
    pub(crate) needs: Vec<&'static str>,
    /// Those that it refuses.
    pub(crate) excludes: Vec<&'static str>,
}

impl Company {
    /// Returns whether none of those is given of which HAProxy wants one.
    pub(crate) fn misses(&self, is_given: impl Fn(&str) -> bool) -> bool {
        !self.needs.is_empty() && !self.needs.iter().any(|option| is_given(option))
    }

    /// Returns the first of those that HAProxy refuses and that is given.
    pub(crate) fn excluded(&self, is_given: impl Fn(&str) -> bool) -> Option<&'static str> {
        self.excludes.iter().copied().find(|option| is_given(option))
    }

    /// Says what something misses.
    pub(crate) fn missing(&self, name: &str) -> String {
        let needed: Vec<String> = self.needs.iter().map(|needed| format!("`{needed}`")).collect();
        format!("`{name}` can't be without {}", needed.join(" or "))
    }

    /// Says that something is refused beside another option.
    pub(crate) fn refused(name: &str, other: &str) -> String {
        format!("HAProxy does not accept `{name}` beside `{other}`")
    }
}

impl Attributes {
    /// Returns what a second line, or the same option once more in a line, does to the first.
    pub(crate) fn repetition(&self) -> Repetition {
        match (self.list.is_some(), self.repeat) {
            (true, _) | (false, Repeat::Add | Repeat::Merge | Repeat::Beside) => Repetition::Counts,
            (false, Repeat::First) => Repetition::Ignored,
            (false, Repeat::Refused) => Repetition::Refused,
            (false, Repeat::Last) => Repetition::Replaces,
        }
    }

    /// Returns whether HAProxy accepts it of something that is added to it.
    pub(crate) fn is_dynamic(&self, version: crate::model::Version) -> bool {
        self.dynamic.is_some_and(|dynamic| dynamic.contains(version))
    }

    /// Returns whether a version of HAProxy has it, as far as it says.
    pub(crate) fn is_of(&self, version: crate::model::Version) -> bool {
        self.haproxy.is_none_or(|versions| versions.contains(version))
    }

    /// Returns whether HAProxy accepts it in some sections only, of which one is none.
    pub(crate) fn is_outside(&self, section: Option<ObjectKind>) -> bool {
        section.is_some_and(|section| {
            let is_in = |kind: &ObjectKind| match section {
                ObjectKind::Listen => matches!(kind, ObjectKind::Frontend | ObjectKind::Backend),
                section => *kind == section,
            };
            !self.places.is_empty() && !self.places.iter().any(is_in)
        })
    }
}
