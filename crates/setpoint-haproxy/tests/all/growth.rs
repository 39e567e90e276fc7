//! What takes how long: four times as much takes about four times as long, and never sixteen times.

use std::fmt::Write as _;
use std::time::Duration;

use setpoint_haproxy::check::{Checks, check};
use setpoint_haproxy::text::{Document, LineEdit};

use crate::compare::diff;

/// Compares how long something takes with a size and with four times that size.
fn grows_with_its_size(what: &str, size: usize, run: impl Fn(usize)) {
    const MOST: u32 = 10;
    let fastest = |size: usize| {
        let once = || {
            let start = processor_time();
            run(size);
            processor_time().saturating_sub(start)
        };
        (0..3).map(|_| once()).min().unwrap_or(Duration::MAX)
    };
    // Other programs may have emptied the caches: what is quadratic is so each time.
    let measured: Vec<_> = (0..3).map(|_| (fastest(size), fastest(4 * size))).collect();
    assert!(measured.iter().any(|(small, large)| *large < *small * MOST), "{what}: {measured:?}");
}

/// How long this thread has run so far: the others of a busy machine do not count, which only hold up what takes long.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn repeated(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "{}", line(number)).unwrap();
        text
    })
}

#[test]
fn check_of_many_wrong_sections_grows_with_their_number() {
    grows_with_its_size("sections with an error each", 500, |count| {
        let text = repeated(count, |number| format!("backend b{number}\n  bogus"));
        assert_eq!(check(&Document::parse(text.as_bytes()), &Checks::default()).len(), count);
    });
}

#[test]
fn check_of_many_unknown_names_beside_many_known_ones_grows_with_their_number() {
    grows_with_its_size("names that nothing has", 250, |count| {
        let rules = repeated(count, |number| format!("  use_backend nowhere-{number} if TRUE"));
        let backends = repeated(count, |number| format!("backend somewhere-{number}"));
        let text = format!("frontend f\n  bind :80\n{rules}{backends}");
        let found = check(&Document::parse(text.as_bytes()), &Checks::default());
        assert_eq!(found.iter().filter(|found| found.message.contains("nowhere")).count(), count);
    });
}

#[test]
fn check_of_many_rules_with_an_acl_each_grows_with_their_number() {
    grows_with_its_size("rules with an ACL each", 500, |count| {
        let acls = repeated(count, |number| format!("  acl a{number} src 10.0.0.1"));
        let rules = repeated(count, |number| format!("  http-request set-header X-{number} y if a{number}"));
        let text = format!("frontend f\n  mode http\n  bind :80\n  timeout client 1s\n{acls}{rules}");
        assert_eq!(check(&Document::parse(text.as_bytes()), &Checks::default()), []);
    });
}

#[test]
fn a_hint_about_a_long_name_takes_no_time() {
    grows_with_its_size("a long name", 1000, |length| {
        let (a, b) = ("a".repeat(length), "a".repeat(length) + "b");
        let text = format!("frontend f\n  bind :80\n  default_backend {a}\nbackend {b}\n");
        assert_eq!(check(&Document::parse(text.as_bytes()), &Checks::default()).len(), 1);
    });
}

#[test]
fn servers_that_get_other_names_are_compared_in_a_time_that_grows_with_their_number() {
    grows_with_its_size("renamed servers", 250, |count| {
        let text = |name: &str| {
            format!("backend b\n{}", repeated(count, |number| format!("  server {name}{number} 10.0.0.1:80")))
        };
        assert_eq!(diff(&text("a"), &text("b")).operations().len(), 2 * count);
    });
}

#[test]
fn servers_that_come_beside_lines_that_no_row_reads_are_judged_in_a_time_that_grows_with_their_number() {
    grows_with_its_size("new servers beside lines that no row reads", 250, |count| {
        let lines = repeated(count, |number| format!("  bogus {number} x"));
        let servers = repeated(count, |number| format!("  server s{number} 10.0.0.1:80"));
        let found = diff(&format!("backend b\n{lines}"), &format!("backend b\n{lines}{servers}"));
        assert_eq!(found.operations().len(), count);
    });
}

#[test]
fn servers_that_come_beside_others_are_judged_in_a_time_that_grows_with_their_number() {
    grows_with_its_size("new servers that need what their section gives", 500, |count| {
        let servers = |name: &str| {
            repeated(count, |number| {
                format!("  server {name}{number} 10.0.0.1:443 id {} ssl", number + 90_000)
            })
        };
        let text = |servers: &str| format!("backend b\n  balance roundrobin\n{servers}");
        let old = servers("a").replace("id 9", "id 8");
        let found = diff(&text(&old), &text(&format!("{old}{}", servers("b"))));
        assert_eq!(found.operations().len(), count);
    });
}

#[test]
fn sections_that_share_a_name_are_compared_in_a_time_that_grows_with_their_number() {
    grows_with_its_size("sections of one name", 250, |count| {
        let text = repeated(count, |_| "frontend f\n  bind :80".to_owned());
        assert_eq!(diff(&text, "frontend f\n").operations().len(), count);
    });
}

#[test]
fn servers_that_go_are_judged_in_a_time_that_grows_with_their_number() {
    grows_with_its_size("a server less in each backend", 100, |count| {
        let text = |more: &str| {
            repeated(count, |number| {
                format!(
                    "backend b{number}\n  http-request deny if {{ srv_is_up(s1) }}\n  server s1 10.0.0.1:80 track s2\n{more}"
                )
            })
        };
        let found =
            diff(&text("  server s2 10.0.0.1:80\n  server s3 10.0.0.1:80"), &text("  server s2 10.0.0.1:80"));
        assert_eq!(found.operations().len(), count);
    });
}

#[test]
fn many_edits_of_a_section_take_a_time_that_grows_with_their_number() {
    for indentation in ["  ", ""] {
        grows_with_its_size("edits of a section", 400, |count| {
            let rule = |number: usize| format!("{indentation}http-request set-header X-{number} y");
            let text = format!("frontend f\n{}backend b\n", repeated(count, rule));
            let mut document = Document::parse(text.as_bytes());
            for _ in 0..count {
                let line = u32::try_from(count / 2).unwrap();
                let edit = LineEdit::Replace { line, text: b"http-request deny".to_vec() };
                document = document.with_lines(0, &[edit]);
            }
            assert_eq!(document.sections().len(), 2);
        });
    }
}
