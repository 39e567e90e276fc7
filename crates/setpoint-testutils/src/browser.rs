//! Chromium without a screen, and its driver.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::http;
use crate::part::{self, Missing};
use crate::ports::Port;
use crate::process::Process;
use crate::workdir::Workdir;

/// What Chromium is started with: no screen, no sandbox (it can't be had as root), and no talk to the outside.
pub const ARGUMENTS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
];

/// A browser that opens one page at a time.
#[derive(Debug)]
pub struct Browser {
    program: PathBuf,
}

impl Browser {
    /// Finds the browser.
    pub fn find() -> Result<Self, Missing> {
        Ok(Self { program: part::program("chromium", "chromium")? })
    }

    /// The program, for a driver.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The page's elements after its scripts have run, as HTML.
    pub async fn elements(&self, url: &str) -> String {
        let folder = Workdir::new("chromium");
        self.open(&folder, &["--dump-dom", url], "page.html").await;
        std::fs::read_to_string(folder.path().join("page.html")).expect("the page was written")
    }

    /// A picture of the page, as PNG.
    pub async fn screenshot(&self, url: &str, width: u32, height: u32) -> Vec<u8> {
        let folder = Workdir::new("chromium");
        let picture = folder.path().join("page.png");
        let (file, size) =
            (format!("--screenshot={}", picture.display()), format!("--window-size={width},{height}"));
        self.open(&folder, &[&file, &size, url], "page.html").await;
        std::fs::read(picture).expect("the picture was written")
    }

    /// Runs Chromium to its end, its output in a file of the folder.
    async fn open(&self, folder: &Workdir, arguments: &[&str], output: &str) {
        let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
        let at = |name: &str| folder.path().join(name);
        // What it prints is the page; what it complains of is the log.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "out=$1; shift; exec \"$@\" > \"$out\"", "chromium"]).arg(at(output));
        command.arg(&self.program).args(ARGUMENTS).arg(profile).args(arguments);
        let process = Process::start("chromium", &mut command, &at("chromium.log"));
        let ended = crate::wait::within(crate::wait::LIMIT, async || process.exit_status()).await;
        if !ended.is_some_and(|status| status.success()) {
            process.fail("it did not open the page");
        }
    }
}

/// The driver of the browser, for tests that click.
#[derive(Debug)]
pub struct Driver {
    browser: Browser,
    process: Process,
    _folder: Workdir,
    port: Port,
}

impl Driver {
    /// Starts the driver.
    pub async fn start() -> Result<Self, Missing> {
        let browser = Browser::find()?;
        let program = part::program("chromium", "chromedriver")?;
        let (folder, port) = (Workdir::new("chromedriver"), Port::lease());
        let mut command = Command::new(program);
        command.arg(format!("--port={}", port.number()));
        let process = Process::start("chromedriver", &mut command, &folder.path().join("chromedriver.log"));
        let driver = Self { browser, process, _folder: folder, port };
        let status = format!("{}/status", driver.url());
        driver.process.until("it answers", async || http::get(&status).await).await;
        Ok(driver)
    }

    /// Where it takes commands.
    pub fn url(&self) -> String {
        self.port.http()
    }

    /// The browser it drives; a session has to name its program.
    pub fn browser(&self) -> &Browser {
        &self.browser
    }
}
