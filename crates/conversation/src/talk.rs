//! Conversing: keys, what is heard and what is answered go to the core, and what it wants is done.

use std::io::{self, IsTerminal, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use rekindle_client::follow::{Follow, Followed, Heard};
use rekindle_client::payloads::Payloads;
use rekindle_client::target::Target;
use rekindle_client::{Client, Exit, Failure};
use rekindle_display::live::Piece;
use rekindle_terminal::output::{BOLD, DIM, cut};
use rekindle_terminal::{is_foreground, on_exit_signal};

use crate::core::{Core, Effect, Event, News, Reply, Request, Standing};
use crate::feed::Feed;
use crate::resize_debounce::DebouncedPainter;
use crate::survey::survey;
use crate::terminal::{self, size};
use crate::worker::{Letters, Worker, standing};

/// Words that wait for what is heard next are shown when nothing is heard for this long.
const SETTLED: Duration = Duration::from_millis(60);

/// What came in is drawn at the latest after so much of it.
const MAX_AT_ONCE: usize = 512;

enum Input {
    Terminal(terminal::Input),
    Heard { follow: u64, heard: Heard },
    Reply(Reply),
    Signal,
}

/// Tells whether one can converse here: a person sits at a terminal that can do more than print.
pub fn is_possible() -> bool {
    obstacle().is_none()
}

/// Says why no conversation can be held here.
pub fn obstacle() -> Option<&'static str> {
    let term = std::env::var_os("TERM").unwrap_or_default();
    if !io::stdin().is_terminal() {
        Some("stdin is no terminal")
    } else if !io::stdout().is_terminal() {
        Some("stdout is no terminal")
    } else if term.is_empty() {
        Some("TERM is not set")
    } else if term == "dumb" {
        Some("with TERM=dumb nothing can be drawn over")
    } else if !is_foreground() {
        Some("it runs in the background")
    } else {
        None
    }
}

/// What a conversation is about, at its beginning.
pub struct Greeting {
    /// The session's title.
    pub title: String,
    /// With whom and where it is held, and how.
    pub about: String,
}

/// A conversation to be held.
pub struct Conversation {
    /// The daemon.
    pub client: Client,
    /// The session; none if the first message begins one.
    pub session: Option<String>,
    /// The record behind which it is shown.
    pub after: u64,
    /// The payloads that are kept apart.
    pub payloads: Payloads,
    /// What goes with messages.
    pub letters: Box<dyn Letters>,
    /// What is said at its beginning.
    pub greeting: Greeting,
}

impl Conversation {
    /// Holds it until someone leaves; returns how it ended.
    pub fn hold(self) -> Result<Exit, Failure> {
        let Conversation { client, session, after, payloads, letters, greeting } = self;
        let (standing, known) = match &session {
            Some(id) => (standing(&client.session(id)?), survey(&client, id, after, &payloads)?),
            None => (Standing::default(), Vec::new()),
        };
        let (tell, inputs) = mpsc::channel();
        let signals = tell.clone();
        on_exit_signal(move || signals.send(Input::Signal).is_ok())
            .map_err(|error| Failure::failed("signals", error))?;
        let (ask, asked) = mpsc::channel();
        let target = client.target().clone();
        let replies = tell.clone();
        let worker = Worker { client, session: session.clone(), letters };
        worker.begin(asked, move |reply| replies.send(Input::Reply(reply)).is_ok());
        let keys = tell.clone();
        let terminal = terminal::take(move |input| keys.send(Input::Terminal(input)).is_ok())
            .map_err(|error| Failure::failed("terminal", error))?;
        let colours = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let mut talk = Talk {
            core: Core::new(session.clone(), standing),
            window: DebouncedPainter::new(io::stdout(), colours, size().0),
            feed: Feed::new(payloads.clone(), after),
            payloads,
            target,
            follow: 0,
            followed: None,
            wanted: Arc::default(),
            tell,
            ask,
            began: Instant::now(),
            heard: Instant::now(),
        };
        // In front of everything: what it is about, then how it is held.
        talk.window.show(Piece::Line((BOLD, cut(&greeting.title, size().0))));
        talk.window.show(Piece::Line((DIM, greeting.about)));
        for fact in known {
            // Nothing of what was before is to be done.
            drop(talk.core.handle(Event::Heard(News::Fact(fact)), Duration::ZERO));
        }
        if let Some(session) = session {
            talk.follow(session, after);
        }
        let exit = talk.run(&inputs);
        let finished = talk.window.finish(size().0);
        // The terminal is given back before anything else is said.
        drop(terminal);
        // Whoever was sent away may have no terminal any more.
        if exit.as_ref().is_ok_and(|exit| *exit != Exit::Detached) {
            finished?;
        }
        exit
    }
}

