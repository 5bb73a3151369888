//! Hints in words for programs that speak HTTP: paths and headers where the interface can do it, commands of the daemon's machine
//! where only those can. The command line words them for itself.

use rekindle_wire::hint::Hint;

/// Returns what a hint advises.
pub(crate) fn hint_text(hint: &Hint) -> String {
    let text = match hint {
        Hint::ListSessions => "GET /api/sessions lists them",
        Hint::ListSnapshots => "GET /api/sessions/{id}/snapshots lists them",
        Hint::ListTasks => "GET /api/tasks/active lists the tasks that have not ended",
        Hint::ListWaits => "GET /api/waits lists the open waits",
        Hint::AnswerWaits => "GET /api/waits lists them; POST /api/waits/{id}/answer answers one",
        Hint::ListAgents => {
            "GET /api/agents lists them; any other is a command: {\"profile\":\"acp\",\"command\":[…]}"
        }
        Hint::ChooseProfile => "acp, ndjson, or exec for any command",
        Hint::InstallAgent { command } => command,
        Hint::PassArguments => "pass it what it needs as arguments",
        Hint::NameDirectory => "give the absolute path of a directory",
        Hint::BringVariables => "pass them in \"env\"",
        Hint::TryAgain => "try again in a moment; GET /api/sessions/{id}/status shows its state",
        Hint::CancelFirst => "POST /api/sessions/{id}/cancel first",
        Hint::CancelOrForce => "POST /api/sessions/{id}/cancel first, or remove it with force=1",
        Hint::CancelOrForceRestore => "POST /api/sessions/{id}/cancel first, or send \"force\": true",
        Hint::NameEmptyDirectory => "name a new or an empty directory, or send \"force\": true",
        Hint::ForkElsewhere => {
            "a fork with working_dir and files continues elsewhere, with the files as they were"
        }
        Hint::NameNewDirectory => "name a directory that does not exist yet",
        Hint::RestoreWithoutGit => {
            "send \"files\" and a \"working_dir\" instead of \"worktree\": that needs no git"
        }
        Hint::WorkInPlace => "leave out \"worktree\" to work in the directory itself",
        Hint::CommitOrCarry => {
            "commit them first, or send \"dirty\": \"ignore\" to leave them there or \"carry\" to copy them"
        }
        Hint::NameOtherBranch => "name another \"branch\", or none",
        Hint::CarryFromHead => "send \"dirty\": \"ignore\", or leave out \"base\" and \"branch\"",
        Hint::ResolveInWorktree => {
            "resolve them in the worktree, or ask the agent to with POST /api/sessions/{id}/messages, then merge again"
        }
        Hint::CommitThere => "commit it there, or stash it with git stash --include-untracked",
        Hint::SwitchToBranch => "run git switch BRANCH there, then merge again",
        Hint::FinishThere => "finish or abort it there: git status says how",
        Hint::MergeOrForce => {
            "POST /api/sessions/{id}/worktree/merge first; with force=1 work that exists nowhere else is kept in a git bundle for 30 days"
        }
        Hint::ListPipelines => "GET /api/pipelines lists them",
        Hint::TrustConfig { hash } => {
            return format!("review what it runs, then send \"trust\": \"{hash}\"");
        }
        Hint::CheckConfig => {
            "on the machine of the project, rekindle pipeline validate says what is wrong with it"
        }
        Hint::RestoreConfig => {
            "undo the change in rekindle.toml, or start another run with POST /api/pipelines"
        }
        Hint::AcceptConfig => {
            "send \"accept_config\": true to continue with what it was started with, or start another run with POST /api/pipelines"
        }
        Hint::ForceResume => "POST /api/pipelines/{id}/resume with \"force\": true continues it anyway",
        Hint::FollowRun => "GET /api/pipelines/{id}/events follows it to its end",
        Hint::DecideDrift => "POST /api/pipelines/{id}/resume with \"on_drift\": \"restore\" or \"accept\"",
        Hint::UseWorktrees => "send \"worktree\": {} to give each run a directory of its own",
        Hint::StartRun => "POST /api/pipelines starts another run",
        Hint::RestartDaemon => "restart the daemon: its agents keep working",
        Hint::UnlockWorktree => "unlock it with git worktree unlock if it may be removed",
        Hint::PushInside => "commit and push inside it, or move it elsewhere",
        Hint::LeaveFiles => "name another place, or leave out files",
        Hint::EmptyQueue => "POST /api/sessions/{id}/cancel empties the queue",
        Hint::RaiseBudget => "[budgets] in the daemon's config.toml says how much may be used",
        Hint::SetBaseUrl => {
            "base_url in [notify] of the daemon's config.toml says how people elsewhere reach it"
        }
        Hint::SendMessage => "POST /api/sessions/{id}/messages gives the session a new message",
        Hint::StartSession => "POST /api/sessions creates another one",
        Hint::AnswerById => "to answer a wait without a token, use /api/waits/{id}/answer",
        Hint::SetAside => {
            "GET /api/sessions/{id}/log shows the undamaged part; DELETE /api/sessions/{id}?force=1 ends its agent and sets its files \
             aside; on the daemon's machine, rekindle doctor says more"
        }
        Hint::ExamineHome => "on the daemon's machine, rekindle doctor says more",
        Hint::UseNewerVersion => "its files were not changed, and other sessions are not affected",
        Hint::ReleaseSession => {
            "POST /api/sessions/{id}/release releases it; on the daemon's machine, rekindle doctor says more"
        }
        Hint::FreeDiskSpace => "free some disk space and try again",
        Hint::RepeatWithSameKey => "repeat it with the same Idempotency-Key",
        Hint::UseNewKey => "use a new Idempotency-Key for a new request",
        Hint::UseOtherKey => "use another key, or close the session that has it",
        Hint::RestartList => {
            "pass `next` of the previous page unchanged, or leave out the cursor to begin at the start"
        }
        Hint::ChooseLimit { most } => return format!("limit must be 1 to {most}"),
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
