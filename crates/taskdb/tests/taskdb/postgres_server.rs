//! Postgres: the suite, against a real server in a private directory, which only this test speaks to.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rekindle_taskdb::PostgresSql;

use crate::conformance;

/// A server of its own, which ends with the test.
struct Server {
    directory: tempfile::TempDir,
    process: Child,
}

/// Finds a program of Postgres: in the search path, or where distributions put them.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::split_paths(&path).map(|directory| directory.join(name));
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = versions.map(|version| version.path().join("bin").join(name));
    here.chain(installed).find(|path| path.is_file())
}

impl Server {
    /// Starts one. It listens on a socket in its own directory, and nowhere else.
    fn start() -> Server {
        let wanted = "Postgres is needed for this test; cargo xtask test installs it";
        let (initdb, postgres) = (program("initdb").expect(wanted), program("postgres").expect(wanted));
        let directory = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").expect("a directory");
        let data = directory.path().join("data");
        std::fs::create_dir(&data).expect("made");
        give_to_ordinary_user(directory.path(), &data);
        let mut command = as_ordinary_user(&initdb);
        command.args(["--auth=trust", "--username=rekindle", "--no-sync", "-E", "UTF8", "-D"]).arg(&data);
        let made = command.stdout(Stdio::null()).output().expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut command = as_ordinary_user(&postgres);
        command.arg("-D").arg(&data).arg("-k").arg(directory.path());
        command.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=10"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("postgres runs");
        Server { directory, process }
    }

    fn connect(&self) -> Client {
        let wanted = format!("host={} user=rekindle dbname=postgres", self.directory.path().display());
        let begin = Instant::now();
        loop {
            match Client::connect(&wanted, NoTls) {
                Ok(client) => return client,
                Err(error) if begin.elapsed() > Duration::from_secs(60) => panic!("{error}"),
                // It has just been started.
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Postgres does not run as root.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// The user and group that everybody's machine has for nobody in particular.
const NOBODY: u32 = 65_534;

fn as_ordinary_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
        std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
    }
    command
}

fn give_to_ordinary_user(directory: &Path, data: &Path) {
    if is_root() {
        for path in [directory, data] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("given");
        }
    }
}

#[test]
fn postgres_does_what_a_database_of_tasks_must() {
    let server = Server::start();
    conformance::all(|| Box::new(PostgresSql::new(server.connect())));
}
