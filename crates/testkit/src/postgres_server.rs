//! A real Postgres in a private directory, which only the test that started it speaks to, and which can be killed and started again.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to be ready: nothing like it on a busy machine, unless it never will be.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_millis(10);

/// The user and group that everybody's machine has for nobody in particular.
const NOBODY: u32 = 65_534;

/// A certificate and its key, both in PEM form.
pub struct ServerCertificate {
    /// What is shown to whoever connects.
    pub certificate: String,
    /// What proves that it is its own.
    pub key: String,
}

/// A server of its own, which ends with the test.
pub struct PostgresServer {
    directory: tempfile::TempDir,
    options: Vec<String>,
    /// Where it listens on 127.0.0.1, if it does.
    port: Option<u16>,
    process: Option<Child>,
}

impl PostgresServer {
    /// Starts one that listens on a socket in its own directory, and nowhere else. It does not sync: nobody cuts its power.
    pub fn start() -> PostgresServer {
        PostgresServer::begin(None, Vec::new(), "off")
    }

    /// The same with every commit on disk, as anybody's is.
    pub fn start_synced() -> PostgresServer {
        PostgresServer::begin(None, Vec::new(), "on")
    }

    /// Tells whether there is a Postgres on this machine.
    pub fn is_installed() -> bool {
        ["initdb", "postgres"].into_iter().all(|name| find_program(name).is_some())
    }

    /// Starts one that listens on a port of 127.0.0.1 too, over TLS if it has a certificate.
    pub fn start_on_port(certificate: Option<&ServerCertificate>) -> PostgresServer {
        // Free a moment ago. Who comes in between is noticed: the server ends, and is started again until its patience ends.
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        PostgresServer::begin(Some(port), certificate.into_iter().collect(), "off")
    }

    fn begin(port: Option<u16>, certificates: Vec<&ServerCertificate>, fsync: &str) -> PostgresServer {
        // Sockets have short paths, which a directory for temporary files may be too deep for.
        let directory = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").expect("a directory");
        give_to_ordinary_user(directory.path());
        let data = directory.path().join("data");
        let mut command = as_ordinary_user(&program("initdb"));
        command.args(["--auth=trust", "--username=rekindle", "--no-sync", "-E", "UTF8", "-D"]).arg(&data);
        let made = command.stdout(Stdio::null()).output().expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

        let mut options = vec![format!("fsync={fsync}"), "max_connections=10".to_owned()];
        match port {
            Some(port) => options.extend(["listen_addresses=127.0.0.1".to_owned(), format!("port={port}")]),
            None => options.push("listen_addresses=".to_owned()),
        }
        for ServerCertificate { certificate, key } in certificates {
            options.push("ssl=on".to_owned());
            for (setting, name, text) in
                [("ssl_cert_file", "server.pem", certificate), ("ssl_key_file", "server.key", key)]
            {
                let file = directory.path().join(name);
                std::fs::write(&file, text).expect("written");
                // It takes no key that others could read.
                std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("set");
                give_to_ordinary_user(&file);
                options.push(format!("{setting}={}", file.display()));
            }
        }
        let mut server = PostgresServer { directory, options, port, process: None };
        server.start_again();
        server
    }

    /// Starts it again after it was killed, and waits until it can be asked.
    pub fn start_again(&mut self) {
        let begin = Instant::now();
        while !self.is_ready() {
            assert!(begin.elapsed() < READY_WITHIN, "Postgres does not start: {}", self.log());
            let ended =
                self.process.as_mut().is_none_or(|process| process.try_wait().is_ok_and(|end| end.is_some()));
            // It does not start while processes of a former one are left, which are about to end.
            if ended {
                self.process = Some(self.spawn());
            }
            std::thread::sleep(LOOK);
        }
    }

    fn spawn(&self) -> Child {
        let log = std::fs::File::create(self.log_file()).expect("a file");
        let mut command = as_ordinary_user(&program("postgres"));
        command.arg("-D").arg(self.directory.path().join("data")).arg("-k").arg(self.directory.path());
        command.args(self.options.iter().flat_map(|option| ["-c", option]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("postgres runs")
    }

    /// Tells whether it can be asked, as `pg_ctl` does: by the last line of its file, if that is of this process.
    fn is_ready(&self) -> bool {
        let Some(process) = &self.process else { return false };
        let said =
            std::fs::read_to_string(self.directory.path().join("data/postmaster.pid")).unwrap_or_default();
        let mut lines = said.lines().map(str::trim);
        lines.next() == Some(&process.id().to_string()) && lines.next_back() == Some("ready")
    }

    /// Kills it without a word; whoever is connected loses the connection.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Returns the address of its socket, without a password.
    pub fn socket_address(&self) -> String {
        self.address_of("postgres")
    }

    /// Returns the address of one of its databases.
    pub fn address_of(&self, database: &str) -> String {
        let port = self.port.map_or_else(String::new, |port| format!(" port={port}"));
        format!("host={}{port} user=rekindle dbname={database}", self.directory.path().display())
    }

    /// Has a statement carried out, as somebody does by hand.
    pub fn run(&self, statement: &str) {
        let mut psql = Command::new(program("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command", statement]);
        let output = psql.arg(self.socket_address()).output().expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns where its socket is.
    pub fn socket_directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.expect("it listens on one")
    }

    fn log_file(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // It ends at once, and its own processes before it: nobody writes where the directory is being removed.
        if let Some(mut process) = self.process.take() {
            let _ = kill_process(Pid::from_child(&process), Signal::QUIT);
            let _ = process.wait();
        }
    }
}

fn program(name: &str) -> PathBuf {
    find_program(name).expect("Postgres is needed for this test; cargo xtask test installs it")
}

/// Finds a program of Postgres: in the search path, or where distributions put them.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::split_paths(&path).map(|directory| directory.join(name));
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = versions.map(|version| version.path().join("bin").join(name));
    here.chain(installed).find(|path| path.is_file())
}

/// Postgres does not run as root.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn as_ordinary_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn give_to_ordinary_user(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("given");
    }
}
