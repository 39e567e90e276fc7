//! Objects that HAProxy refuses as the original writes them, and that the model writes otherwise, or that it refused for
//! what stood beside them: before HAProxy itself.
//!
//! Many are asked at once. HAProxy blames a line or a section of its own; what it blames is taken out, and the rest is
//! asked again, until it accepts what is left.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use setpoint_conformance::{Judgement, ModelCase, Verdict};
use setpoint_haproxy::model::Version;
use setpoint_testutils::{Haproxy, Missing, need};

use crate::conformance::recording;
use crate::printer::{Candidate, configuration, surroundings};

/// How many objects are asked at once; HAProxy says no more of a file that has some more errors than this.
const BATCH: usize = 40;
/// How often a batch is asked again, at most.
const ROUNDS: usize = 60;

#[test]
fn what_is_written_instead_of_what_haproxy_refuses_is_accepted_3_0() {
    accepts(setpoint_testutils::Version::V3_0, Version::V3_0);
}

#[test]
fn what_is_written_instead_of_what_haproxy_refuses_is_accepted_3_2() {
    accepts(setpoint_testutils::Version::V3_2, Version::V3_2);
}

#[test]
fn what_is_written_instead_of_what_haproxy_refuses_is_accepted_3_4() {
    accepts(setpoint_testutils::Version::V3_4, Version::V3_4);
}

fn accepts(haproxy: setpoint_testutils::Version, version: Version) {
    need!(Haproxy::check(haproxy, "global\n"));
    let folder = surroundings();
    let candidates = candidates(version, &folder.path().display().to_string());
    assert!(candidates.len() > 100, "only {} cases", candidates.len());
    let check = |batch: &[&Candidate]| -> Result<Option<String>, Missing> {
        let text = configuration(version, folder.path(), batch, |candidate| &candidate.ours);
        let check = Haproxy::check(haproxy, &text)?;
        Ok((!check.accepted).then_some(check.output).map(|output| format!("{text}\0{output}")))
    };
    let (mut failures, mut judged) = (String::new(), 0);
    for batch in candidates.chunks(BATCH) {
        let mut left: Vec<&Candidate> = batch.iter().collect();
        for round in 0.. {
            assert!(round < ROUNDS, "HAProxy {version} blames something for ever");
            let Some(refusal) = need!(check(&left)) else { break };
            let mut blamed = blamed(&refusal, left.len());
            if blamed.is_empty() {
                // It does not say whom it means: each is asked alone.
                for (index, candidate) in left.iter().enumerate() {
                    if let Some(refusal) = need!(check(&[candidate])) {
                        blamed.insert(index, first_alert(&refusal));
                    }
                }
                assert!(!blamed.is_empty(), "HAProxy {version} refuses these only together:\n{refusal}");
            }
            for (index, message) in &blamed {
                let candidate = left[*index];
                if Judgement::of(message, &candidate.ours).is_some() {
                    judged += 1;
                    continue;
                }
                // Perhaps it is blamed only for what stands beside it.
                let Some(refusal) = need!(check(&[candidate])) else { continue };
                let message = first_alert(&refusal);
                if Judgement::of(&message, &candidate.ours).is_some() {
                    judged += 1;
                } else {
                    writeln!(failures, "{}\n  {:?}\n  {message}", candidate.case.case, candidate.ours)
                        .unwrap();
                }
            }
            // What differs from something judged only in the odd text of the same property is judged alike.
            let properties: Vec<&str> = blamed.keys().map(|index| property(left[*index])).collect();
            left.retain(|candidate| !properties.contains(&property(candidate)));
        }
    }
    assert!(judged * 2 < candidates.len(), "{judged} of {} are only for HAProxy to judge", candidates.len());
    assert!(failures.is_empty(), "HAProxy {version} refuses what the model writes:\n{failures}");
}

/// The property that a case is about.
fn property(candidate: &Candidate) -> &str {
    let name = candidate.case.case.as_str();
    name.split_once('=').map_or(name, |(property, _)| property)
}

/// The objects that HAProxy refuses as recorded and that the model writes otherwise.
fn candidates(version: Version, folder: &str) -> Vec<Candidate> {
    let text = recording(version, "model").replace("$D", folder);
    let cases = text.lines().map(|line| serde_json::from_str::<ModelCase>(line).unwrap());
    let mut candidates: Vec<Candidate> = cases
        .filter(|case| match case.verdict(version) {
            Some(Verdict::Otherwise) => true,
            // What was said of the surroundings in which it was recorded says nothing of the object itself.
            Some(Verdict::OnlyHaproxy(judgement)) => matches!(judgement.name, "beside" | "allowed"),
            _ => false,
        })
        // HAProxy does as it is told, and waits for a minute.
        .filter(|case| !case.case.contains("force_cfg_parser_pause"))
        .filter_map(|case| {
            let ours = case.write_as_recorded(version)?.ok()?;
            Some(Candidate { case, ours })
        })
        .collect();
    // What `defaults` say holds for all proxies after them.
    candidates.sort_by_key(|candidate| candidate.case.section == "defaults");
    candidates
}

/// Whom HAProxy blames, with what it says: by the line it names, or by the name of the section.
fn blamed(refusal: &str, count: usize) -> BTreeMap<usize, String> {
    let (text, output) = refusal.split_once('\0').unwrap();
    let sections: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("# case "))
        .map(|(number, _)| number + 1)
        .collect();
    assert_eq!(sections.len(), count);
    let mut blamed = BTreeMap::new();
    for alert in output.split("[ALERT]").skip(1) {
        let alert = alert.split(['\n', '[']).collect::<Vec<_>>().join("[");
        let by_line = alert
            .split("haproxy.cfg:")
            .nth(1)
            .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok());
        let by_name = || {
            let rest = alert.split("case-").nth(1)?;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()
        };
        let index = match by_line {
            Some(line) => sections.iter().rposition(|start| *start <= line),
            None => by_name(),
        };
        if let Some(index) = index.filter(|index| *index < count) {
            blamed.entry(index).or_insert(alert);
        }
    }
    blamed
}

fn first_alert(refusal: &str) -> String {
    let output = refusal.split_once('\0').map_or(refusal, |(_, output)| output);
    output.lines().find(|line| line.contains("ALERT")).unwrap_or(output).to_owned()
}
