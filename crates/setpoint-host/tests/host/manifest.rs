//! Good manifests, and the graph they make.

use std::fs;

use setpoint_graph::ItemRef;
use setpoint_host::{Command, File, Process, Symlink, attributes, item_types, load};

use crate::world::World;

fn needs(manifest: &setpoint_host::Manifest, kind: &str, name: &str) -> Vec<String> {
    let item = manifest.graph().item(&ItemRef::new(kind, name)).expect(name);
    let mut needs: Vec<String> = item
        .dependencies()
        .iter()
        .map(|dependency| {
            let tie = match (dependency.is_order(), dependency.repeats_when_changed()) {
                (true, true) => " again",
                (true, false) => " first",
                _ => "",
            };
            format!("{dependency}{tie}")
        })
        .collect();
    needs.sort();
    needs
}

#[test]
fn what_an_item_needs_is_found_in_its_path_its_target_and_its_references() {
    let world = World::new();
    let manifest = world.load(
        "directories: {etc: , app: {path: etc/app}, logs: }
files:
  config: {path: etc/app/deep/app.conf, content: x}
  other: {path: '${directory.app.path}/other', template: 'see ${file.config.path}'}
symlinks:
  link: {target: etc/app/deep/app.conf}
  through: {path: etc/through, target: app/unknown}
processes:
  web: {command: [run, '${file.config.path}'], cwd: etc/app, log: logs/web.log, after: [symlink.link], restart_on: [command.job]}
  reader: {command: 'cat ${symlink.link.path} ${directory.logs.path}'}
commands:
  job: {apply: 'cat ${file.other.path} ${HOME} $${file.x.y}', after: [process.reader], redo_on: [file.config]}
",
    );
    assert_eq!(needs(&manifest, "directory", "app"), ["directory/etc"]);
    assert_eq!(needs(&manifest, "file", "config"), ["directory/app"]);
    assert_eq!(needs(&manifest, "file", "other"), ["directory/app", "file/config first"]);
    assert_eq!(needs(&manifest, "symlink", "link"), ["file/config first"]);
    assert_eq!(needs(&manifest, "symlink", "through"), ["directory/app first", "directory/etc"]);
    assert_eq!(
        needs(&manifest, "process", "web"),
        [
            "command/job again",
            "directory/app",
            "directory/logs",
            "file/config again",
            "file/web:log first",
            "symlink/link first"
        ],
        "a process restarts when what it reads changes, not when its directory does"
    );
    assert_eq!(needs(&manifest, "process", "reader"), ["directory/logs first", "symlink/link again"]);
    assert_eq!(
        needs(&manifest, "command", "job"),
        ["file/config again", "file/other first", "process/reader first"]
    );
    let job = manifest.graph().item(&("command", "job").into()).unwrap();
    let root = manifest.root().display();
    assert_eq!(
        job.get::<Command>().unwrap().apply.to_string(),
        format!("cat {root}/etc/app/other ${{HOME}} ${{file.x.y}}")
    );
    let link: &Symlink = manifest.graph().item(&("symlink", "link").into()).unwrap().get().unwrap();
    assert_eq!((link.path.as_str(), link.target.as_str()), ("link", "etc/app/deep/app.conf"));
}

#[test]
fn a_file_is_inline_a_copy_or_a_template() {
    let world = World::new();
    fs::write(world.directory.path().join("copied"), b"\xff\0").unwrap();
    fs::write(world.directory.path().join("page.j2"), "{{ title }} ${file.plain.sha256}\n").unwrap();
    let manifest = world.load(
        "values: {title: all, port: 80}
files:
  plain: {content: 'as ${it.is} {{ here }}'}
  empty: {content: ''}
  binary: {content: !!binary AP8=}
  copy: {source: copied}
  inline: {template: \"{{ title }}:{{ port }}\\n\", values: {title: own}}
  page: {template_source: page.j2}
",
    );
    let bytes = |name: &str| {
        let file: &File = manifest.graph().item(&ItemRef::new("file", name)).unwrap().get().unwrap();
        let mut bytes = Vec::new();
        file.content
            .for_each_chunk(|chunk| {
                bytes.extend_from_slice(chunk);
                Ok(())
            })
            .unwrap();
        bytes
    };
    assert_eq!(bytes("plain"), b"as ${it.is} {{ here }}", "content is taken as it is");
    assert_eq!((bytes("empty"), bytes("binary"), bytes("copy")), (vec![], vec![0, 255], vec![255, 0]));
    assert_eq!(bytes("inline"), b"own:80\n");
    let plain: &File = manifest.graph().item(&("file", "plain").into()).unwrap().get().unwrap();
    assert_eq!(bytes("page"), format!("all {}\n", plain.content.sha256()).into_bytes());
    let files: Vec<String> = manifest
        .files()
        .iter()
        .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(files, ["copied", "page.j2", "set.yaml"], "all that a watcher must look at");
}

#[test]
fn a_byte_order_mark_before_a_manifest_is_not_part_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("set.yaml");
    std::fs::write(&file, "\u{feff}files: {f: {content: x}}\n").unwrap();
    let manifest = setpoint_host::load(&file).unwrap();
    assert_eq!(manifest.len(), 1);
    std::fs::write(&file, "\u{feff}files: {f: {contents: x}}\n").unwrap();
    let errors = setpoint_host::load(&file).unwrap_err();
    assert_eq!((errors[0].line, errors[0].column), (1, 13), "places don't count it: {errors:?}");
}

