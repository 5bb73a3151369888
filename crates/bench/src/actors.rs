//! What this binary does when it starts itself: the agent, and the processes of the raw programs. The part is
//! picked before the command line is parsed, because a process whose memory is measured must have done nothing else.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};

/// The first argument of a process that plays a part.
const FLAG: &str = "--play";

/// The agent: a greeting, then lines as its input asks for them, until its input ends.
const AGENT: &str = "agent";
/// Starts the agent and passes what it writes over a socket; its input is the same socket.
const FORWARD: &str = "forward";
/// Writes its input to a file, synced by the holder's rule.
const PUMP: &str = "pump";
/// The least that can be taken over: notes everyone who comes to its socket in a file, and says when that is on disk.
const BARE: &str = "bare";

/// An agent with a protocol.
const CHATTER: &str = "chatter";
/// Ends a home's processes when whoever started it has ended.
const KEEPER: &str = "keeper";

/// What is noted of someone who comes: about what a holder writes then.
const NOTE: [u8; 120] = [b'x'; 120];

/// What each line of the agent is long, with its newline: about what agents write for a few words.
pub(crate) const LINE: usize = 200;

/// The agent's first line.
pub(crate) const GREETING: &[u8] = b"{\"hello\":true}\n";

/// What stands before and behind the time in a line.
const BEFORE: &str = "{\"at\":\"";
const DIGITS: usize = 20;

/// How much goes through a pipe at once.
const PIECE: usize = 64 << 10;

/// The holder's rule: output is on disk after so many bytes, and after so long.
const SYNC_BYTES: usize = 1 << 20;
const SYNC_WITHIN: Duration = Duration::from_millis(200);

/// Plays the part that the arguments name, if they name one; those of the agent with a protocol and of a home's keeper are
/// brought along.
pub(crate) fn play(
    chatter: fn() -> anyhow::Result<()>,
    keeper: fn(&Path) -> anyhow::Result<()>,
) -> Option<anyhow::Result<()>> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != FLAG {
        return None;
    }
    let (part, rest): (Option<OsString>, Vec<OsString>) = (args.next(), args.collect());
    let outcome = match (part.as_ref().and_then(|part| part.to_str()), rest.as_slice()) {
        (Some(AGENT), []) => agent(),
        (Some(FORWARD), [socket]) => forward(Path::new(socket)),
        (Some(PUMP), [file]) => pump(Path::new(file)),
        (Some(BARE), [socket, file]) => bare(Path::new(socket), Path::new(file)),
        (Some(CHATTER), []) => chatter(),
        (Some(KEEPER), [home]) => keeper(Path::new(home)),
        _ => return Some(Err(anyhow::anyhow!("{FLAG} is for this program itself"))),
    };
    Some(outcome.with_context(|| format!("as {part:?}")))
}

/// Returns the agent's command, for whoever starts it by name.
pub(crate) fn agent_command() -> anyhow::Result<Vec<String>> {
    command(AGENT)
}

/// Returns the command of the agent with a protocol.
pub(crate) fn chatter_command() -> anyhow::Result<Vec<String>> {
    command(CHATTER)
}

fn command(name: &str) -> anyhow::Result<Vec<String>> {
    let own = own_path()?.into_os_string();
    let own = own.into_string().ok().context("this binary's path is no text")?;
    Ok(vec![own, FLAG.into(), name.into()])
}

/// Returns the agent with a protocol, to be driven over its pipes.
pub(crate) fn chatter_process() -> anyhow::Result<Command> {
    part(CHATTER, &[])
}

/// Returns the keeper of a home; it does its work when its input ends.
pub(crate) fn keeper_process(home: &Path) -> anyhow::Result<Command> {
    part(KEEPER, &[home])
}

/// Returns the agent, to be started with nothing in its environment, as a holder would.
pub(crate) fn agent_process() -> anyhow::Result<Command> {
    part(AGENT, &[])
}

/// Returns the forwarder, which connects to a socket.
pub(crate) fn forward_process(socket: &Path) -> anyhow::Result<Command> {
    part(FORWARD, &[socket])
}

/// Returns the pump, which writes a file.
pub(crate) fn pump_process(file: &Path) -> anyhow::Result<Command> {
    part(PUMP, &[file])
}

/// Returns the bare process, which listens at a socket and writes a file; it ends with its input.
pub(crate) fn bare_process(socket: &Path, file: &Path) -> anyhow::Result<Command> {
    part(BARE, &[socket, file])
}

