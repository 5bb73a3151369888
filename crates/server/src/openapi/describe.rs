//! What each operation is about: its name in programs, what it takes and answers, and every code it may be refused with.
//! The order is that of the router.

use axum::http::StatusCode;
use rekindle_domain::projector::Derived;
use rekindle_wire::code::Code;
use rekindle_wire::event::{Delta, Reset, SessionChanged, SessionDeleted, TooSlow};
use rekindle_wire::filter::{Filter, HolderFilter, WaitFilter};
use rekindle_wire::request::{
    Change, Collect, ImportStaged, NewAnswer, NewMessage, NewSession, NewWait, Resume, TestSink,
};
use rekindle_wire::view::{
    About, AnswerTaken, Collected, Gone, HistoryMissing, HolderList, ImportedStaged, KeyedSession, LogDamage,
    LogPage, MessageTaken, Resumed, SessionList, SessionView, SinkTested, Space, TokenShown, WaitList,
    WaitView,
};
use serde_json::{Value, json};

use super::operation::Operation;
use crate::routes::daemon::{Agents, Alive, Ready, Shutdown, ShuttingDown};
use crate::routes::sessions::{Cancelled, Deletion, Done, Nothing, Page, Status};
use crate::sse::start::After;

/// What the interface is.
pub(super) const ABOUT: &str = "Runs coding agents so that a crash never costs work. \
A session is a durable conversation with one agent in one directory; its log is what happened. \
A 202 means that what was asked for is on disk. Fields and codes may be added at any time; those named here stay. \
Unknown fields of a body and unknown parameters of a query are errors, but for those who watch: /healthz, /readyz and \
/metrics take no notice of a query.";

const OK: StatusCode = StatusCode::OK;
const ACCEPTED: StatusCode = StatusCode::ACCEPTED;
const CREATED: StatusCode = StatusCode::CREATED;

/// Says what kinds of operations there are.
pub(super) fn tags() -> Value {
    json!([
        {"name": "sessions", "description": "Conversations with agents: made, shown, spoken to, ended."},
        {"name": "waits", "description": "What agents and programs ask of people, and the answers."},
        {"name": "daemon", "description": "The daemon itself, and what it finds around it."},
    ])
}

/// Says who may ask for what.
pub(super) fn token() -> Value {
    json!({
        "type": "http",
        "scheme": "bearer",
        "description": "On TCP only. Whoever can open the daemon's unix socket needs none. \
            An access token, `tok_….SECRET`, made with `rekindle token create`. Its scope says what it may: \
            `read` looks, `answer` looks and answers what agents ask, `admin` does everything.",
    })
}

pub(crate) fn get_health() -> Operation {
    Operation::new::<Alive>("daemon", "getHealth", "Tell whether the daemon listens")
        .answers(OK, "It does.")
        .more("Asks nobody, so that a daemon with a stuck disk is still seen to live.")
        .ignores_queries()
        .example(json!({"status": "ok"}))
}

pub(crate) fn get_readiness() -> Operation {
    Operation::new::<Ready>("daemon", "getReadiness", "Tell whether the sessions are listed")
        .answers(OK, "They are.")
        .more(
            "Recovery may still be going on; `recovered` tells. Sessions with a `health` of `reading` are listed, though \
             their long logs are still being read.",
        )
        .ignores_queries()
        .example(json!({"status": "ready", "recovered": true}))
        .refuses([Code::NotReady])
}

pub(crate) fn get_metrics() -> Operation {
    Operation::new::<String>("daemon", "getMetrics", "Get what is counted")
        .answers(OK, "Text for Prometheus.")
        .more("OpenMetrics to whoever accepts it. docs/metrics.md says what each is.")
        .ignores_queries()
        .content_type("text/plain")
        .content_type("application/openmetrics-text")
}

pub(crate) fn get_openapi() -> Operation {
    Operation::new::<serde_json::Map<String, Value>>("daemon", "getOpenapi", "Get this document")
        .answers(OK, "OpenAPI 3.1.")
}

pub(crate) fn get_version() -> Operation {
    let example = json!({
        "version": "0.1.0", "pid": 4711, "boot_id": "boot_01khz0p6r8vk6mqj3b8y2c9d4e", "epoch": 3,
        "home": "/home/me/.local/state/rekindle", "home_id": "64769:1311214", "listed": true, "recovered": true,
    });
    Operation::new::<About>("daemon", "getVersion", "Tell who the daemon is")
        .answers(OK, "Who it is.")
        .example(example)
}