#[test]
fn a_directory_of_manifests_is_one_set() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("site");
    fs::create_dir_all(root.join(".setpoint")).unwrap();
    fs::create_dir_all(root.join("inner")).unwrap();
    fs::write(
        root.join("a.yaml"),
        "files:\n  x: {content: '1'}\n---\nfiles:\n\n  y:\n    content: '2'\n    prevent_destroy: true\n",
    )
    .unwrap();
    fs::write(root.join("b.yml"), "symlinks: {l: {target: x, adopt: true}}\n").unwrap();
    // None of these is a manifest.
    for other in [".hidden.yaml", ".setpoint/c.yaml", "inner/d.yaml", "readme.txt"] {
        fs::write(root.join(other), "nonsense: {{{").unwrap();
    }
    let manifest = load(&root).unwrap();
    assert_eq!((manifest.name().as_str(), manifest.graph().len()), ("site", 3));
    assert_eq!(manifest.root(), fs::canonicalize(&root).unwrap());
    let y = manifest.declared(&("file", "y").into()).unwrap();
    assert_eq!((y.line, y.prevent_destroy, y.adopt), (6, true, false));
    assert!(y.file.ends_with("a.yaml"));
    assert!(manifest.declared(&("symlink", "l").into()).unwrap().adopt);
}

#[test]
fn a_managed_file_beside_the_manifests_is_no_manifest() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("set.yaml"), "files: {config: {path: app.yaml, content: 'port: 80'}}\n")
        .unwrap();
    fs::write(directory.path().join("app.yaml"), "port: 80\n").unwrap();
    assert_eq!(load(directory.path()).unwrap().graph().len(), 1);
}

#[test]
fn sensitive_content_shows_nowhere_and_survives_as_data() {
    let world = World::new();
    let manifest = world.load(
        "files: {key: {content: hunter2, sensitive: true}}
processes: {p: {command: x, env: {PASSWORD: hunter2}, sensitive: true}}
commands: {c: {apply: x, env: {PASSWORD: hunter2}, sensitive: true}}
",
    );
    let types = item_types();
    for node in manifest.graph().items() {
        let item = node.item();
        assert!(!format!("{item:?} {item} {}", item.label()).contains("hunter2"));
        assert!(attributes(item).iter().all(|a| a.sensitive == a.value.contains("hunter2")));
        let value = types.item_to_value(item).unwrap();
        assert_eq!(&types.item_from_value(item.kind(), value).unwrap(), item);
    }
}

#[test]
fn all_items_survive_as_data() {
    let world = World::new();
    let manifest = world.load(
        "directories: {d: {mode: '0750', owner: root}}
files: {d/f: {content: !!binary /w==, mode: 0640, group: '0'}}
symlinks: {l: {target: d/f}}
processes: {p: {command: [a, b], env: {N: 1}, stop_signal: SIGINT, stop_timeout: 1500ms, after: [file.d/f]}}
commands: {c: {check: a, apply: [b], undo: c, check_timeout: 2m}}
",
    );
    let types = item_types();
    for node in manifest.graph().items() {
        let value = types.item_to_value(node.item()).unwrap();
        let text = serde_json::to_string(&value).unwrap();
        let back = types.item_from_value(node.item().kind(), serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(&back, node.item(), "{text}");
    }
    let process: &Process = manifest.graph().item(&("process", "p").into()).unwrap().get().unwrap();
    assert_eq!((process.env["N"].as_str(), process.stop_signal.name()), ("1", "INT"));
}

#[test]
fn attributes_are_whole_and_content_is_marked_as_many_lines() {
    let world = World::new();
    let long = "line\\n".repeat(100);
    let manifest = world.load(&format!("files: {{a: {{content: \"{long}\", mode: '0600'}}}}\n"));
    let item = manifest.graph().item(&("file", "a").into()).unwrap();
    let attributes = attributes(item);
    let content = attributes.iter().find(|attribute| attribute.name == "content").unwrap();
    assert!(content.line.is_some() && content.value == "line\n".repeat(100));
    assert_eq!(attributes.iter().find(|attribute| attribute.name == "mode").unwrap().value, "0600");
    assert!(
        item.attributes().iter().all(|attribute| !attribute.value.contains('\n')),
        "a plan has one line for each"
    );
}
