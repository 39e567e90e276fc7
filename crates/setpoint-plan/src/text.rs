//! Plans as people read them.

use std::fmt;

use crate::{Action, AttributeChange, Left, Plan, PlannedOperation, Standing, Summary};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.subject, self.summary)?;
        for operation in &self.operations {
            writeln!(f, "  {operation}")?;
            for change in &operation.detail {
                writeln!(f, "      {change}")?;
            }
        }
        for left in &self.left {
            writeln!(f, "  {left}")?;
        }
        Ok(())
    }
}

impl fmt::Display for PlannedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.action.sign(), self.kind, self.name)?;
        if self.temporary && self.action == Action::Delete {
            f.write_str(" (temporarily)")?;
        }
        if self.reason.is_empty() { Ok(()) } else { write!(f, ": {}", self.reason) }
    }
}

impl fmt::Display for AttributeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => write!(f, "{}: {old} → {new}", self.attribute),
            (None, Some(new)) => write!(f, "{}: {new}", self.attribute),
            (Some(old), None) => write!(f, "{}: {old} → (none)", self.attribute),
            (None, None) => write!(f, "{}", self.attribute),
        }
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.standing == Standing::Failed { "" } else { "is " };
        write!(f, "? {}/{} {verb}{}", self.kind, self.name, self.standing)?;
        for (i, cause) in self.causes.iter().enumerate() {
            write!(f, "{}{cause}", if i == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.create, "to create"),
            (self.modify, "to modify"),
            (self.recreate, "to re-create"),
            (self.delete, "to delete"),
            (self.left, "left unchanged"),
            (self.adopt, "to adopt"),
            (self.release, "to release"),
        ];
        let mut any = false;
        for (count, what) in parts.into_iter().filter(|&(count, _)| count > 0) {
            write!(f, "{}{count} {what}", if any { ", " } else { "" })?;
            any = true;
        }
        if any { Ok(()) } else { f.write_str("nothing to do") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_reads_back_from_json_as_it_was_written() {
        let mut plan = Plan::new("web");
        plan.push(PlannedOperation { temporary: true, ..PlannedOperation::new(Action::Delete, "file", "a") });
        plan.push(PlannedOperation {
            temporary: true,
            after: vec![0],
            detail: vec![AttributeChange {
                attribute: "mode".into(),
                old: Some("600".into()),
                new: Some("644".into()),
            }],
            ..PlannedOperation::new(Action::Create, "file", "a").because("it must be made anew")
        });
        plan.leave(Left {
            waits_for: Vec::new(),
            kind: "file".into(),
            name: "b".into(),
            path: vec!["inner".into()],
            standing: Standing::Pending,
            causes: vec!["waits for directory/x, which is missing".into()],
        });
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
        assert_eq!(
            plan.to_string(),
            "web: 1 to re-create, 1 left unchanged\n  - file/a (temporarily)\n  + file/a: it must be made anew\n      \
             mode: 600 → 644\n  ? file/b is pending: waits for directory/x, which is missing\n"
        );
    }

    #[test]
    fn what_failed_is_not_said_to_be_failed() {
        let left = Left {
            waits_for: Vec::new(),
            kind: "file".into(),
            name: "b".into(),
            path: Vec::new(),
            standing: Standing::Failed,
            causes: vec!["create failed once: disk full".into()],
        };
        assert_eq!(left.to_string(), "? file/b failed: create failed once: disk full");
    }
}
