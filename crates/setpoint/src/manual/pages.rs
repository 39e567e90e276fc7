//! The table of examples, exit codes and files of each command: what `clap` does not know.
//!
//! One row a command, in the order of `--help`. Where a feature leaves a command out, its row is not used.

use super::{Example, Exit, File, Page};

/// The rows.
pub(super) const PAGES: &[Page] = &[
    Page {
        command: "",
        examples: &[
            Example("See Setpoint at work, in a temporary directory:", "setpoint demo"),
            Example("Show what would be done to the host:", "setpoint plan"),
            Example("Do it, without being asked:", "setpoint apply --yes"),
            Example("Keep it so, and repair whatever drifts:", "setpoint watch"),
            Example("Look for mistakes in a configuration of HAProxy:", "setpoint haproxy check haproxy.cfg"),
        ],
        exit: DONE,
        files: &[MANIFESTS, STATE, UNIT_MANIFESTS, UNIT_STATE, WATCH_UNIT, HAPROXY_UNIT, COMPOSITE_UNIT],
    },
    Page {
        command: "plan",
        examples: &[
            Example("Show what `setpoint apply` would do here:", "setpoint plan"),
            Example(
                "Tell a script whether there is anything to do:",
                "setpoint plan --detailed-exitcode --json",
            ),
            Example("Keep the plan, to apply exactly that later:", "setpoint plan --out site.plan"),
            Example("Look at one file and what it needs:", "setpoint plan --target file.config"),
        ],
        exit: DETAILED,
        files: SET,
    },
    Page {
        command: "apply",
        examples: &[
            Example("Show the plan, ask, and carry it out:", "setpoint apply"),
            Example(
                "Apply manifests that are elsewhere, unattended:",
                "setpoint apply --file /etc/setpoint/web --yes",
            ),
            Example("Carry out a plan that was kept, and nothing else:", "setpoint apply site.plan"),
            Example("Make one thing anew:", "setpoint apply --replace process.web"),
        ],
        exit: &[
            Exit(0, "All was done, or nothing was to be done."),
            Exit(1, "Nothing was changed, or not all was done; the next run goes on from there."),
            USAGE,
        ],
        files: SET,
    },
    Page {
        command: "watch",
        examples: &[
            Example("Keep the host as the manifests here declare it, until Ctrl-C:", "setpoint watch"),
            Example("Say what drifts, as data, and change nothing:", "setpoint watch --report-only --json"),
            Example(
                "Keep its state elsewhere, as the service does:",
                "setpoint watch --file /etc/setpoint/web --state /var/lib/setpoint/web",
            ),
            Example("Run it as a service of systemd:", "systemctl enable --now setpoint-watch@web"),
        ],
        exit: &[
            Exit(0, "It was stopped by SIGINT or SIGTERM."),
            Exit(1, "It could not start: the manifests, the state or the host can't be used."),
            USAGE,
        ],
        files: &[MANIFESTS, STATE, JOURNAL, LOCK, UNIT_MANIFESTS, UNIT_STATE, WATCH_UNIT],
    },
    Page {
        command: "destroy",
        examples: &[
            Example("Show what would be removed, ask, and remove it:", "setpoint destroy"),
            Example(
                "Remove one thing and what can't be there without it:",
                "setpoint destroy --target directory.logs --yes",
            ),
        ],
        exit: &[
            Exit(0, "All that Setpoint made is gone."),
            Exit(1, "Nothing was changed, or not all was removed."),
            USAGE,
        ],
        files: SET,
    },
    Page {
        command: "validate",
        examples: &[
            Example("Check the manifests here:", "setpoint validate"),
            Example("Check one manifest, for an editor:", "setpoint validate --file site.yaml --json"),
        ],
        exit: &[Exit(0, "The manifests have no errors."), Exit(1, "The manifests have errors."), USAGE],
        files: &[MANIFESTS],
    },
    Page {
        command: "explain",
        examples: &[
            Example("Say why a file is as it is:", "setpoint explain file.config"),
            Example("The same as data:", "setpoint explain process.web --json"),
        ],
        exit: FOUND,
        files: SET,
    },
    Page {
        command: "graph",
        examples: &[
            Example("Draw what is declared:", "setpoint graph --format svg > site.svg"),
            Example(
                "Draw what a plan would change, with Graphviz:",
                "setpoint graph --plan | dot -Tpng -o plan.png",
            ),
        ],
        exit: DONE,
        files: SET,
    },
    Page {
        command: "state",
        examples: &[
            Example("List what Setpoint remembers:", "setpoint state list"),
            Example("Take over a file that is there already:", "setpoint state import file.motd"),
        ],
        exit: DONE,
        files: STATE_FILES,
    },
    Page {
        command: "state list",
        examples: &[
            Example("List what Setpoint remembers:", "setpoint state list"),
            Example("The same as data:", "setpoint state list --json"),
        ],
        exit: DONE,
        files: STATE_FILES,
    },
    Page {
        command: "state show",
        examples: &[Example("Show what is remembered of a file:", "setpoint state show file.config")],
        exit: FOUND,
        files: STATE_FILES,
    },
    Page {
        command: "state rm",
        examples: &[Example(
            "Forget two items, and leave them on the host:",
            "setpoint state rm file.motd symlink.current",
        )],
        exit: FOUND,
        files: STATE_FILES,
    },
    Page {
        command: "state mv",
        examples: &[Example(
            "Follow a name that changed in the manifest:",
            "setpoint state mv file.conf file.config",
        )],
        exit: FOUND,
        files: STATE_FILES,
    },
    Page {
        command: "state kept",
        examples: &[
            Example("List what is kept of files that were taken over:", "setpoint state kept"),
            Example("Print one of them:", "setpoint state kept 3fa94c0b12d7e6885c01.change"),
        ],
        exit: FOUND,
        files: STATE_FILES,
    },
    Page {
        command: "state unprotect",
        examples: &[Example(
            "Let a file go that was protected, and is not declared any more:",
            "setpoint state unprotect file.token",
        )],
        exit: FOUND,
        files: STATE_FILES,
    },
    Page {
        command: "state accept",
        examples: &[
            Example(
                "Look after everything again after it was restored from a backup:",
                "setpoint state accept",
            ),
            Example(
                "Look after another directory in the place of one, with what is inside:",
                "setpoint state accept directory.data",
            ),
        ],
        exit: FOUND,
        files: STATE_FILES,
    },
    Page {
        command: "state relocate",
        examples: &[Example(
            "Take over what was moved by hand to the root that the manifests say now:",
            "setpoint state relocate",
        )],
        exit: FOUND,
        files: STATE_FILES,
    },
    Page {
        command: "state import",
        examples: &[Example("Take over a file that is there already:", "setpoint state import file.motd")],
        exit: FOUND,
        files: STATE_FILES,
    },
    Page {
        command: "history",
        examples: &[
            Example("List the latest runs:", "setpoint history"),
            Example("The last three as data:", "setpoint history --limit 3 --json"),
        ],
        exit: DONE,
        files: STATE_FILES,
    },
    Page {
        command: "show",
        examples: &[
            Example("Show what the latest run did:", "setpoint show"),
            Example("Show the third one:", "setpoint show 3"),
        ],
        exit: &[Exit(0, "The run was shown."), Exit(1, "An error was reported."), USAGE],
        files: STATE_FILES,
    },
    Page {
        command: "haproxy",
        examples: &[
            Example("Check a configuration:", "setpoint haproxy check haproxy.cfg"),
            Example("Compare two:", "setpoint haproxy diff current.cfg desired.cfg"),
            #[cfg(feature = "dataplane")]
            Example("Serve the Dataplane API of a HAProxy:", "setpoint haproxy serve --config haproxy.cfg"),
            #[cfg(feature = "sync")]
            Example(
                "Bring the HAProxy behind such an API to a configuration:",
                "setpoint haproxy sync desired.cfg --url http://127.0.0.1:5555 --user admin --password-file secret",
            ),
        ],
        exit: DONE,
        files: &[
            STANDARD_INPUT,
            #[cfg(feature = "dataplane")]
            HAPROXY_SETTINGS,
            #[cfg(feature = "dataplane")]
            HAPROXY_UNIT,
        ],
    },
    Page {
        command: "haproxy fmt",
        examples: &[
            Example("Write a configuration in one style:", "setpoint haproxy fmt haproxy.cfg"),
            Example("Check the style in CI:", "setpoint haproxy fmt --check haproxy.cfg"),
        ],
        exit: &[
            Exit(0, "The files are in the style."),
            Exit(
                1,
                "A file can't be read as a configuration and is left as it is, or with `--check`, a file is not in the style.",
            ),
            USAGE,
        ],
        files: HAPROXY,
    },
    Page {
        command: "haproxy check",
        examples: &[
            Example("Check a configuration:", "setpoint haproxy check haproxy.cfg"),
            Example("See what an upgrade would break:", "setpoint haproxy check --for 3.4 haproxy.cfg"),
            Example("Check what another program prints:", "setpoint haproxy check --json -"),
        ],
        exit: &[
            Exit(0, "The files have no errors; there may be warnings."),
            Exit(1, "A file has errors, or can't be read."),
            USAGE,
        ],
        files: HAPROXY,
    },
    Page {
        command: "haproxy diff",
        examples: &[
            Example("Compare two configurations:", "setpoint haproxy diff current.cfg desired.cfg"),
            Example(
                "Tell a script whether they differ:",
                "setpoint haproxy diff --detailed-exitcode current.cfg desired.cfg",
            ),
        ],
        exit: DETAILED,
        files: HAPROXY,
    },
    Page {
        command: "haproxy coverage",
        examples: &[
            Example("See how much of HAProxy's language is modelled:", "setpoint haproxy coverage --for 3.4"),
            Example("See it of one file:", "setpoint haproxy coverage haproxy.cfg"),
        ],
        exit: DONE,
        files: HAPROXY,
    },
    Page {
        command: "haproxy serve",
        examples: &[
            Example(
                "Serve the Dataplane API of a HAProxy that is started for it:",
                "setpoint haproxy serve --haproxy /usr/sbin/haproxy --config haproxy.cfg",
            ),
            Example(
                "Use the HAProxy that systemd runs:",
                "setpoint haproxy serve --config /etc/haproxy/haproxy.cfg --master-socket /run/haproxy-master.sock",
            ),
            Example(
                "Take the settings from a file, as the service does:",
                "setpoint haproxy serve --settings /etc/setpoint/haproxy.yaml",
            ),
            Example("Run it as a service of systemd:", "systemctl enable --now setpoint-haproxy"),
        ],
        exit: &[
            Exit(0, "It was stopped by SIGINT or SIGTERM, and all that was under way is completed."),
            Exit(
                1,
                "It could not start: a setting, the configuration, HAProxy or an address can't be used, or another process has the configuration in hand.",
            ),
            USAGE,
        ],
        files: SERVED,
    },
    Page {
        command: "haproxy plan",
        examples: &[
            Example(
                "See what would be changed, and whether HAProxy would reload:",
                "setpoint haproxy plan desired.cfg --url http://admin@192.0.2.1:5555",
            ),
            Example(
                "Tell a script whether there is something to do:",
                "setpoint haproxy plan desired.cfg --url http://192.0.2.1:5555 --user admin --password-file secret --detailed-exitcode",
            ),
        ],
        exit: &[
            Exit(0, "The plans were made; with `--detailed-exitcode`, there is nothing to do anywhere."),
            Exit(1, "The configuration can't be used, or no plan could be made for one of the URLs."),
            Exit(2, "With `--detailed-exitcode`: there is something to do for at least one."),
            USAGE,
        ],
        files: SYNCED,
    },
    Page {
        command: "haproxy sync",
        examples: &[
            Example(
                "Bring two HAProxies to a configuration:",
                "setpoint haproxy sync desired.cfg --url http://192.0.2.1:5555 --url http://192.0.2.2:5555 --user admin --password-file secret",
            ),
            Example(
                "Bring maps and certificates along:",
                "setpoint haproxy sync desired.cfg --url https://192.0.2.1:5555 --ca-file ca.pem --maps maps --certs certs",
            ),
            #[cfg(feature = "dataplane")]
            Example(
                "Bring this machine's HAProxy there, without any API:",
                "setpoint haproxy sync desired.cfg --local",
            ),
            Example(
                "Change one after the other, and stop where one is not well afterwards:",
                "setpoint haproxy sync desired.cfg --url http://192.0.2.1:5555 --url http://192.0.2.2:5555 --user admin --password-file secret --rolling 1",
            ),
        ],
        exit: &[
            Exit(0, "All are as desired."),
            Exit(
                1,
                "One is not: what happened there is said. The others were brought there; with `--rolling`, those before it were, and those after it were left as they are.",
            ),
            USAGE,
        ],
        files: SYNCED,
    },
    Page {
        command: "haproxy watch",
        examples: &[
            #[cfg(feature = "dataplane")]
            Example(
                "Keep this machine's HAProxy at a configuration:",
                "setpoint haproxy watch desired.cfg --local",
            ),
            Example(
                "Say what differs behind an API, and change nothing:",
                "setpoint haproxy watch desired.cfg --url http://192.0.2.1:5555 --user admin --password-file secret --report-only",
            ),
        ],
        exit: &[Exit(0, "It was asked to stop (SIGTERM, SIGINT)."), Exit(1, "It can't go on."), USAGE],
        files: SYNCED,
    },
    Page {
        command: "composite",
        examples: &[
            Example("Run the operator:", "setpoint composite run --consul-url http://consul:8500"),
            Example("Show a structure:", "setpoint composite show shop"),
        ],
        exit: DONE,
        files: CLUSTER,
    },
    Page {
        command: "composite run",
        examples: &[
            Example(
                "Serve one namespace:",
                "setpoint composite run --namespace shop --consul-url http://consul:8500",
            ),
            Example(
                "Take the parameters from a file, as the service does:",
                "setpoint composite run --config /etc/setpoint/composite.toml",
            ),
            Example("Run it as a service of systemd:", "systemctl enable --now setpoint-composite"),
        ],
        exit: &[
            Exit(0, "It was stopped by SIGINT or SIGTERM."),
            Exit(1, "It could not start: Kubernetes, Consul's settings or an address can't be used."),
            Exit(64, "A parameter is wrong."),
        ],
        files: &[
            COMPOSITE_CONFIG,
            COMPOSITE_ENVIRONMENT,
            COMPOSITE_UNIT,
            KUBECONFIG,
            SERVICE_ACCOUNT,
            AUTHORITIES,
            HOSTS,
            NAME_SERVERS,
        ],
    },
    Page {
        command: "composite show",
        examples: &[
            Example("Show a structure, and how the ConfigMap differs:", "setpoint composite show shop"),
            Example("Look at Consul alone:", "setpoint composite show shop --consul-only --json"),
        ],
        exit: DIFFERS,
        files: CLUSTER,
    },
    Page {
        command: "composite plan",
        examples: &[
            Example(
                "Show what the operator would write for a namespace:",
                "setpoint composite plan --namespace shop",
            ),
            Example("Show it for a manifest:", "setpoint composite plan composite.yaml --detailed-exitcode"),
        ],
        exit: DIFFERS,
        files: CLUSTER,
    },
    Page {
        command: "composite release",
        examples: &[
            Example(
                "Let the Composites of a namespace go whose operator is gone:",
                "setpoint composite release --namespace shop",
            ),
            Example(
                "Leave their keys in Consul:",
                "setpoint composite release --namespace shop --leave-keys",
            ),
        ],
        exit: DONE,
        files: CLUSTER,
    },
    Page {
        command: "composite render",
        examples: &[Example(
            "Make the payload of an exported list of keys:",
            "consul kv export composite/shop/ | setpoint composite render -",
        )],
        exit: &[
            Exit(0, "The payload was printed."),
            FAILED,
            Exit(2, "With `--detailed-exitcode`: there are issues."),
            USAGE,
        ],
        files: &[File("-", "As a name of a file: the standard input.")],
    },
    Page {
        command: "composite crd",
        examples: &[Example("Install the resource:", "setpoint composite crd | kubectl apply -f -")],
        exit: DONE,
        files: NONE,
    },
    Page {
        command: "composite manifests",
        examples: &[Example(
            "Install the operator:",
            "setpoint composite manifests rbac deployment --namespace shop --image IMAGE | kubectl apply -f -",
        )],
        exit: DONE,
        files: NONE,
    },
    Page {
        command: "schema",
        examples: &[Example(
            "Keep the schema where an editor finds it:",
            "setpoint schema > setpoint.schema.json",
        )],
        exit: DONE,
        files: NONE,
    },
    Page {
        command: "completions",
        examples: &[
            Example(
                "Install them for bash, for one user:",
                "setpoint completions bash > ~/.local/share/bash-completion/completions/setpoint",
            ),
            Example(
                "Install them for fish:",
                "setpoint completions fish > ~/.config/fish/completions/setpoint.fish",
            ),
        ],
        exit: DONE,
        files: &[
            File(
                "/usr/share/bash-completion/completions/setpoint",
                "Those that the package installs for bash.",
            ),
            File("/usr/share/zsh/vendor-completions/_setpoint", "Those for zsh."),
            File("/usr/share/fish/vendor_completions.d/setpoint.fish", "Those for fish."),
        ],
    },
    Page {
        command: "man",
        examples: &[Example(
            "Write the pages where `man` finds them:",
            "setpoint man /usr/local/share/man/man1",
        )],
        exit: DONE,
        files: &[File(
            "/usr/share/man/man1/setpoint.1.gz",
            "The page that the package installs, with one a command.",
        )],
    },
    Page {
        command: "demo",
        examples: &[
            Example("Watch it work:", "setpoint demo"),
            Example("Go on by hand from where it ends:", "setpoint demo --keep sandbox"),
        ],
        exit: &[
            Exit(0, "All steps went as they should."),
            FAILED,
            Exit(64, "The command line is wrong, or the directory holds something."),
        ],
        files: &[File("$TMPDIR, /tmp", "Where it makes its directory, which it removes at the end.")],
    },
    Page {
        command: "demo haproxy",
        examples: &[
            Example("Change servers under traffic, and count requests and reloads:", "setpoint demo haproxy"),
            Example("With another HAProxy:", "setpoint demo haproxy --haproxy /opt/haproxy/sbin/haproxy"),
        ],
        exit: DONE,
        files: &[File("$TMPDIR, /tmp", "Where it makes its directory, which it removes at the end.")],
    },
];

