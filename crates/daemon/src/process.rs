//! The daemon's process from its beginning to its end: it becomes the home's owner, listens, recovers, and leaves in order.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rekindle_client::clock::{SystemClock, opener};
use rekindle_client::daemon_file::DaemonFile;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::listen_options::Listening;
use rekindle_client::logout::{facts_of, scopes_are_safer};
use rekindle_client::start::{NOTIFY, beside_us};
use rekindle_client::takeover;
use rekindle_domain::time::Clock;
use rekindle_domain::token::sha256_hex;
use rekindle_holder::client::{Scopes, runtime_dir_or_another};
use rekindle_holder::identity::Identity;
use rekindle_holder::tree::MARK;
use rekindle_notify::{Machine, Sinks, ThisMachine};
use rekindle_server::{Ending, Listeners};
use rekindle_service::daemon::{
    CheckpointSettings, Daemon, NotificationSettings, OpenDaemonError, Settings, Target,
};
use rekindle_store::disk::{RealDisk, SharedDisk};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Config, WorkspaceConfig};
use crate::tcp::Tcp;
use crate::{listen, logging, panic_hook, service_manager};

/// How often we look whether another daemon has taken over.
const LOOK: Duration = Duration::from_millis(500);

/// How long calls that are under way may hold up the end.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// How long a thread that has nothing to do stays for the next request.
const IDLE_THREAD: Duration = Duration::from_secs(30);

/// How a daemon is to start.
pub struct Start {
    /// In the place of one that runs.
    pub takeover: bool,
    /// Where it is told to listen beside its socket.
    pub flags: Listening,
    /// Where the one before it was told to.
    pub again: Option<Listening>,
    /// Someone looks on.
    pub foreground: bool,
}

/// Runs the daemon of a home until it is told to end; `ready` is told when it listens, and what is not as it should be.
pub fn run(
    home: &Path,
    start: Start,
    ready: impl FnOnce(&DaemonFile, Option<String>) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    restart_outside_agent_tree()?;
    // What agents make is their users': they get the umask that we were started with.
    let umask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077)).as_raw_mode();
    RealDisk::raise_descriptor_limit();
    let disk: SharedDisk = Arc::new(RealDisk);
    // Budgets are in it, and how long things are kept: whoever cannot read it must not begin without. One that runs goes on.
    let config = Config::read()?;
    let log = logging::init(&config.log);
    for key in &config.unknown {
        tracing::warn!("configuration, {key}");
    }
    let base_url = config.notify.base_url.clone();
    // One that died, or is to make way, has left behind what it was told.
    let before = start.again.or_else(|| DaemonFile::read(home)?.told);
    let wanted = listen::choose(start.flags, before, config.serve.clone(), start.foreground);
    let mut tcp = Tcp::of(wanted, &disk, home)?;
    tcp.own_name = base_url.as_ref().map(|url| url.host().to_ascii_lowercase());
    let has_links = base_url.is_some();
    if start.takeover {
        takeover::make_way(home)?;
    }
    let opener = opener()?;
    panic_hook::install(disk.clone(), home, opener.boot_id, log.flusher());
    let (runtime, elsewhere) = runtime()?;
    let settings = Settings {
        home: home.to_owned(),
        holder: beside_us("rekindle-holder")?,
        runtime: runtime.clone(),
        env: environment(),
        env_files: config.env_files(),
        umask,
        scopes: scopes(),
        checkpoints: checkpoint_settings(&config),
        persistence: config.persistence.policy(),
        collection: config.collection(),
        idle_agents: config.idle_agents(),
        tasks: config.tasks.settings(&config.budgets),
        worktrees: config.worktree.directory(home),
        worktree_preparation: config.worktree.preparation(),
        waits: config.waits.settings(),
        base_url,
        notifications: notification_settings(&config),
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let daemon = Daemon::open(settings, &disk, opener.boot_id, clock).map_err(refused)?;
    let socket = runtime.join(format!("{}.sock", short_name(home)));
    let listener = bind(&socket)?;
    tcp.open()?;
    let about = daemon.about();
    let place = DaemonFile {
        pid: about.pid,
        boot_id: about.boot_id,
        epoch: about.epoch,
        socket,
        home_id: about.home_id.try_into().ok(),
        listen: tcp.urls(),
        told: tcp.listen_options(),
        version: about.version.into_owned(),
        process: i32::try_from(about.pid).ok().and_then(|pid| Identity::of(pid).ok()),
    };
    tracing::info!(pid = place.pid, epoch = place.epoch, socket = %place.socket.display(), tcp = place.listen, "serving");
    if has_links && place.listen.is_none() {
        tracing::warn!(
            "answer links do not work: [notify] base_url is set, but the daemon does not listen on TCP"
        );
    }
    if place.listen.is_some() && daemon.access().active() == 0 {
        tracing::warn!("no client is let in over TCP yet: rekindle token create makes a token");
    }
    place.publish(home, || daemon.make_room()).map_err(|error| Failure::failed("daemon_file", error))?;
    let unknown = config.unknown.iter().map(|key| format!("configuration, {key}"));
    let notes: Vec<String> = tcp.note.take().into_iter().chain(elsewhere).chain(unknown).collect();
    ready(&place, (!notes.is_empty()).then(|| notes.join("; ")))?;
    service_manager::send_state("READY=1");
    let ending = serve(&daemon, listener, tcp)?;
    tracing::info!("leaving");
    service_manager::send_state("STOPPING=1");
    daemon.leave();
    // What it wrote goes with it. One that dies leaves it behind, and that is how it is known.
    place.remove(home);
    let _ = std::fs::remove_file(&place.socket);
    match ending {
        Ending::Asked { agents_left: Some(left) } if left > 0 => {
            tracing::warn!(left, "some agents did not end");
            // A service that was asked to leave must not be taken for one that failed, and be started again.
            Ok(if service_manager::is_configured() { Exit::Ok } else { Exit::Failed })
        }
        _ => Ok(Exit::Ok),
    }
}

