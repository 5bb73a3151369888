//! Hints in words for people at a terminal: which command to give. What is the same for everybody the daemon words itself.

use std::borrow::Cow;

use rekindle_wire::hint::Hint;

/// Returns what a hint advises, where a command of ours does it.
pub(crate) fn hint_text(hint: &Hint) -> Option<Cow<'static, str>> {
    let text = match hint {
        Hint::ListSessions => "rekindle ps -a",
        Hint::ListSnapshots => "rekindle snapshot ls",
        Hint::ListTasks => "rekindle task ls",
        Hint::ListWaits => "rekindle waits",
        Hint::AnswerWaits => "answer them: rekindle waits",
        Hint::ListAgents => "rekindle agents lists them; any other command: rekindle run TEXT -- COMMAND",
        Hint::BringVariables => "--env NAME brings one",
        Hint::TryAgain => "try again in a moment; rekindle status tells how it stands",
        Hint::CancelFirst => "rekindle cancel first",
        Hint::CancelOrForce => "rekindle cancel first, or rekindle rm --force",
        Hint::CancelOrForceRestore => "rekindle cancel first; --force restores the files all the same",
        Hint::NameEmptyDirectory => {
            "name a new or an empty directory; --force restores there all the same, and the log tells the way back"
        }
        Hint::ForkElsewhere => {
            "rekindle fork --files --cwd DIR goes on elsewhere, with the files that were there"
        }
        Hint::NameNewDirectory => "--cwd DIR names one that is not there yet",
        Hint::RestoreWithoutGit => "--files --cwd DIR needs no git",
        Hint::WorkInPlace => "without --worktree it works in the directory itself",
        Hint::CommitOrCarry => {
            "commit them first; --dirty ignore leaves them there, --dirty carry copies them"
        }
        Hint::NameOtherBranch => "--worktree=BRANCH names another one, --worktree alone a new one",
        Hint::CarryFromHead => {
            "--dirty ignore leaves them there; without --base and BRANCH they can be copied"
        }
        Hint::RestartDaemon => "rekindle restart; agents work on",
        Hint::ResolveInWorktree => {
            "have the agent resolve it: rekindle send, as in \"merge main and resolve the conflicts\"; then merge again"
        }
        Hint::MergeOrForce => {
            "rekindle task merge brings it back; rekindle task rm --force keeps what is nowhere else in a git bundle for 30 days"
        }
        Hint::LeaveFiles => "name another place, or leave the files as they are",
        Hint::EmptyQueue => "rekindle cancel empties the queue",
        Hint::SendMessage => "rekindle send gives the session a new message",
        Hint::StartSession => "begin another one with rekindle run",
        Hint::AnswerById => "without a token a wait is answered with rekindle answer",
        Hint::SetAside => {
            "rekindle log shows what is whole, rekindle doctor says more; rekindle rm --force ends its agent and sets its files aside"
        }
        Hint::ExamineHome => "rekindle doctor says what can be done",
        Hint::ReleaseSession => {
            "rekindle doctor says more; rekindle doctor --release SESSION has it tried again"
        }
        Hint::ListPipelines => "rekindle pipeline ls",
        Hint::TrustConfig { hash } => {
            return Some(format!("look at what it runs, then: --trust {hash}").into());
        }
        Hint::CheckConfig => "rekindle pipeline validate says what is wrong with it",
        Hint::RestoreConfig => "put it back into rekindle.toml, or rekindle pipeline run starts another run",
        Hint::AcceptConfig => {
            "--accept-config goes on with what it was started with; rekindle pipeline run starts another run"
        }
        Hint::ForceResume => {
            "rekindle pipeline show says why; rekindle pipeline resume --force goes on all the same"
        }
        Hint::FollowRun => "rekindle pipeline log -f follows it to its end",
        Hint::DecideDrift => {
            "rekindle pipeline resume --on-drift restore takes the files back; --on-drift accept takes them as they are"
        }
        Hint::UseWorktrees => "--worktree has each work in a directory of its own",
        Hint::StartRun => "rekindle pipeline run starts another run",
        // Nothing that a command of ours does.
        _ => return None,
    };
    Some(text.into())
}