pub(crate) fn list_agents() -> Operation {
    let example = json!({"agents": [{
        "id": "claude", "title": "Claude Code", "how": "missing", "command": [], "install": "npm install -g …",
    }]});
    Operation::new::<Agents>("daemon", "listAgents", "List known agents, and which are here")
        .answers(OK, "The known agents.")
        .more("Looks at the daemon's `PATH`; starts nothing.")
        .example(example)
}

pub(crate) fn list_holders() -> Operation {
    Operation::new::<HolderList>("daemon", "listHolders", "List the processes that keep agents alive")
        .answers(OK, "A page of holders.")
        .more("By their ids.")
        .query::<HolderFilter>()
        .refuses([Code::InvalidCursor, Code::InvalidQuery, Code::Internal])
}

pub(crate) fn shut_down() -> Operation {
    Operation::new::<ShuttingDown>("daemon", "shutDown", "End the daemon")
        .answers(ACCEPTED, "It will end; the connection ends when it has.")
        .more("Agents work on, unless they are to end too.")
        .body_if_any::<Shutdown>(vec![
            ("agents keep working", json!({})),
            ("agents end too", json!({"agents": true})),
        ])
        .example(json!({"agents": false}))
}

pub(crate) fn take_in_import() -> Operation {
    Operation::new::<ImportedStaged>("sessions", "takeInImport", "Take in an imported bundle")
        .answers(CREATED, "The sessions, which are on disk and listed from now on.")
        .more(
            "For `rekindle import`, which has read and checked a bundle and staged it in the home: the daemon that owns the home \
             moves the sessions to their place. Only on the daemon's own socket.",
        )
        .body::<ImportStaged>(vec![("what was staged", json!({"staged": "0123456789abcdef0123456789abcdef"}))])
        .example(json!({"sessions": ["sess_01khz0p6r8vk6mqj3b8y2c9d4e"], "runs": []}))
        .refuses([Code::ImportUnknown, Code::InvalidBody, Code::RunExists, Code::SessionExists, Code::Storage, Code::TokenScope])
}

pub(crate) fn test_sink() -> Operation {
    Operation::new::<SinkTested>("daemon", "testSink", "Send a test through a sink of notifications")
        .answers(OK, "What came of it.")
        .more(
            "At once, whatever the sink's filters and limits say, and only once; nothing of it is in the outbox. Takes as long as the \
             sink's target does, about ten seconds at most. The sink is as the daemon has it, with its variables.",
        )
        .body::<TestSink>(vec![("a sink", json!({"sink": "phone"}))])
        .example(json!({"sink": "phone", "delivered": false, "why": "hooks.example answers 404", "took_ms": 84}))
        .refuses([Code::SinkUnknown])
}

pub(crate) fn collect() -> Operation {
    let example = Collected {
        expired_checkpoints: 2,
        gone: vec![Gone {
            kind: "pack".into(),
            path: "/home/me/.local/state/rekindle/blobs/packs/0123456789abcdef0123456789abcdef.pack".into(),
            bytes: 73_912,
            why: "no record, snapshot or tree refers to anything in it".into(),
        }],
        space: Space { sessions: 51_204, checkpoints: Some(0), blobs: 73_912, ..Space::default() },
        ..Collected::default()
    };
    Operation::new::<Collected>("daemon", "collect", "Remove what nobody needs any more")
        .answers(OK, "What was removed, what stays and why, and what takes the room.")
        .more(
            "Directories of dead holders whose journals are in a log, blobs and packs that nobody names, what imports left that were \
             cut short. Files of checkpoints are let go only by the age and the size that are asked for; what an open run, a run that was \
             cut, a fork, a kept snapshot or a restore needs stays. Only on the daemon's own socket.",
        )
        .body_if_any::<Collect>(vec![
            ("only to look", json!({"dry_run": true})),
            ("checkpoints of a month, 20 GiB of them", json!({
                "checkpoints_older_than_s": 2_592_000, "checkpoints_max_bytes": 21_474_836_480_u64
            })),
        ])
        .example(json!(example))
        .refuses([Code::Collecting, Code::InvalidBody, Code::Storage, Code::TokenScope])
}

