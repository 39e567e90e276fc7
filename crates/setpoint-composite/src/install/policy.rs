//! What the operator needs of Consul, as rules of a policy: the least that works.

use std::fmt::Write as _;

use crate::settings::Namespaces;
use setpoint_structure::declare::structure_ref_key;

/// The rules of a policy for the token of an operator that serves some namespaces.
///
/// All below `composite/` is written, as the namespaces of one composite may be served by several operators, and what is
/// claimed there has to be seen. Of `config/` it is one key for each namespace; of namespaces that are not known beforehand,
/// a rule can't name it.
///
/// ```
/// use setpoint_composite::install::consul_policy;
/// use setpoint_composite::settings::Namespaces;
///
/// let policy = consul_policy(&Namespaces::Only(["shop".to_owned()].into()));
/// assert!(policy.contains(r#"key "config/shop/application/composite/structureRef" { policy = "write" }"#));
/// ```
pub fn consul_policy(namespaces: &Namespaces) -> String {
    let mut rules = "key_prefix \"composite/\" { policy = \"write\" }\n".to_owned();
    match namespaces {
        Namespaces::All => rules += "key_prefix \"config/\" { policy = \"write\" }\n",
        Namespaces::Only(names) => {
            for name in names {
                let key = structure_ref_key(name);
                // Writing to a string does not fail.
                let _ = writeln!(rules, "key \"{key}\" {{ policy = \"write\" }}");
            }
        }
    }
    rules
}
