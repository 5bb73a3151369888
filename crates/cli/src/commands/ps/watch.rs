//! `rekindle ps --watch`: the list as it is, again whenever something changes. On a terminal it is drawn over in place and
//! ages go on; elsewhere every change is another table, or another line of JSON.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rekindle_client::clock::SystemClock;
use rekindle_client::follow_all::{self, News};
use rekindle_client::{Client, Exit, Failure};
use rekindle_daemon::config::Config;
use rekindle_display::canvas::Canvas;
use rekindle_display::live::{Pressed, take_keys};
use rekindle_domain::time::Clock;
use rekindle_terminal::is_foreground;
use rekindle_terminal::on_exit_signal;
use rekindle_terminal::output::{self, DIM, WARN, styled};
use serde_json::{Value, json};
use signal_hook::consts::SIGWINCH;
use signal_hook::iterator::Signals;

use super::bell::WatchBell;
use super::{Args, Context, Listed, Listing, SessionFilter, report};

/// What comes together is shown together.
const SETTLED: Duration = Duration::from_millis(30);

/// How often ages are looked at.
const TICK: Duration = Duration::from_secs(1);

/// From one look at everything to the next: what no record tells may have changed. On disk nobody tells anything.
const ALL_AGAIN: Duration = Duration::from_secs(60);
const DISK_AGAIN: Duration = Duration::from_secs(5);

/// Sessions that are asked for one by one; of more all are.
const ONE_BY_ONE: usize = 32;

enum Input {
    News(News),
    Pressed(Pressed),
    Resized,
    Signal,
}

/// Watches until someone has seen enough.
pub(super) fn watch(context: &Context, args: &Args, wanted: SessionFilter) -> Result<Exit, Failure> {
    let (tell, inputs) = mpsc::channel();
    let signals = |error| Failure::failed("signals", error);
    let leave = tell.clone();
    on_exit_signal(move || leave.send(Input::Signal).is_ok()).map_err(signals)?;
    let resized = tell.clone();
    let mut changes = Signals::new([SIGWINCH]).map_err(signals)?;
    std::thread::spawn(move || changes.forever().all(|_| resized.send(Input::Resized).is_ok()));
    let heard = tell.clone();
    follow_all::follow(context.home.clone(), context.server.clone(), move |news| {
        heard.send(Input::News(news)).is_ok()
    });
    let drawn = !context.json && output::is_terminal() && is_foreground();
    let keys = drawn.then(|| take_keys(move |key| tell.send(Input::Pressed(key)).is_ok())).flatten();
    // A bell is for a terminal. Settings that cannot be read are none.
    let bell = Config::read().map(|config| WatchBell::new(&config.notify)).ok().filter(|_| drawn);
    let canvas = if drawn { Some(Canvas::take()?) } else { None };
    let mut watching = Watching {
        context,
        args,
        wanted,
        canvas,
        bell,
        client: None,
        daemon: Daemon::Unknown,
        sessions: Vec::new(),
        changed: BTreeSet::new(),
        all: false,
        looked: Instant::now(),
        printed: None,
    };
    let exit = watching.run(&inputs);
    // The terminal is given back before anything else is said.
    watching.canvas = None;
    drop(keys);
    exit
}

/// What is known of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Daemon {
    Unknown,
    Tells,
    /// There was none from the beginning.
    None,
    WentAway,
}

struct Watching<'a> {
    context: &'a Context,
    args: &'a Args,
    wanted: SessionFilter,
    canvas: Option<Canvas>,
    bell: Option<WatchBell>,
    client: Option<Client>,
    daemon: Daemon,
    sessions: Vec<Listed>,
    /// Sessions to be looked at, or all of them.
    changed: BTreeSet<String>,
    all: bool,
    /// When all were looked at last.
    looked: Instant,
    /// What was printed last.
    printed: Option<(Daemon, Vec<Value>)>,
}

