//! Which suites there are beyond those that `parts.toml` lists.
//!
//! ```text
//! the mirror's listing of dists/ ──┐ candidates ──each asked for its Release file──▶ suites that the mirror has
//! or else: names that are known ───┘
//! ```
//!
//! A suite has several names: `stable` is `trixie` for a while. The code name in its Release file tells, and each
//! suite is searched once.

use std::collections::BTreeSet;

use super::super::table::Suite;

/// Names that always mean some suite, whatever its code name is by now.
const ROLES: [&str; 6] = ["oldoldstable", "oldstable", "stable", "testing", "unstable", EXPERIMENTAL];
/// The one suite that is known by its role: its code name is `rc-buggy`.
const EXPERIMENTAL: &str = "experimental";
/// What follows a suite's name where newer packages for it are.
const BACKPORTS: &str = "-backports";
/// How many of the code names that this machine knows are tried; older ones have left every mirror.
const NEWEST: usize = 8;

/// The suites that the mirror has and the table does not list, sorted by their code names.
///
/// `fetch` gives a file of the mirror, or nothing if it is not there. `series` are the code names that this machine
/// knows, oldest first.
pub(crate) fn beyond(
    listed: &[Suite],
    series: &[String],
    fetch: impl Fn(&str) -> Option<String>,
) -> Vec<Suite> {
    let mut names = fetch("dists/").map(|page| in_listing(&page)).unwrap_or_default();
    if names.is_empty() {
        names = known(listed, series);
    }
    let known: BTreeSet<&str> = listed.iter().map(|suite| suite.name.as_str()).collect();
    let mut found = BTreeSet::new();
    for name in names.iter().filter(|name| is_whole(name) && !known.contains(name.as_str())) {
        let release = fetch(&format!("dists/{name}/Release"));
        let code_name = release.as_deref().and_then(|release| field(release, "Codename"));
        let code_name = code_name.map(|name| if name == "rc-buggy" { EXPERIMENTAL } else { name });
        found.extend(code_name.filter(|name| is_whole(name) && !known.contains(name)).map(str::to_owned));
    }
    found.into_iter().map(|name| Suite { with: libraries_of(&name), name }).collect()
}

/// The suites that a suite's packages take their libraries from.
fn libraries_of(name: &str) -> Vec<String> {
    let base = if name == EXPERIMENTAL { Some("sid") } else { name.strip_suffix(BACKPORTS) };
    base.map(str::to_owned).into_iter().collect()
}

/// The code names in Debian's table of its own releases, oldest first.
pub(crate) fn series_in(table: &str) -> Vec<String> {
    let mut lines = table.lines();
    let Some(column) = lines.next().and_then(|head| head.split(',').position(|name| name == "series")) else {
        return Vec::new();
    };
    lines.filter_map(|line| line.split(',').nth(column)).map(str::to_owned).collect()
}

/// Names that may be suites: the table's, the roles and the newest code names, each with its backports.
fn known(listed: &[Suite], series: &[String]) -> BTreeSet<String> {
    let newest = series.iter().rev().take(NEWEST).map(String::as_str);
    let plain: BTreeSet<&str> =
        listed.iter().map(|suite| suite.name.as_str()).chain(ROLES).chain(newest).collect();
    plain.into_iter().flat_map(|name| [name.to_owned(), format!("{name}{BACKPORTS}")]).collect()
}

/// The folders in a web server's listing: `<a href="bookworm/">`.
fn in_listing(page: &str) -> BTreeSet<String> {
    page.split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .filter_map(|(target, _)| target.strip_suffix('/'))
        .map(|folder| folder.trim_start_matches("./").to_owned())
        .collect()
}

/// Whether a name is that of a suite that can be searched: updates, security and numbered names only repeat others.
fn is_whole(name: &str) -> bool {
    let plain = name.strip_suffix(BACKPORTS).unwrap_or(name);
    !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn field<'a>(release: &'a str, name: &str) -> Option<&'a str> {
    release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    fn suite(name: &str, with: &[&str]) -> Suite {
        Suite { name: name.into(), with: with.iter().map(ToString::to_string).collect() }
    }

    /// A mirror that has these suites, each with its code name.
    fn mirror(suites: &[(&str, &str)], listing: Option<&str>) -> impl Fn(&str) -> Option<String> {
        let suites: BTreeMap<_, _> = suites
            .iter()
            .map(|(name, code_name)| {
                (format!("dists/{name}/Release"), format!("Origin: Debian\nCodename: {code_name}\n"))
            })
            .collect();
        let listing = listing.map(str::to_owned);
        move |path| if path == "dists/" { listing.clone() } else { suites.get(path).cloned() }
    }

    #[test]
    fn a_listing_tells_which_suites_there_are() {
        let page = "<a href=\"../\">up</a> <a href=\"Debian12.5/\">x</a> <a href=\"bookworm/\">x</a>\n\
                    <a href=\"bookworm-updates/\">x</a> <a href=\"./duke/\">x</a> <a href=\"README\">x</a>\n\
                    <a href=\"duke-backports/\">x</a> <a href=\"duke-backports-sloppy/\">x</a> <a href=\"stable/\">x</a>";
        let fetch = mirror(
            &[
                ("bookworm", "bookworm"),
                ("bookworm-updates", "bookworm-updates"),
                ("duke", "duke"),
                ("duke-backports", "duke-backports"),
                ("stable", "bookworm"),
                // It is there and not in the listing.
                ("buster", "buster"),
            ],
            Some(page),
        );
        let found = beyond(&[suite("bookworm", &[])], &["buster".into()], fetch);
        assert_eq!(found, [suite("duke", &[]), suite("duke-backports", &["duke"])]);
    }

    #[test]
    fn without_a_listing_known_names_are_tried_and_each_suite_is_searched_once() {
        let fetch = mirror(
            &[
                ("bookworm", "bookworm"),
                ("bookworm-backports", "bookworm-backports"),
                ("oldstable", "bookworm"),
                ("oldstable-backports", "bookworm-backports"),
                ("stable", "trixie"),
                ("testing", "forky"),
                ("experimental", "rc-buggy"),
                ("bullseye", "bullseye"),
            ],
            None,
        );
        let listed = [suite("bookworm", &[]), suite("trixie", &[])];
        let series = ["bullseye", "bookworm", "trixie"].map(str::to_owned);
        let found = beyond(&listed, &series, fetch);
        let wanted = [
            suite("bookworm-backports", &["bookworm"]),
            suite("bullseye", &[]),
            suite("experimental", &["sid"]),
            suite("forky", &[]),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_suite_that_the_table_lists_is_not_asked_for_and_an_odd_page_is_no_listing() {
        let asked = RefCell::new(Vec::new());
        let found = beyond(&[suite("sid", &[]), suite("stable", &[])], &[], |path| {
            asked.borrow_mut().push(path.to_owned());
            (path == "dists/").then(|| "<p>nothing to see</p>".to_owned())
        });
        assert_eq!(found, []);
        let asked = asked.into_inner();
        assert!(asked.contains(&"dists/sid-backports/Release".to_owned()), "{asked:?}");
        assert!(!asked.contains(&"dists/sid/Release".to_owned()), "{asked:?}");
    }

    #[test]
    fn code_names_are_read_from_debians_own_table() {
        let table = "version,codename,series,created\n12,Bookworm,bookworm,2021-08-14\n,Sid,sid,1993-08-16\n";
        assert_eq!(series_in(table), ["bookworm", "sid"]);
        assert_eq!(series_in("something else"), [""; 0]);
    }
}