/// Returns a short name for a home, the same in every process: paths of sockets must be short.
fn short_name(home: &Path) -> String {
    let whole = std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    format!("d-{}", &sha256_hex(whole.as_os_str().as_bytes())[..16])
}

/// Returns who gives holders scopes of their own, if that makes them live longer.
fn scopes() -> Option<Scopes> {
    let scopes = Scopes::find(|name| std::env::var_os(name))?;
    let safer = scopes_are_safer(&facts_of(None));
    tracing::debug!(safer, "the user's service manager can be reached");
    safer.then_some(scopes)
}

/// Returns how directories of sessions are captured.
fn checkpoint_settings(config: &Config) -> CheckpointSettings {
    let WorkspaceConfig { exclude, include } = config.workspace.clone();
    CheckpointSettings { mode: config.checkpoints.mode, exclude, include }
}

/// Returns who is told elsewhere what becomes of sessions.
fn notification_settings(config: &Config) -> NotificationSettings {
    let machine: Arc<dyn Machine> = Arc::new(ThisMachine);
    let sinks = Sinks::new(&config.notify, &machine).sinks;
    for sink in &sinks {
        if let Some(problem) = sink.problem() {
            tracing::warn!(sink = sink.name(), "notifications cannot be sent to it yet: {problem}");
        }
    }
    NotificationSettings {
        targets: sinks.into_iter().map(|sink| Arc::new(sink) as Arc<dyn Target>).collect(),
        settle: config.notify.settle,
        progress_every: config.notify.progress_every,
        stall_after: config.tasks.stall_after(),
    }
}

/// Returns our environment as far as it is text, and anyone else's business.
fn environment() -> BTreeMap<String, String> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).filter(|(name, _)| name != NOTIFY).collect()
}

/// An agent that starts a daemon marks it as one of its own processes, to be ended with it: begin again without that.
fn restart_outside_agent_tree() -> Result<(), Failure> {
    if std::env::var_os(MARK).is_none() {
        return Ok(());
    }
    let own = std::env::current_exe().map_err(|error| Failure::failed("executable", error))?;
    let error = std::process::Command::new(own).args(std::env::args_os().skip(1)).env_remove(MARK).exec();
    Err(Failure::failed("executable", error))
}

/// Keeps at least one thread for requests that block. When the machine has no thread left to give, they wait for this one;
/// without any, the runtime would panic.
async fn keep_blocking_thread() {
    loop {
        let _ = tokio::task::spawn_blocking(|| ()).await;
        tokio::time::sleep(IDLE_THREAD / 3).await;
    }
}

fn serve(daemon: &Arc<Daemon>, listener: UnixListener, tcp: Tcp) -> Result<Ending, Failure> {
    let failed = |error: std::io::Error| Failure::failed("runtime", error);
    // One thread serves all connections: nothing it does blocks, and a second would only be woken to wait with it.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_keep_alive(IDLE_THREAD)
        .enable_all()
        .build()
        .map_err(failed)?;
    let ending = runtime.block_on(async {
        tokio::spawn(keep_blocking_thread());
        listener.set_nonblocking(true)?;
        let listeners = Listeners { unix: tokio::net::UnixListener::from_std(listener)?, tcp: tcp.serve()? };
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        // Nobody waits for this: what is asked meanwhile is answered.
        daemon.recover();
        let replaced = async {
            while !daemon.is_superseded() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let shutdown = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        Ok(tokio::select! {
            ending = rekindle_server::serve(daemon.clone(), listeners, shutdown) => ending,
            () = replaced => Ending::Told,
        })
    });
    runtime.shutdown_timeout(LAST_CALLS);
    ending.map_err(failed)
}

/// Listens where only we may: the umask makes the socket ours.
fn bind(socket: &Path) -> Result<UnixListener, Failure> {
    // Whoever has the home's lock is the only one who may have it.
    let _ = std::fs::remove_file(socket);
    UnixListener::bind(socket).map_err(|error| {
        Failure::failed(
            "socket",
            anyhow::Error::new(error).context(format!("cannot listen at {}", socket.display())),
        )
    })
}

/// Returns the directory for sockets, and why it is not the usual one.
fn runtime() -> Result<(PathBuf, Option<String>), Failure> {
    let failed = |error: std::io::Error| Failure::failed("runtime_dir", error);
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let uid = std::fs::metadata("/proc/self").map_err(failed)?.uid();
    let (path, taken) = runtime_dir_or_another(own.as_deref(), &std::env::temp_dir(), uid)
        .map_err(|error| Failure::failed("runtime_dir", error))?;
    let note = taken.map(|taken| format!("sockets are in {}: {taken}", path.display()));
    if let Some(note) = &note {
        tracing::warn!("{note}");
    }
    Ok((path, note))
}

fn refused(error: OpenDaemonError) -> Failure {
    match error {
        OpenDaemonError::Open(error) => error.into(),
        error => Failure::failed("open", error),
    }
}