const DONE: &[Exit] = &[Exit(0, "It was done."), FAILED, USAGE];
const FOUND: &[Exit] =
    &[Exit(0, "It was done."), Exit(1, "There is no such item, or an error was reported."), USAGE];
const DETAILED: &[Exit] = &[
    Exit(0, "The plan was made; with `--detailed-exitcode`, there is nothing to do."),
    FAILED,
    Exit(2, "With `--detailed-exitcode`: there is something to do."),
    USAGE,
];
const DIFFERS: &[Exit] = &[
    Exit(0, "It was shown; with `--detailed-exitcode`, nothing differs."),
    FAILED,
    Exit(2, "With `--detailed-exitcode`: something differs."),
    USAGE,
];
const FAILED: Exit = Exit(1, "An error was reported on the standard error output.");
const USAGE: Exit = Exit(crate::error::USAGE, "The command line is wrong.");

const MANIFESTS: File = File(
    "*.yaml, *.yml",
    "The manifests, in the current directory or where `--file` says; `setpoint-schema(1)`.",
);
const STATE: File = File(
    ".setpoint/",
    "What Setpoint made and did, beside the manifests or where `--state` says. It may hold secrets.",
);
const DATABASE: File = File(".setpoint/state.redb", "The items and the history.");
const COPY: File = File(
    ".setpoint/state.last",
    "A copy of it, used where it is damaged; that one is then kept as state.damaged.",
);
const RUNTIME: File = File(
    ".setpoint/run/",
    "The logs of processes that name none, and the originals of adopted files, which `destroy` puts back.",
);
const JOURNAL: File = File(".setpoint/journal", "The run under way; the next run goes on from it.");
const LOCK: File = File(".setpoint/lock", "Held by the command that writes.");
const SET: &[File] = &[MANIFESTS, STATE, DATABASE, COPY, JOURNAL, LOCK, RUNTIME];
const STATE_FILES: &[File] = &[STATE, DATABASE, COPY, JOURNAL, LOCK];
const UNIT_MANIFESTS: File =
    File("/etc/setpoint/NAME/", "The manifests of the service `setpoint-watch@NAME`.");