impl Watching<'_> {
    fn run(&mut self, inputs: &Receiver<Input>) -> Result<Exit, Failure> {
        let mut due = Instant::now() + TICK;
        loop {
            // Looked at first: where much is told there is always more to hear.
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.refresh()?;
                self.show()?;
                self.ring()?;
                due = Instant::now() + TICK;
                continue;
            }
            match inputs.recv_timeout(left) {
                Ok(Input::Signal | Input::Pressed(Pressed::Leave)) => return Ok(Exit::Detached),
                Ok(Input::Pressed(Pressed::Char('q' | 'Q'))) => return Ok(Exit::Ok),
                Ok(Input::Pressed(_)) => {}
                Ok(Input::Resized) => {
                    self.canvas.as_mut().map_or(Ok(()), Canvas::resized)?;
                    self.show()?;
                }
                Ok(Input::News(news)) => {
                    if self.handle_news(news)? {
                        due = due.min(Instant::now() + SETTLED);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Detached),
            }
        }
    }

    /// Takes in news; tells whether there is anything to look at.
    fn handle_news(&mut self, news: News) -> Result<bool, Failure> {
        match news {
            News::Told => {
                self.client = self.context.daemon().ok().flatten();
                (self.daemon, self.all) = (Daemon::Tells, true);
            }
            News::Changed(id) => drop(self.changed.insert(id)),
            News::Gone(id) => self.sessions.retain(|session| session.view.id.as_str() != id),
            News::Away => {
                self.check_refusal()?;
                let now = match self.daemon {
                    Daemon::Unknown | Daemon::None => Daemon::None,
                    Daemon::Tells | Daemon::WentAway => Daemon::WentAway,
                };
                if now == self.daemon {
                    return Ok(false);
                }
                (self.daemon, self.client, self.all) = (now, None, true);
            }
        }
        Ok(true)
    }

    /// Says why a daemon elsewhere tells nothing, as `ps` would: one that refuses us will not change its mind, and one that
    /// was never there has no home to look into. One that was there is waited for.
    fn check_refusal(&self) -> Result<(), Failure> {
        if self.context.server.is_none() {
            return Ok(());
        }
        match self.context.ask(|client| self.wanted.fetch(client)) {
            Err(failure) if self.daemon == Daemon::Unknown || !failure.is_absence() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Looks at what has changed, or at everything if that is as good.
    fn refresh(&mut self) -> Result<(), Failure> {
        let again = if self.client.is_some() { ALL_AGAIN } else { DISK_AGAIN };
        let late = self.daemon != Daemon::Unknown && self.looked.elapsed() >= again;
        let changed = std::mem::take(&mut self.changed);
        if std::mem::take(&mut self.all) || late || changed.len() > ONE_BY_ONE {
            self.looked = Instant::now();
            return self.refresh_all();
        }
        let Some(client) = &self.client else { return Ok(()) };
        for id in changed {
            // It may have been removed meanwhile, and so may the daemon: both are told.
            let shown = client.get(&format!("/api/sessions/{id}")).and_then(Listed::read);
            let Ok(session) = shown else { continue };
            self.sessions.retain(|known| known.view.id != session.view.id);
            if self.wanted.has(&session.view) {
                self.sessions.push(session);
            }
        }
        self.sessions.sort_by_key(Listed::newest_first);
        Ok(())
    }

    fn refresh_all(&mut self) -> Result<(), Failure> {
        self.sessions = match &self.client {
            Some(client) => match self.wanted.fetch(client) {
                Ok(sessions) => sessions,
                // It has just gone; what was known is shown until that is told.
                Err(_) => return Ok(()),
            },
            // Of one elsewhere there is no disk to look at.
            None if self.context.server.is_some() => return Ok(()),
            None => self.wanted.on_disk(self.context, self.args, SystemClock.now())?,
        };
        Ok(())
    }

    /// Rings the bell if something has happened that it is for.
    fn ring(&mut self) -> Result<(), Failure> {
        let (Some(bell), Some(canvas)) = (&mut self.bell, &self.canvas) else { return Ok(()) };
        let views = self.sessions.iter().map(|session| &session.view);
        if self.daemon != Daemon::Unknown && bell.look(views, SystemClock.now()) {
            canvas.ring()?;
        }
        Ok(())
    }

    fn show(&mut self) -> Result<(), Failure> {
        // Nothing is known in the first moment.
        if self.daemon == Daemon::Unknown {
            return Ok(());
        }
        let now = SystemClock.now();
        let listing = Listing::new(&self.sessions, self.args, now);
        if let Some(canvas) = &mut self.canvas {
            let mut page = Vec::new();
            report(&mut page, &listing, self.args.long, now)?;
            let page = String::from_utf8_lossy(&page);
            let head = head(self.daemon, &listing);
            return Ok(canvas.draw(&format!("{head}\n\n{}", page.trim_end()))?);
        }
        let shown = (self.daemon, self.sessions.iter().map(|session| session.json.clone()).collect());
        if self.printed.as_ref() == Some(&shown) {
            return Ok(());
        }
        self.printed = Some(shown);
        // What has changed is printed for whoever reads it later or elsewhere.
        let daemon = self.daemon == Daemon::Tells;
        let body = json!({"daemon": daemon, "sessions": listing.json(), "next": null});
        self.context.print(&body, |out| {
            writeln!(out, "{}", styled(DIM, format_args!("--- {now}")))?;
            if let Some(words) = daemon_text(self.daemon) {
                writeln!(out, "{}", styled(WARN, words))?;
            }
            report(out, &listing, self.args.long, now)
        })?;
        Ok(())
    }
}

/// Says why nobody tells anything.
fn daemon_text(daemon: Daemon) -> Option<&'static str> {
    match daemon {
        Daemon::Unknown | Daemon::Tells => None,
        Daemon::None => Some("no daemon answers; this is from disk"),
        Daemon::WentAway => Some("the daemon went away; agents keep working"),
    }
}

/// Returns the first line of the picture.
fn head(daemon: Daemon, listing: &Listing<'_>) -> String {
    let leave = styled(DIM, "q ends");
    match daemon_text(daemon) {
        Some(words) => format!("{}  {leave}", styled(WARN, words)),
        None => format!("{}  {leave}", listing.counted()),
    }
}
