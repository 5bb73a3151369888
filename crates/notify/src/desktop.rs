//! The desktop: `notify-send`, where that is installed. Links are not shown there: they would stand among the arguments of a program, which
//! everybody on the machine may read.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::child_environment::child_environment;
use crate::command::judge;
use crate::delivery::Delivery;
use crate::executable::is_executable;
use crate::machine::Machine;
use crate::notice::{Message, NoticeKind};
use crate::process;
use crate::text::{Include, fit, words};

/// The program.
const PROGRAM: &str = "notify-send";

/// How long it may take: it waits for whoever shows notifications, who may not be there.
const LIMIT: Duration = Duration::from_secs(10);

/// What desktops show of a title and of a body.
const TITLE: usize = 200;
const BODY: usize = 1_000;

/// A sink that shows messages on the desktop of whoever runs the daemon.
#[derive(Debug)]
pub(crate) struct Desktop {
    include: Include,
    machine: Arc<dyn Machine>,
}

impl Desktop {
    pub(crate) fn new(include: Include, machine: Arc<dyn Machine>) -> Desktop {
        Desktop { include, machine }
    }

    /// Says what keeps it from showing anything.
    pub(crate) fn problem(&self) -> Option<String> {
        (!is_executable(&*self.machine, PROGRAM)).then(|| {
            format!("{PROGRAM} is not installed: install libnotify (libnotify-bin), or remove the sink")
        })
    }

    /// Shows a message. One that cannot be shown now is not shown later: by then somebody may be looking already.
    pub(crate) fn deliver(&self, message: &Message) -> Delivery {
        if let Some(why) = self.problem() {
            return Delivery::refused(why);
        }
        let words = words(message, self.include);
        let plain = fit(&words.title, TITLE, |piece| piece.chars().count(), |c, out| out.push(c));
        let body = fit(&words.body, BODY, |piece| piece.chars().count(), escape);
        let mut command = Command::new(PROGRAM);
        command.env_clear().envs(child_environment(&*self.machine, &[])).current_dir("/");
        command.args(["--app-name=Rekindle", "--urgency", urgency(message), "--"]).arg(plain);
        if !body.is_empty() {
            command.arg(body);
        }
        match judge(process::run(&mut command, &[], LIMIT), std::iter::empty(), PROGRAM, LIMIT) {
            Delivery::Retry { why, .. } => Delivery::refused(why),
            delivery => delivery,
        }
    }
}

fn urgency(message: &Message) -> &'static str {
    match message {
        Message::Notice(notice) => match notice.kind {
            NoticeKind::Progress | NoticeKind::Resumed => "low",
            // Critical ones stay until somebody has seen them.
            NoticeKind::Waiting => "critical",
            NoticeKind::Completed
            | NoticeKind::Failed
            | NoticeKind::Interrupted
            | NoticeKind::Stalled
            | NoticeKind::Budget
            | NoticeKind::QueueEmpty => "normal",
        },
        Message::Summary(_) => "normal",
    }
}

/// Bodies may have markup.
fn escape(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::fake_machine::FakeMachine;
    use crate::notice::Notice;
    use crate::samples;

    #[test]
    fn a_message_is_shown_as_text_and_a_missing_program_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path().display();
        let machine = FakeMachine::with_variable("PATH", &format!("{at}:/usr/bin:/bin"));
        let desktop = Desktop::new(Include::Question, Arc::new(machine));
        if desktop.problem().is_some() {
            let Delivery::Refused { why } = desktop.deliver(&samples::message()) else {
                panic!("not refused")
            };
            assert!(why.contains("notify-send is not installed"), "{why}");
        }

        let program = directory.path().join(PROGRAM);
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {at}/said\n");
        std::fs::write(&program, script).expect("written");
        std::fs::set_permissions(&program, Permissions::from_mode(0o700)).expect("mode");
        assert_eq!(desktop.problem(), None);
        let notice = Notice { title: "--hint=x <b>".to_owned(), ..samples::waiting() };
        let notice = Notice { reason: Some("<img src=x> & more".to_owned()), question: None, ..notice };
        assert_eq!(desktop.deliver(&Message::Notice(notice)), Delivery::Delivered);
        let said = std::fs::read_to_string(directory.path().join("said")).expect("said");
        let expected = "--app-name=Rekindle\n--urgency\ncritical\n--\n--hint=x <b>: waits for you\n&lt;img src=x&gt; &amp; more\n";
        assert_eq!(said, expected);

        std::fs::write(&program, "#!/bin/sh\necho no bus >&2\nexit 75\n").expect("written");
        let Delivery::Refused { why } = desktop.deliver(&samples::message()) else { panic!("not refused") };
        assert!(why.contains("no bus"), "{why}");
    }
}
