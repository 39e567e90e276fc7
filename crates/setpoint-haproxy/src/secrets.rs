//! What nobody should read who reads a plan: passwords and keys.

use setpoint_plan::{AttributeChange, Plan};

use crate::text::Document;

/// What is shown instead.
const HIDDEN: &str = "********";

/// The words whose next word is a secret.
const BEFORE_SECRETS: [&str; 8] = [
    "password",
    "insecure-password",
    "ca-sign-pass",
    "dynamic-cookie-key",
    "tcp-md5sig",
    "cluster-secret",
    "eab-mac-key",
    "anonkey",
];

/// The last part of the name of an attribute that is a secret.
const ATTRIBUTES: [&str; 11] = [
    "password",
    "passwd",
    "stats_auths",
    "ca_sign_pass",
    "dynamic_cookie_key",
    "tcp_md5sig",
    "cluster_secret",
    "eab_mac_key",
    "anonkey",
    // What is set in the environment is often there because it is a secret.
    "setenv",
    "presetenv",
];

/// Hides the passwords and keys in what operations change: that one changes stays to be seen.
///
/// ```
/// use setpoint_haproxy::secrets::hide;
/// use setpoint_plan::AttributeChange;
///
/// let mut change = AttributeChange {
///     attribute: "line".to_owned(),
///     old: None,
///     new: Some("    user ann insecure-password s3cret groups g".to_owned()),
/// };
/// hide(&mut change);
/// assert_eq!(change.new.as_deref(), Some("    user ann insecure-password ******** groups g"));
/// ```
pub fn hide(change: &mut AttributeChange) {
    let name = change.attribute.rsplit('.').next().unwrap_or_default();
    let is_secret = ATTRIBUTES.contains(&name);
    for value in change.old.iter_mut().chain(&mut change.new) {
        *value = if is_secret { HIDDEN.to_owned() } else { hidden(value) };
    }
}

/// Hides the passwords and keys in a plan.
pub fn hide_in(plan: &mut Plan) {
    for operation in &mut plan.operations {
        operation.detail.iter_mut().for_each(hide);
    }
}

/// A text in which secrets are hidden, line by line.
fn hidden(text: &str) -> String {
    // What a header says that lets someone in.
    let bare = text.trim_start_matches(['"', '\'', ' ']);
    if ["Basic ", "Bearer "].iter().any(|scheme| bare.starts_with(scheme)) {
        return HIDDEN.to_owned();
    }
    let lines: Vec<String> = text.split('\n').map(hidden_in_line).collect();
    lines.join("\n")
}

fn hidden_in_line(text: &str) -> String {
    let document = Document::parse(text.as_bytes());
    let Some(line) = document.sections().first().and_then(|section| section.all_lines().next()) else {
        return text.to_owned();
    };
    let words: Vec<_> = line.words().collect();
    let mut out = text.to_owned();
    // From the end, so that the places of those before stay.
    for (at, word) in words.iter().enumerate().rev() {
        let before = |back: usize| at.checked_sub(back).and_then(|at| words.get(at));
        let is_name = |word: &crate::text::Word<'_>, parts: &[&str]| {
            let name = word.to_str_lossy().to_ascii_uppercase();
            parts.iter().any(|part| name.contains(part))
        };
        let of_stats =
            before(1).is_some_and(|word| word.is("auth")) && before(2).is_some_and(|word| word.is("stats"));
        let after_keyword = of_stats
            || before(1).is_some_and(|before| BEFORE_SECRETS.iter().any(|keyword| before.is(keyword)));
        let of_variable = at == 2
            && words.first().is_some_and(|first| first.is("setenv") || first.is("presetenv"))
            && before(1).is_some_and(|name| is_name(name, &["PASS", "SECRET", "TOKEN", "KEY", "AUTH"]));
        let of_header = before(2).is_some_and(|action| action.is("set-header") || action.is("add-header"))
            && before(1).is_some_and(|name| is_name(name, &["AUTHORIZATION", "API-KEY", "TOKEN"]));
        if !(after_keyword || of_variable || of_header) {
            continue;
        }
        let start = usize::try_from(word.column.saturating_sub(1)).unwrap_or(usize::MAX);
        if out.get(start..start + word.raw.len()).is_some() {
            // Who logs in is no secret.
            let user = word.to_str_lossy().split_once(':').map(|(user, _)| format!("{user}:{HIDDEN}"));
            let shown = user.filter(|_| of_stats);
            out.replace_range(start..start + word.raw.len(), shown.as_deref().unwrap_or(HIDDEN));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        for (text, shown) in [
            ("user a password $6$x", "user a password ********"),
            ("user a insecure-password \"two words\" groups g", "user a insecure-password ******** groups g"),
            ("  stats auth admin:s3cret", "  stats auth admin:********"),
            ("bind :443 ssl ca-sign-pass x crt y", "bind :443 ssl ca-sign-pass ******** crt y"),
            ("dynamic-cookie-key k", "dynamic-cookie-key ********"),
            ("setenv DB_PASSWORD x", "setenv DB_PASSWORD ********"),
            ("setenv PORT 80", "setenv PORT 80"),
            (
                "http-request set-header Authorization \"Basic eA==\"",
                "http-request set-header Authorization ********",
            ),
            ("\"Basic eA==\"", "********"),
            ("http-request auth realm x", "http-request auth realm x"),
            ("a\nuser a password x\nb", "a\nuser a password ********\nb"),
            ("server s 10.0.0.1:80 # password", "server s 10.0.0.1:80 # password"),
        ] {
            assert_eq!(hidden(text), shown);
        }
    }

    #[test]
    fn the_values_of_secret_attributes_are_hidden() {
        let mut change = AttributeChange {
            attribute: "stats_options.stats_auths".to_owned(),
            old: Some("[{\"passwd\":\"x\"}]".to_owned()),
            new: None,
        };
        hide(&mut change);
        assert_eq!((change.old.as_deref(), change.new), (Some("********"), None));
    }
}
