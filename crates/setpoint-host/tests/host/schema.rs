//! The schema accepts what the loader accepts, and not what it refuses.

use std::fs;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};
use setpoint_host::{load, schema};

/// JSON is YAML: both see the same text.
fn both(document: &Value) -> (bool, bool) {
    static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| jsonschema::validator_for(&schema()).unwrap());
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("set.yaml"), document.to_string()).unwrap();
    (VALIDATOR.is_valid(document), load(directory.path()).is_ok())
}

#[test]
fn good_manifests_are_good_for_the_schema() {
    for good in [
        json!({}),
        json!({ "name": "a", "root": ".", "values": { "x": [1, { "y": null }] } }),
        json!({ "directories": { "a": null, "b": { "mode": "0750", "owner": 0, "group": "root" } } }),
        json!({ "directories": null }),
        json!({ "files": { "a/b.txt": { "content": "", "sensitive": true, "adopt": true, "prevent_destroy": false } } }),
        json!({ "files": { "a": { "template": "{{ x }}", "values": { "x": 1 }, "mode": 644 } } }),
        json!({ "symlinks": { "a": { "target": "b", "path": "c" } } }),
        json!({ "processes": { "a": { "command": ["x", 1], "env": { "N": 1, "B": true }, "cwd": ".", "log": "l",
            "stop_signal": "SIGINT", "stop_timeout": "5s" } } }),
        json!({ "processes": { "a": { "command": "x", "stop_timeout": 0 }, "b": { "command": ["x", ""], "stop_timeout": "0s" } } }),
        json!({ "processes": {
            "a": { "command": "x", "ready": { "port": 8080, "timeout": "5s" } },
            "b": { "command": "x", "ready": { "port": "db:5432" } },
            "c": { "command": "x", "ready": { "file": "run/c" } },
            "d": { "command": "x", "ready": { "command": ["true"] } },
            "e": { "command": "x", "ready": { "log": "listening", "timeout": 60 } } } }),
        json!({ "commands": { "a": { "check": "x", "apply": ["y"], "undo": "z", "apply_timeout": 5 } } }),
        json!({ "files": { "a": { "content": "x" }, "b": { "content": "y", "after": ["file.a"] } } }),
    ] {
        assert_eq!(both(&good), (true, true), "{good}");
    }
}

#[test]
fn bad_manifests_are_bad_for_the_schema() {
    for bad in [
        json!([]),
        json!({ "file": {} }),
        json!({ "name": 1 }),
        json!({ "files": { "a": null } }),
        json!({ "files": { "a b": { "content": "x" } } }),
        json!({ "files": { "a": { "content": "x", "source": "y" } } }),
        json!({ "files": { "a": { "content": "x", "mod": "0644" } } }),
        json!({ "files": { "a": { "content": 1 } } }),
        json!({ "files": { "a": { "content": "x", "mode": "rwx" } } }),
        json!({ "files": { "a": { "content": "x", "sensitive": "yes" } } }),
        json!({ "symlinks": { "a": { "path": "x" } } }),
        json!({ "processes": { "a": { "command": [] } } }),
        json!({ "processes": { "a": { "command": " " } } }),
        json!({ "processes": { "a": { "command": [""] } } }),
        json!({ "commands": { "a": { "apply": "x", "apply_timeout": 0 } } }),
        json!({ "commands": { "a": { "apply": "x", "apply_timeout": "00s" } } }),
        json!({ "processes": { "a": { "command": "x", "env": { "": "x" } } } }),
        json!({ "processes": { "a": { "command": "x", "stop_signal": "STOP" } } }),
        json!({ "processes": { "a": { "command": "x", "stop_timeout": "soon" } } }),
        json!({ "processes": { "a": { "command": "x", "env": { "A=B": "x" } } } }),
        json!({ "processes": { "a": { "command": "x", "ready": {} } } }),
        json!({ "processes": { "a": { "command": "x", "ready": 8080 } } }),
        json!({ "processes": { "a": { "command": "x", "ready": { "port": 0 } } } }),
        json!({ "processes": { "a": { "command": "x", "ready": { "port": 70000 } } } }),
        json!({ "processes": { "a": { "command": "x", "ready": { "port": "http" } } } }),
        json!({ "processes": { "a": { "command": "x", "ready": { "port": 80, "log": "x" } } } }),
        json!({ "processes": { "a": { "command": "x", "ready": { "port": 80, "prot": 80 } } } }),
        json!({ "commands": { "a": { "check": "x" } } }),
        json!({ "commands": { "a": { "apply": "x", "after": ["thing.b"] } } }),
    ] {
        assert_eq!(both(&bad), (false, false), "{bad}");
    }
}

#[test]
fn every_property_is_described() {
    fn walk(at: &str, value: &Value) {
        for (name, property) in value["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{at}.{name}");
            walk(&format!("{at}.{name}"), property);
            walk(&format!("{at}.{name}"), &property["additionalProperties"]);
        }
    }
    let schema = schema();
    walk("", &schema);
    assert_eq!(schema["additionalProperties"], false);
    for section in ["directories", "files", "symlinks", "processes", "commands"] {
        assert_eq!(schema["properties"][section]["additionalProperties"]["additionalProperties"], false);
    }
}
