//! The committer's helper threads: one for groups that are worth dividing, one that writes logs beside the next group, one for the
//! syncs of a checkpoint.

use std::sync::mpsc;

type Work = Box<dyn FnOnce() + Send>;

/// A helper thread, which is started at its first use and ends when this is dropped.
pub(super) struct HelperThread {
    name: &'static str,
    work: Option<mpsc::SyncSender<Work>>,
}

/// The answer of the helper thread, on its way.
pub(super) struct Pending<T>(mpsc::Receiver<T>);

impl<T> Pending<T> {
    /// Waits for it.
    ///
    /// # Panics
    /// If the work panicked: then the committer has lost part of its memory, and must not go on.
    pub(super) fn wait(self) -> T {
        self.0.recv().expect("the committer's helper thread has died")
    }
}

impl HelperThread {
    pub(super) fn new(name: &'static str) -> HelperThread {
        HelperThread { name, work: None }
    }

    /// Begins work on the helper thread; where none can be had, it is done at once on this one.
    pub(super) fn begin<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Pending<T> {
        let (answer, pending) = mpsc::sync_channel(1);
        let work: Work = Box::new(move || drop(answer.send(work())));
        if self.work.is_none() {
            self.work = start(self.name);
        }
        match &self.work {
            // A thread that is gone has dropped its end, and gives the work back.
            Some(thread) => {
                if let Err(mpsc::SendError(work)) = thread.send(work) {
                    work();
                }
            }
            None => work(),
        }
        Pending(pending)
    }
}

fn start(name: &str) -> Option<mpsc::SyncSender<Work>> {
    let (sender, incoming) = mpsc::sync_channel::<Work>(1);
    let run = move || incoming.into_iter().for_each(|work| work());
    std::thread::Builder::new().name(name.into()).spawn(run).ok()?;
    Some(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_in_order_and_on_one_other_thread() {
        let mut helper = HelperThread::new("helper");
        let here = std::thread::current().id();
        let first = helper.begin(|| std::thread::current().id());
        let next = helper.begin(|| std::thread::current().id());
        let there = first.wait();
        assert_ne!(there, here);
        assert_eq!(next.wait(), there);
    }
}
