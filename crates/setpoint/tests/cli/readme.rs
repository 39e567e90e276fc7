//! What the README shows is what happens.

#[cfg(feature = "host")]
#[path = "../../examples/library.rs"]
mod library;

const README: &str = include_str!("../../../../README.md");

/// The code blocks of one language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let opening = format!("```{language}\n");
    README.split("\n```\n").filter_map(move |part| Some(part.split_once(&opening)?.1))
}

#[cfg(feature = "host")]
#[test]
fn the_tour_shows_what_the_demo_prints() {
    let output = crate::run(&["demo"]);
    let printed = crate::text(&output.stdout);
    let shown: Vec<&str> = blocks("text").collect();
    assert!(shown.len() >= 4, "the tour has a block for each step");
    for block in shown {
        assert!(printed.contains(block), "the demo does not print:\n{block}");
    }
}

#[cfg(feature = "host")]
#[test]
fn the_library_example_is_shown_as_it_is_and_does_what_it_says() {
    let code = include_str!("../../examples/library.rs").trim_end();
    assert_eq!(blocks("rust").collect::<Vec<_>>(), [code]);
    library::main().unwrap();
}

#[cfg(feature = "host")]
#[test]
fn the_manifest_of_everything_is_a_good_one() {
    let sandbox = crate::sandbox::Sandbox::new("");
    let manifest = blocks("yaml").next().unwrap().replace("root: /srv/site", "root: .");
    sandbox.write("site.yaml", &format!("{manifest}\n"));
    sandbox.write("token.txt", "secret");
    assert_eq!(sandbox.ok(&["validate"]), "site: 8 items declared, nothing wrong.\n");
}

#[cfg(feature = "haproxy")]
/// The HAProxy part: each file is called as its first line says, and each command prints what is shown.
#[test]
fn the_haproxy_commands_print_what_is_shown() {
    let sandbox = crate::sandbox::Sandbox::new("");
    for file in blocks("haproxy") {
        let name = file.lines().next().unwrap().trim_start_matches("# ");
        sandbox.write(name, &format!("{file}\n"));
    }
    let mut commands = 0;
    for block in blocks("console") {
        for session in block.split("$ setpoint ").skip(1) {
            let (command, shown) = session.split_once('\n').unwrap_or((session, ""));
            let args: Vec<&str> = command.split(' ').collect();
            let printed = sandbox.run(&args).out();
            assert_eq!(printed.trim_end(), shown.trim_end(), "setpoint {command}");
            commands += 1;
        }
    }
    assert!(commands >= 4, "the README shows each command");
}