pub(crate) fn follow_all_sessions() -> Operation {
    Operation::new::<String>("sessions", "followAllSessions", "Follow all sessions")
        .answers(OK, "Server-sent events, without ids.")
        .more(
            "An event comes within about 50 ms of anything that happens to a session, once for all that happened \
             meanwhile. Connect first and list the sessions then; do both again after `too_slow` or an end. A comment \
             comes when nothing else did for 15 s.",
        )
        .event::<SessionChanged<'_>>("session", "Something happened to it.")
        .event::<SessionDeleted>("deleted", "It is gone.")
        .event::<TooSlow>("too_slow", "The follower is 1024 news behind; the stream ends.")
}

pub(crate) fn list_sessions() -> Operation {
    Operation::new::<SessionList>("sessions", "listSessions", "List sessions")
        .answers(OK, "A page of sessions.")
        .more(
            "The session that was made last comes first. Nothing that happens to sessions changes this order: none \
             that is there throughout is missed or listed twice, whatever comes and goes between two pages. 50 are on \
             a page unless `limit` says otherwise. Right after a start a session with a very long log may have a `health` \
             of `reading`: it is shown as it began, and is in every list, because its status is not known yet.",
        )
        .query::<Filter>()
        .refuses([Code::InvalidCursor, Code::InvalidQuery])
        .example(json!({"sessions": [session()], "next": "19c7f1e4a00.sess_01khz0p6r8vk6mqj3b8y2c9d4e"}))
}

pub(crate) fn create_session() -> Operation {
    Operation::new::<SessionView>("sessions", "createSession", "Make a session")
        .answers(CREATED, "The session. It is on disk; with a prompt it runs already.")
        .also_answers::<KeyedSession>(OK, "The session that has the `key`, and its message that the prompt became.")
        .more(
            "With a `key` this is how a program comes back to its session, whether or not it was here before: one that is not \
             closed and has the key is resumed if something was interrupted there, and the prompt is its next message.",
        )
        .body::<NewSession>(vec![
            (
                "the session of a key",
                json!({"working_dir": "/repo", "agent": "claude", "key": "my-project", "prompt": "go on"}),
            ),
            (
                "a known agent",
                json!({"working_dir": "/repo", "agent": "claude", "prompt": "fix the failing test"}),
            ),
            (
                "any command",
                json!({
                    "working_dir": "/repo", "agent": {"profile": "acp", "command": ["my-agent", "--acp"]},
                    "title": "Nightly", "permissions": "allow", "resume": "ask", "env": {"LANG": "C.UTF-8"},
                }),
            ),
        ])
        .answer_header("Location", "The path of the session.")
        .example(session())
        .appends()
        .refuses([
            Code::AgentUnknown,
            Code::InvalidAgent,
            Code::InvalidContent,
            Code::InvalidEnv,
            Code::InvalidKey,
            Code::InvalidWorkingDir,
            Code::KeyConflict,
            Code::SettingUnknown,
            Code::GitMissing,
            Code::WorktreeImpossible,
        ])
        // Those of going on in a session.
        .refuses([Code::BudgetExceeded, Code::Busy, Code::EnvMissing, Code::QueueFull, Code::SessionClosed])
        .takes_idempotency_key()
        .leads_to([
            "getSession",
            "changeSession",
            "deleteSession",
            "sendMessage",
            "cancelSession",
            "resumeSession",
            "closeSession",
        ])
        .leads_to(["getSessionLog", "getSessionStatus"])
}

pub(crate) fn get_session() -> Operation {
    Operation::new::<SessionView>("sessions", "getSession", "Show a session")
        .answers(OK, "The session.")
        .of_session()
        .example(session())
}

pub(crate) fn change_session() -> Operation {
    Operation::new::<SessionView>(
        "sessions",
        "changeSession",
        "Change a session's title, policies, mode or model",
    )
    .answers(OK, "The session.")
    .of_session()
    .body::<Change>(vec![
        ("title", json!({"title": "Nightly"})),
        ("policy", json!({"resume": "never"})),
        ("model", json!({"model": "opus"})),
    ])
    .example(session())
    .appends()
    .refuses([Code::NothingToChange, Code::SettingUnknown])
}