fn part(name: &str, arguments: &[&Path]) -> anyhow::Result<Command> {
    let mut command = Command::new(own_path()?);
    command.arg(FLAG).arg(name).args(arguments).env_clear().stderr(Stdio::null());
    Ok(command)
}

fn own_path() -> anyhow::Result<std::path::PathBuf> {
    std::env::current_exe().context("cannot tell where this binary is")
}

/// What the agent is told to write one line after another, with a pause before each.
pub(crate) fn ticks(count: usize, pause: Duration) -> String {
    format!("{count} {}\n", pause.as_micros())
}

/// What the agent is told to write all at once.
pub(crate) fn flood(count: usize) -> String {
    ticks(count, Duration::ZERO)
}

/// Returns the time by the clock that all processes share, in nanoseconds.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Tells whether this is one of the lines the agent was told to write.
pub(crate) fn is_line(line: &[u8]) -> bool {
    line.len() == LINE - 1 && line.starts_with(BEFORE.as_bytes())
}

/// Returns when the agent wrote a line; none for its greeting.
pub(crate) fn written_at(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(BEFORE.as_bytes())?.get(..DIGITS)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn line_of(at: u64) -> Vec<u8> {
    let mut line = format!("{BEFORE}{at:020}\",\"text\":\"").into_bytes();
    line.resize(LINE - 3, b'x');
    line.extend_from_slice(b"\"}\n");
    line
}

fn agent() -> anyhow::Result<()> {
    // Not the standard library's own, which writes line by line.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    out.write_all(GREETING)?;
    for command in io::stdin().lock().lines() {
        let command = command?;
        let Some((count, micros)) = command.split_once(' ') else { bail!("{command:?} is no command") };
        let (mut count, pause): (usize, _) = (count.parse()?, Duration::from_micros(micros.parse()?));
        if pause.is_zero() {
            let lines = line_of(now()).repeat(PIECE / LINE);
            while count > 0 {
                let some = count.min(PIECE / LINE);
                out.write_all(&lines[..some * LINE])?;
                count -= some;
            }
        }
        for _ in 0..count {
            std::thread::sleep(pause);
            out.write_all(&line_of(now()))?;
        }
    }
    Ok(())
}

fn forward(socket: &Path) -> anyhow::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    let commands = OwnedFd::from(stream.try_clone()?);
    let mut agent = agent_process()?.stdin(commands).stdout(Stdio::piped()).spawn()?;
    let mut pipe = agent.stdout.take().context("the agent has no output")?;
    let mut piece = vec![0; PIECE];
    loop {
        let count = pipe.read(&mut piece)?;
        if count == 0 {
            break;
        }
        stream.write_all(&piece[..count])?;
    }
    agent.wait()?;
    Ok(())
}

/// A sync that falls due while nothing comes is made with the next bytes: a flood never waits.
fn pump(path: &Path) -> anyhow::Result<()> {
    let mut pipe = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut file = File::create(path)?;
    let mut piece = vec![0; PIECE];
    let (mut unsynced, mut since) = (0, Instant::now());
    loop {
        let count = pipe.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        file.write_all(&piece[..count])?;
        unsynced += count;
        if unsynced >= SYNC_BYTES || since.elapsed() >= SYNC_WITHIN {
            file.sync_data()?;
            (unsynced, since) = (0, Instant::now());
        }
    }
}

fn bare(socket: &Path, path: &Path) -> anyhow::Result<()> {
    let listener = UnixListener::bind(socket)?;
    let mut file = File::create(path)?;
    io::stdout().write_all(b"ready\n")?;
    let input = io::stdin();
    loop {
        let mut fds = [PollFd::new(&listener, PollFlags::IN), PollFd::new(&input, PollFlags::IN)];
        poll(&mut fds, None)?;
        if !fds[1].revents().is_empty() {
            return Ok(());
        }
        let (mut visitor, _) = listener.accept()?;
        file.write_all(&NOTE)?;
        file.sync_data()?;
        visitor.write_all(b"!")?;
        // Until it leaves.
        let _ = visitor.read(&mut [0])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_length_and_tell_their_time() {
        let line = line_of(1_234_567_890);
        assert_eq!(line.len(), LINE);
        assert_eq!(written_at(&line), Some(1_234_567_890));
        assert!(serde_json::from_slice::<serde_json::Value>(&line).is_ok());
        assert_eq!(written_at(GREETING), None);
        assert_eq!(ticks(3, Duration::from_millis(2)), "3 2000\n");
    }
}