const UNIT_STATE: File = File("/var/lib/setpoint/NAME/", "The state of that service.");
const WATCH_UNIT: File =
    File("/usr/lib/systemd/system/setpoint-watch@.service", "The service that runs `setpoint watch`.");
const COMPOSITE_UNIT: File = File(
    "/usr/lib/systemd/system/setpoint-composite.service",
    "The service that runs `setpoint composite run`.",
);
const COMPOSITE_CONFIG: File = File("/etc/setpoint/composite.toml", "The parameters of the service.");
const COMPOSITE_ENVIRONMENT: File =
    File("/etc/default/setpoint-composite", "The environment of the service, if it is there.");
const KUBECONFIG: File =
    File("~/.kube/config", "How Kubernetes is reached, unless KUBECONFIG names another file.");
const SERVICE_ACCOUNT: File =
    File("/var/run/secrets/kubernetes.io/serviceaccount/", "How Kubernetes is reached from a pod.");
const AUTHORITIES: File =
    File("/etc/ssl/certs/", "The authorities that are trusted where no file with others is named.");
const HOSTS: File = File("/etc/hosts", "Names of hosts; read before a name server is asked.");
const NAME_SERVERS: File = File("/etc/resolv.conf", "The name servers. No other name service is used.");
const CLUSTER: &[File] = &[KUBECONFIG, SERVICE_ACCOUNT, AUTHORITIES, HOSTS, NAME_SERVERS];
const HAPROXY: &[File] = &[STANDARD_INPUT];
const STANDARD_INPUT: File = File("-", "As a name of a file: the standard input.");
const HAPROXY_SETTINGS: File = File(
    "/etc/setpoint/haproxy.yaml",
    "The settings of the service `setpoint-haproxy`: the options of `setpoint haproxy serve`.",
);
const HAPROXY_UNIT: File = File(
    "/usr/lib/systemd/system/setpoint-haproxy.service",
    "The service that runs `setpoint haproxy serve`.",
);
const SERVED: &[File] = &[
    File(
        "haproxy.cfg",
        "The configuration, which `--config` names; its version stands in it as `# _version=N`.",
    ),
    File("maps/, ssl/, general/", "The files that the API stores, beside the configuration."),
    File(
        ".haproxy.cfg.setpoint/",
        "What is known of the configuration, beside its first file and named after it. It holds secrets.",
    ),
    File(".haproxy.cfg.setpoint/password", "The password of the user `admin`, where no others are named."),
    File(".haproxy.cfg.setpoint/lock", "Held by the process that has the configuration in hand."),
    File(
        ".haproxy.cfg.setpoint/api.sock",
        "The API for the owner alone, without a password: what `setpoint haproxy sync --local` uses.",
    ),
    File(".haproxy.cfg.setpoint/master.sock", "The socket of the master of a HAProxy that was started here."),
    File(".haproxy.cfg.setpoint/haproxy.log", "What that HAProxy printed."),
    File(".haproxy.cfg.setpoint/state.json", "Which worker of HAProxy loaded which text."),
    File(".haproxy.cfg.setpoint/reloads.json", "The reloads, those that ended and the one that waits."),
    File(".haproxy.cfg.setpoint/journal.json", "The change of files under way; the next start completes it."),
    File(
        ".haproxy.cfg.setpoint/good/",
        "The last text that HAProxy accepted, until it accepts what followed.",
    ),
    File(
        ".haproxy.cfg.setpoint/refused/",
        "Texts that HAProxy refused, and that the last good one replaced.",
    ),
    File(".haproxy.cfg.setpoint/backups/", "The former texts, as many as `--backups` says."),
    HAPROXY_SETTINGS,
    HAPROXY_UNIT,
];
const SYNCED: &[File] = &[
    STANDARD_INPUT,
    #[cfg(feature = "dataplane")]
    File("/etc/haproxy/haproxy.cfg", "The configuration of this machine's HAProxy, with `--local`."),
    File(
        "setpoint-digests.json",
        "What certificates hold that were written, among the general files of the API, which shows none of them.",
    ),
    AUTHORITIES,
    HOSTS,
    NAME_SERVERS,
];
const NONE: &[File] = &[File("-", "It reads no files, and writes to the standard output.")];