pub(crate) fn delete_session() -> Operation {
    Operation::new::<Done>("sessions", "deleteSession", "Remove a session")
        .answers(StatusCode::NO_CONTENT, "It is gone.")
        .more("Its agent is stopped first. One whose run has not ended is removed only with `force=1`.")
        .without_content()
        .of_session()
        .query::<Deletion>()
        .appends()
        .refuses([Code::AgentUnreachable, Code::NotDamaged, Code::StillRunning])
}

pub(crate) fn send_message() -> Operation {
    let example = json!({
        "message_id": "msg_01khz0p6r8vk6mqj3b8y2c9d4e", "run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "seq": 12,
        "queued": false,
    });
    Operation::new::<MessageTaken>("sessions", "sendMessage", "Give a session a message")
        .answers(ACCEPTED, "It is on disk.")
            .more(
                "It begins a run, or waits for its turn behind the one that goes on. Into a wait it comes as a cancel \
                 of what is waited for.",
            )
            .of_session()
            .body::<NewMessage>(vec![
                ("text", json!({"content": "now the documentation"})),
                ("blocks", json!({"content": [{"type": "text", "text": "now the documentation"}]})),
            ])
            .example(example)
            .appends()
            .refuses([Code::BudgetExceeded, Code::Busy, Code::InvalidContent, Code::InvalidEnv])
            .refuses([Code::QueueFull, Code::SessionClosed, Code::WorktreeMissing])
            .takes_idempotency_key()
}

pub(crate) fn cancel_session() -> Operation {
    Operation::new::<Cancelled>("sessions", "cancelSession", "Cancel what a session does and has queued")
        .answers(ACCEPTED, "It will end.")
        .of_session()
        .body_if_any::<Nothing>(Vec::new())
        .example(json!({"run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e"}))
        .appends()
        .refuses([Code::NothingRunning])
}

