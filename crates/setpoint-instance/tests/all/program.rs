//! A program that stands for HAProxy when it is asked to check, and does something else first.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::world::World;

impl World {
    /// A script that runs lines of a shell when HAProxy is asked to check, and then HAProxy.
    pub(crate) fn check_with(&self, lines: &str) -> PathBuf {
        let script = self.folder.path().join("haproxy-script");
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" = -c ]; then\n{lines}\nfi\nexec {} \"$@\"\n",
            self.program.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        script
    }
}
