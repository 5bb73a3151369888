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
        Hint::AnswerWaits => "answer them first: rekindle waits lists them",
        Hint::ListAgents => "rekindle agents lists them; any other command: rekindle run TEXT -- COMMAND",
        Hint::BringVariables => "pass one with --env NAME",
        Hint::TryAgain => "try again in a moment; rekindle status shows its state",
        Hint::CancelFirst => "run rekindle cancel first",
        Hint::CancelOrForce => "run rekindle cancel first, or rekindle rm --force",
        Hint::CancelOrForceRestore => "run rekindle cancel first, or restore the files anyway with --force",
        Hint::NameEmptyDirectory => {
            "name a new or an empty directory; --force restores there anyway, and the log says how to undo it"
        }
        Hint::ForkElsewhere => {
            "rekindle fork --files --cwd DIR continues in another directory, with the files as they were"
        }
        Hint::NameNewDirectory => "name one that does not exist yet with --cwd DIR",
        Hint::RestoreWithoutGit => "use --files --cwd DIR, which needs no git",
        Hint::WorkInPlace => "leave out --worktree to work in the directory itself",
        Hint::CommitOrCarry => {
            "commit them first, leave them there with --dirty ignore, or copy them with --dirty carry"
        }
        Hint::NameOtherBranch => "use --worktree=BRANCH with another name, or --worktree alone for a new one",
        Hint::CarryFromHead => {
            "leave them there with --dirty ignore; they can be copied only without --base and BRANCH"
        }
        Hint::RestartDaemon => "run rekindle restart; agents keep working",
        Hint::ResolveInWorktree => {
            "ask the agent to resolve it, for example rekindle send \"merge main and resolve the conflicts\"; then merge again"
        }
        Hint::MergeOrForce => {
            "bring it back with rekindle task merge; or remove it with rekindle task rm --force, which keeps work that exists nowhere else in a git bundle for 30 days"
        }
        Hint::LeaveFiles => "name another place, or leave out the files",
        Hint::EmptyQueue => "rekindle cancel empties the queue",
        Hint::SendMessage => "rekindle send gives the session a new message",
        Hint::StartSession => "start another one with rekindle run",
        Hint::AnswerById => "to answer a wait without a token, use rekindle answer",
        Hint::SetAside => {
            "rekindle log shows the undamaged part, rekindle doctor says more; rekindle rm --force ends its agent and sets its files aside"
        }
        Hint::ExamineHome => "rekindle doctor says what can be done",
        Hint::ReleaseSession => "rekindle doctor says more; rekindle doctor --release SESSION releases it",
        Hint::ListPipelines => "rekindle pipeline ls",
        Hint::TrustConfig { hash } => {
            return Some(format!("review what it runs, then use --trust {hash}").into());
        }
        Hint::CheckConfig => "rekindle pipeline validate says what is wrong with it",
        Hint::RestoreConfig => {
            "undo the change in rekindle.toml, or start another run with rekindle pipeline run"
        }
        Hint::AcceptConfig => {
            "continue with what it was started with by --accept-config, or start another run with rekindle pipeline run"
        }
        Hint::ForceResume => {
            "rekindle pipeline show says why; rekindle pipeline resume --force continues it anyway"
        }
        Hint::FollowRun => "rekindle pipeline log -f follows it to its end",
        Hint::DecideDrift => {
            "use rekindle pipeline resume --on-drift restore to restore the files, or --on-drift accept to keep them as they are"
        }
        Hint::UseWorktrees => "use --worktree to give each run a directory of its own",
        Hint::StartRun => "start another run with rekindle pipeline run",
        // Nothing that a command of ours does.
        _ => return None,
    };
    Some(text.into())
}