struct Talk {
    core: Core,
    window: DebouncedPainter<Stdout>,
    feed: Feed,
    payloads: Payloads,
    target: Target,
    /// Which of those that were followed is listened to, and its session.
    follow: u64,
    followed: Option<String>,
    wanted: Arc<AtomicBool>,
    tell: Sender<Input>,
    ask: Sender<Request>,
    began: Instant,
    /// When anything was heard last.
    heard: Instant,
}

impl Talk {
    fn run(&mut self, inputs: &Receiver<Input>) -> Result<Exit, Failure> {
        loop {
            self.draw()?;
            let settling = self.feed.waits().then_some(SETTLED);
            let now = self.began.elapsed();
            let rests = [Some(self.core.rest(now)), settling, self.window.held(now)];
            let rest = rests.into_iter().flatten().min().unwrap_or_default();
            // We hold a sender ourselves: nothing but time ends a wait for nothing.
            let first = inputs.recv_timeout(rest).ok();
            self.core.resize(size().0);
            let mut exit = self.take(first)?;
            for input in inputs.try_iter().take(MAX_AT_ONCE) {
                exit = match exit {
                    None => self.take(Some(input))?,
                    over => over,
                };
            }
            if let Some(exit) = exit {
                return Ok(exit);
            }
        }
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let ((width, height), now) = (size(), self.began.elapsed());
        Ok(self.window.draw(width, now, || self.core.panel(width, height, now))?)
    }

    /// Takes what came in, or that nothing did.
    fn take(&mut self, input: Option<Input>) -> Result<Option<Exit>, Failure> {
        match input {
            Some(Input::Heard { follow, heard }) if follow == self.follow => {
                self.heard = Instant::now();
                let news = self.feed.hear(heard);
                if news.iter().any(|news| matches!(news, News::Stopped { .. })) {
                    self.begin_follow(true);
                }
                self.handle_all(news)
            }
            // Of a session that the conversation has left.
            Some(Input::Heard { .. }) => Ok(None),
            Some(Input::Reply(reply)) => self.handle(Event::Reply(reply)),
            Some(Input::Signal) => self.handle(Event::Signal),
            Some(Input::Terminal(terminal::Input::Key(key))) => self.handle(Event::Key(key)),
            Some(Input::Terminal(terminal::Input::Paste(text))) => self.handle(Event::Paste(text)),
            // The terminal is asked for its size whatever comes in.
            Some(Input::Terminal(terminal::Input::Resized)) => Ok(None),
            None if self.feed.waits() && self.heard.elapsed() >= SETTLED => {
                let news = self.feed.rest();
                self.handle_all(news)
            }
            None => self.handle(Event::Tick),
        }
    }

    fn handle_all(&mut self, news: Vec<News>) -> Result<Option<Exit>, Failure> {
        for news in news {
            if let Some(exit) = self.handle(Event::Heard(news))? {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }

    fn handle(&mut self, event: Event) -> Result<Option<Exit>, Failure> {
        for effect in self.core.handle(event, self.began.elapsed()) {
            match effect {
                Effect::Show(piece) => self.window.show(piece),
                // The worker ends with us.
                Effect::Ask(request) => drop(self.ask.send(request)),
                Effect::Follow { session, after } => self.follow(session, after),
                Effect::Leave(exit) => return Ok(Some(exit)),
            }
        }
        Ok(None)
    }

    /// Follows a session from behind a record, and no other any more.
    fn follow(&mut self, session: String, after: u64) {
        self.feed = Feed::new(self.payloads.clone(), after);
        self.followed = Some(session);
        self.begin_follow(false);
    }

    /// Follows what is followed, from where it was; again, if that was given up before.
    fn begin_follow(&mut self, again: bool) {
        let Some(session) = self.followed.clone() else { return };
        self.follow += 1;
        // Whoever was followed before is listened to no more, and ends when it has something to say.
        self.wanted.store(false, Ordering::Relaxed);
        self.wanted = Arc::new(AtomicBool::new(true));
        let (wanted, follow, tell) = (Arc::clone(&self.wanted), self.follow, self.tell.clone());
        let of = Followed::Session(session);
        let tell =
            move |heard| wanted.load(Ordering::Relaxed) && tell.send(Input::Heard { follow, heard }).is_ok();
        let follow = Follow { target: self.target.clone(), of, after: self.feed.seq(), attended: true };
        if again { follow.begin_again(tell) } else { follow.begin(tell) }
    }
}
