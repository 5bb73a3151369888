//! Hints in words for programs that speak HTTP: paths and headers where the interface can do it, commands of the daemon's machine
//! where only those can. The command line words them for itself.

use rekindle_wire::hint::Hint;

/// Returns what a hint advises.
pub(crate) fn hint_text(hint: &Hint) -> String {
    let text = match hint {
        Hint::ListSessions => "GET /api/sessions lists them",
        Hint::ListSnapshots => "GET /api/sessions/{id}/snapshots lists them",
        Hint::ListTasks => "GET /api/tasks/active lists those that have not ended",
        Hint::ListWaits => "GET /api/waits lists those that are open",
        Hint::AnswerWaits => "GET /api/waits lists them; POST /api/waits/{id}/answer answers one",
        Hint::ListAgents => {
            "GET /api/agents lists them; any other is a command: {\"profile\":\"acp\",\"command\":[…]}"
        }
        Hint::ChooseProfile => "acp, ndjson, or exec for any command",
        Hint::InstallAgent { command } => command,
        Hint::PassArguments => "give it what it needs among its arguments",
        Hint::NameDirectory => "give the absolute path of a directory",
        Hint::BringVariables => "bring them in \"env\"",
        Hint::TryAgain => "try again in a moment; GET /api/sessions/{id}/status tells how it stands",
        Hint::CancelFirst => "POST /api/sessions/{id}/cancel first",
        Hint::CancelOrForce => "POST /api/sessions/{id}/cancel first, or remove it with force=1",
        Hint::CancelOrForceRestore => "POST /api/sessions/{id}/cancel first, or ask with \"force\": true",
        Hint::NameEmptyDirectory => "name a new or an empty directory, or ask with \"force\": true",
        Hint::ForkElsewhere => {
            "a fork with working_dir and files goes on elsewhere, with the files of the cut"
        }
        Hint::NameNewDirectory => "name a directory that is not there yet",
        Hint::RestoreWithoutGit => {
            "ask with \"files\" and a \"working_dir\" instead of \"worktree\": that needs no git"
        }
        Hint::WorkInPlace => "ask without \"worktree\" to have it work in the directory itself",
        Hint::CommitOrCarry => {
            "commit them first, or ask with \"dirty\": \"ignore\" to leave them there or \"carry\" to copy them"
        }
        Hint::NameOtherBranch => "name another \"branch\", or none",
        Hint::CarryFromHead => "ask with \"dirty\": \"ignore\", or without \"base\" and \"branch\"",
        Hint::ResolveInWorktree => {
            "have them resolved in the worktree, where POST /api/sessions/{id}/messages asks the agent for it, then merge again"
        }
        Hint::CommitThere => "commit it there, or put it aside with git stash --include-untracked",
        Hint::SwitchToBranch => "git switch BRANCH there, then merge again",
        Hint::FinishThere => "finish it there, or give it up: git status says how",
        Hint::MergeOrForce => {
            "POST /api/sessions/{id}/worktree/merge first; with force=1 what is nowhere else is kept in a git bundle for 30 days"
        }
        Hint::ListPipelines => "GET /api/pipelines lists them",
        Hint::TrustConfig { hash } => {
            return format!("look at what it runs, then ask with \"trust\": \"{hash}\"");
        }
        Hint::CheckConfig => {
            "on the machine of the project, rekindle pipeline validate says what is wrong with it"
        }
        Hint::RestoreConfig => "put it back into rekindle.toml, or POST /api/pipelines starts another run",
        Hint::AcceptConfig => {
            "with \"accept_config\": true it goes on with what it was started with; POST /api/pipelines starts another run"
        }
        Hint::ForceResume => "POST /api/pipelines/{id}/resume with \"force\": true has it go on all the same",
        Hint::FollowRun => "GET /api/pipelines/{id}/events follows it to its end",
        Hint::DecideDrift => "POST /api/pipelines/{id}/resume with \"on_drift\": \"restore\" or \"accept\"",
        Hint::UseWorktrees => "ask with \"worktree\": {} to have each work in a directory of its own",
        Hint::StartRun => "POST /api/pipelines starts another run",
        Hint::RestartDaemon => "start the daemon again: its agents work on",
        Hint::UnlockWorktree => "unlock it with git worktree unlock if it may go",
        Hint::PushInside => "commit and push inside it, or move it elsewhere",
        Hint::LeaveFiles => "name another place, or ask without files",
        Hint::EmptyQueue => "POST /api/sessions/{id}/cancel empties the queue",
        Hint::RaiseBudget => "[budgets] in the daemon's config.toml says how much may be used",
        Hint::SetBaseUrl => {
            "base_url in [notify] of the daemon's config.toml says how people elsewhere reach it"
        }
        Hint::SendMessage => "POST /api/sessions/{id}/messages gives the session a new message",
        Hint::StartSession => "POST /api/sessions begins another one",
        Hint::AnswerById => "without a token a wait is answered at /api/waits/{id}/answer",
        Hint::SetAside => {
            "GET /api/sessions/{id}/log shows what is whole; DELETE /api/sessions/{id}?force=1 ends its agent and sets its files aside; \
             on the daemon's machine, rekindle doctor says more"
        }
        Hint::ExamineHome => "on the daemon's machine, rekindle doctor says more",
        Hint::UseNewerVersion => "its files are left alone, and other sessions are not concerned",
        Hint::ReleaseSession => {
            "POST /api/sessions/{id}/release has it tried again; on the daemon's machine, rekindle doctor says more"
        }
        Hint::FreeDiskSpace => "free some room on the disk and try again",
        Hint::RepeatWithSameKey => "repeat it with the same Idempotency-Key",
        Hint::UseNewKey => "use a new Idempotency-Key for a new request",
        Hint::UseOtherKey => "use another key, or close the session that has it",
        Hint::RestartList => {
            "take `next` of the page before as it is, or leave the cursor out to begin at the beginning"
        }
        Hint::ChooseLimit { most } => return format!("limit is 1 to {most}"),
        Hint::ChooseStatus { statuses } => return statuses.join(", "),
        Hint::CreateToken { scope: Some(scope) } => {
            let scope = scope.as_str();
            return format!("on the daemon's machine, rekindle token create --scope {scope} makes another");
        }
        Hint::CreateToken { scope: None } => "on the daemon's machine, rekindle token create makes another",
        Hint::ListTokens => "on its machine, rekindle token ls says what is wrong",
        Hint::Unknown => "",
    };
    text.to_owned()
}