pub(crate) fn resume_session() -> Operation {
    Operation::new::<Resumed>("sessions", "resumeSession", "Continue an interrupted session")
        .answers(ACCEPTED, "It goes on.")
        .more(
            "Or answer a wait of it by a resume token: then `token` comes with the `answer`, and no access token is needed; \
             the body is 64 KiB at most without one.",
        )
        .of_session()
        .body_if_any::<Resume>(vec![
            ("continue", json!({})),
            (
                "answer",
                json!({"token": "rt_01khz0p6r8vk6mqj3b8y2c9d4e.SECRET", "answer": {"option": "allow_once"}}),
            ),
        ])
        .example(json!({"run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "method": "continue", "attempt": 2}))
        .appends()
        .refuses([Code::EnvMissing, Code::InvalidEnv, Code::NothingToResume])
        .refuses(ANSWERING)
}

pub(crate) fn close_session() -> Operation {
    Operation::new::<Done>("sessions", "closeSession", "Close a session")
        .answers(ACCEPTED, "It takes no more messages.")
        .more("Its agent goes, its log stays.")
        .of_session()
        .body_if_any::<Nothing>(Vec::new())
        .example(json!({}))
        .appends()
        .refuses([Code::StillRunning])
}

pub(crate) fn release_session() -> Operation {
    Operation::new::<SessionView>("sessions", "releaseSession", "Release a session from quarantine")
        .answers(OK, "The session, which is tried again.")
        .more(
            "A session that made the daemon crash twice is left alone. This forgets the crashes and goes on with it; one that is \
             not quarantined is as it was.",
        )
        .of_session()
        .body_if_any::<Nothing>(Vec::new())
        .example(session())
        .refuses([Code::Internal, Code::Storage])
}

pub(crate) fn get_session_log() -> Operation {
    let record = json!({
        "seq": 1, "ts": "2026-02-21T10:00:00.000Z", "kind": "session.closed", "by": "local", "h": "4df9e30ab1d947d5",
    });
    Operation::new::<LogPage>("sessions", "getSessionLog", "Read a session's log")
        .answers(OK, "Records as they stand in the log.")
        .of_session()
        .query::<Page>()
        .example(json!({"records": [record], "next": null}))
        .refuses([Code::SessionDamaged, Code::SessionNewer, Code::SessionQuarantined])
}

pub(crate) fn get_session_status() -> Operation {
    let Value::Object(session) = session() else { unreachable!("it is an object") };
    let example =
        session.into_iter().filter(|(name, _)| ["id", "status", "since", "evidence"].contains(&&**name));
    Operation::new::<Status>("sessions", "getSessionStatus", "Tell what a session is doing")
        .answers(OK, "What, since when, how it is known.")
        .of_session()
        .example(Value::Object(example.collect()))
}

pub(crate) fn get_blob() -> Operation {
    Operation::new::<String>("sessions", "getBlob", "Get what is too large for a log")
        .answers(OK, "Its bytes: of a message, the JSON that would stand in the record.")
        .more(
            "A payload above 256 KiB is kept apart; the record has `{\"blob\":…,\"size\":…}` in its place. A name is \
             BLAKE3 of the bytes in hex, so what it names never changes.",
        )
        .content_type("application/octet-stream")
        .of_blob()
        .refuses([Code::BlobDamaged, Code::Storage])
}

pub(crate) fn follow_session() -> Operation {
    let id = json!({"type": "string", "pattern": "^[0-9]{1,19}(\\.[0-9a-f]{16})?$", "examples": ["7.4df9e30ab1d947d5"]});
    let about = "The id of the last event that was seen; counts before `after`.";
    Operation::new::<String>("sessions", "followSession", "Follow a session")
        .answers(OK, "Server-sent events.")
        .more(
            "Every record of the log is an event: its kind is the event's name, its `seq.h` the id, its line the \
             data. `delta` and `status.derived` without an id are of now and in no record. A comment comes when \
             nothing else did for 15 s. `reset`, `damaged`, `too_slow` and `deleted` end the stream; one that ends without them \
             ended with the daemon, or could not be read on just then: connect again with the last id.",
        )
        .of_session()
        .query::<After>()
        .header("Last-Event-ID", about, id, Code::InvalidLastEventId)
        .event::<Delta>("delta", "Words that are in no record yet; no id.")
        .event::<Derived>("status.derived", "The status is another one than before; no id.")
        .event::<Reset>("reset", "The log has no such record: forget what you have and begin again.")
        .event::<LogDamage>("damaged", "The log is damaged behind the last record: nothing follows.")
        .event::<HistoryMissing>("history_missing", "What a fork goes on from cannot be read; its own records follow.")
        .event::<TooSlow>("too_slow", "The follower is 1024 news behind: connect again with the last id.")
        .event::<Done>("deleted", "The session is gone.")
        .refuses([Code::SessionDamaged, Code::SessionNewer, Code::SessionQuarantined])
}

pub(crate) fn list_waits() -> Operation {
    Operation::new::<WaitList>("waits", "listWaits", "List what agents ask and nobody has answered")
        .answers(OK, "A page of waits.")
        .more(
            "The one that waits longest comes first. 500 are on a page unless `limit` says fewer. What a session asks whose \
             `health` is `reading` is listed when it is read; whoever names that session waits for it.",
        )
        .query::<WaitFilter>()
        .refuses([Code::InvalidCursor, Code::InvalidQuery])
        .example(json!({"waits": [wait()], "next": null}))
}

pub(crate) fn open_wait() -> Operation {
    Operation::new::<WaitView>("waits", "openWait", "Open a wait on the run that goes on")
        .answers(CREATED, "The wait, which is on disk.")
    .more(
        "For programs that drive a session: someone or something outside is to answer, with `POST /api/waits/{id}/answer`. \
         The answer is in `GET /api/waits/{id}` and in the session's log and events, in `run.resumed`. The agent is told \
         nothing, and works on. The wait ends as `withdrawn` with its run, and as `timeout` at its own time; the run goes \
         on then.",
    )
    .of_session()
    .body::<NewWait>(vec![
        ("external", json!({"kind": "external", "request": {"question": "Which database?"}, "timeout_s": 3600})),
        ("tool_result", json!({"kind": "tool_result", "request": {"tool": "deploy", "run": 4711}})),
    ])
    .example(wait())
    .appends()
    .refuses([Code::InvalidContent, Code::NothingRunning, Code::QueueFull, Code::WaitUnknown])
    .takes_idempotency_key()
}

pub(crate) fn get_wait() -> Operation {
    Operation::new::<WaitView>("waits", "getWait", "Show a wait, over or not")
        .answers(OK, "The wait.")
        .more("One that is over has `state` `ended`, `how` it ended, and the `answer` if there was one.")
        .of_wait()
        .example(wait())
        .refuses([Code::WaitUnknown, Code::SessionUnknown])
}

pub(crate) fn create_wait_token() -> Operation {
    let example =
        json!({"token": "rt_01khz0p6r8vk6mqj3b8y2c9d4e.SECRET", "expires_at": "2026-02-22T10:00:00.000Z"});
    Operation::new::<TokenShown>(
        "waits",
        "createWaitToken",
        "Make a token that lets someone else answer a wait",
    )
    .answers(OK, "The token, shown this once.")
    .of_wait()
    .body_if_any::<Nothing>(Vec::new())
    .example(example)
    .appends()
    .refuses([Code::WaitClosed, Code::SessionUnknown])
}

pub(crate) fn answer_wait() -> Operation {
    let example = json!({
        "run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "resume_token_id": "rt_01khz0p6r8vk6mqj3b8y2c9d4e",
    });
    Operation::new::<AnswerTaken>("waits", "answerWait", "Answer a wait")
        .answers(ACCEPTED, "The answer is on disk.")
        .more(
            "The first answer wins; the same one again gets the same result. One to a void wait becomes a message. With a resume \
             token in `token` no access token is needed; the body is 64 KiB at most without one.",
        )
        .of_wait()
        .body::<NewAnswer>(vec![
            ("option", json!({"option": "allow_once"})),
            ("option by its id", json!({"option_id": "proceed"})),
            ("text", json!({"text": "the second one"})),
            ("form", json!({"form": {"name": "rekindle"}})),
        ])
        .example(example)
        .appends()
        .refuses([Code::SessionUnknown])
        .refuses(ANSWERING)
}

/// Why an answer is not taken.
const ANSWERING: [Code; 16] = [
    Code::AgentUnreachable,
    Code::AnswerUnfit,
    Code::BudgetExceeded,
    Code::Busy,
    Code::InvalidAnswer,
    Code::InvalidContent,
    Code::QueueFull,
    Code::SessionClosed,
    Code::TokenConsumed,
    Code::TokenExpired,
    Code::TokenRevoked,
    Code::TokenScope,
    Code::TokenUnknown,
    Code::TooManyFailures,
    Code::WaitClosed,
    Code::WaitUnknown,
];

/// A session, for examples.
pub(super) fn session() -> Value {
    json!({
        "id": "sess_01khz0p6r8vk6mqj3b8y2c9d4e", "title": "fix the failing test", "working_dir": "/repo",
        "key": null, "agent": "claude", "model": null, "mode": null, "known_agent": "claude", "missing_env": [], "profile": "acp", "status": "waiting", "since": "2026-02-21T10:03:14.000Z",
        "evidence": {
            "boot_id": "boot_01khz0p6r8vk6mqj3b8y2c9d4e",
            "holder": {"id": "h_00112233445566778899aabbccddeeff", "alive": true, "proof": "lock", "pid": 4712, "started": 815},
            "last_output_at": "2026-02-21T10:03:14.000Z", "last_seq": 12,
            "open_wait": "wait_01khz0p6r8vk6mqj3b8y2c9d4e", "in_flight": ["prompt"],
        },
        "connection": "running", "last_seq": 12,
        "run": {
            "run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "state": "waiting", "started_at": "2026-02-21T10:00:00.000Z",
            "ended_at": null, "attempt": 1, "detail": null, "resumable": false, "uncertain": null,
            "checkpoints": {"start": {"snapshot": "snap-000000000000", "tree": "0".repeat(64), "how": "live", "not_taken": null}, "end": null},
            "files_touched": null,
            "drift": null, "budget": null,
        },
        "wait": wait(), "waits": [wait()], "queued": 0, "held": null,
        "usage": {"input_tokens": 0, "output_tokens": 0, "cost": null}, "cursor": "…", "closed": false,
        "created_at": "2026-02-21T10:00:00.000Z", "updated_at": "2026-02-21T10:03:14.000Z",
        "last_words": "May I run the tests?", "health": {"state": "ok"}, "forked_from": null, "replaced_by": null, "worktree": null, "parent": null,
    })
}

/// A wait, for examples.
fn wait() -> Value {
    json!({
        "wait_id": "wait_01khz0p6r8vk6mqj3b8y2c9d4e", "session_id": "sess_01khz0p6r8vk6mqj3b8y2c9d4e",
        "run_id": "run_01khz0p6r8vk6mqj3b8y2c9d4e", "kind": "permission", "state": "open",
        "request": {"method": "session/request_permission"}, "since": "2026-02-21T10:03:14.000Z", "deadline_at": null,
    })
}
