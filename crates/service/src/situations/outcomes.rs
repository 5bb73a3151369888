//! Outcomes of messages, for whoever waits for them: from the beginning, or after its own death from the log.

use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::id::StreamId;
use rekindle_domain::message_outcome::MessageOutcome;
use rekindle_store::Observer;
use rekindle_store::commit::Receipt;

use super::home::Home;
use crate::feed::{Feed, News, await_outcome};

/// Tells followers of what is appended, as a daemon does.
struct Tell(Arc<Feed>);

impl Observer for Tell {
    fn committed(&self, _: StreamId, _: &Receipt) {}

    fn answered(&self, stream: StreamId, receipt: &Receipt) {
        let session = stream.session().expect("a session");
        self.0.publish(session, News::Appended(receipt.last_seq));
    }
}

const LIVES: [(&[&str], Option<MessageOutcome>); 7] = [
    (&["text end"], Some(MessageOutcome::Completed)),
    (&["no"], Some(MessageOutcome::Failed)),
    (&["text die", "text end"], Some(MessageOutcome::Completed)),
    (&["die", "die", "text end"], Some(MessageOutcome::Completed)),
    (&["greet=hang", "hang"], None),
    (&["hang"], None),
    (&["ask end"], None),
];

// What has happened is in the log: whoever comes late is told at once.
#[test]
fn the_outcome_of_a_message_is_told_to_whoever_comes_late() {
    for (lives, expected) in LIVES {
        let mut home = Home::new(lives);
        let taken = home.message().expect("taken");
        home.wait_long();
        let (views, feed) = (Arc::new(home.views()), Arc::new(Feed::default()));
        let waiting = await_outcome(&feed, &views, home.session, taken.message_id, taken.seq);
        assert_eq!(soon(waiting), expected, "{lives:?}");
    }
}

// What happens is heard of when it does, through every interruption.
#[test]
fn the_outcome_of_a_message_is_awaited_while_its_runs_are_cut_and_continued() {
    for (lives, expected) in LIVES {
        let Some(expected) = expected else { continue };
        let mut home = Home::new(lives);
        let (views, feed) = (Arc::new(home.views()), Arc::new(Feed::default()));
        home.observe(Arc::new(Tell(feed.clone())));
        let taken = home.message().expect("taken");
        let session = home.session;
        let waiting = std::thread::spawn(move || {
            let waiting = await_outcome(&feed, &views, session, taken.message_id, taken.seq);
            runtime().block_on(waiting).expect("an outcome")
        });
        home.wait_long();
        assert_eq!(waiting.join().expect("no panic"), expected, "{lives:?}");
    }
}

#[test]
fn a_message_that_is_cancelled_with_the_queue_has_an_outcome() {
    let mut home = Home::new(&["hang"]);
    home.send();
    let queued = home.message().expect("taken");
    home.cancel().expect("cancelled");
    let (views, feed) = (Arc::new(home.views()), Arc::new(Feed::default()));
    let waiting = await_outcome(&feed, &views, home.session, queued.message_id, queued.seq);
    assert_eq!(soon(waiting), Some(MessageOutcome::Cancelled));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// Returns an outcome that is there already: time does not go by while a log is read.
fn soon<E: std::fmt::Debug>(
    waiting: impl Future<Output = Result<MessageOutcome, E>>,
) -> Option<MessageOutcome> {
    let told = runtime().block_on(async {
        tokio::time::pause();
        tokio::time::timeout(Duration::from_secs(1), waiting).await
    });
    told.ok().map(|outcome| outcome.expect("no error"))
}
