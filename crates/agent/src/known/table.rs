//! The table of known agents. What it says of their behaviour was seen in the versions named beside each; unless
//! a range is given it is taken to hold for all.

use super::Quirk::{LoadContinuesTurn, LoadWithinAMinuteDestroys, ReplaysAfterLoad, RerunsInterruptedTool};
use super::Versions::Any;
use super::{Command, KnownAgent, Segment, TranscriptPlace};

const fn command(program: &'static str, args: &'static [&'static str]) -> Command {
    Command { program, args, needs: None }
}

/// What most agents have nothing to say about.
const PLAIN: KnownAgent = KnownAgent {
    id: "",
    title: "",
    names: &[],
    commands: &[],
    fetched: &[],
    adapts: "",
    package: "",
    install: "",
    login: "",
    environment: &[],
    set: &[],
    transcript: None,
    quirks: &[],
};

const OF_CLAUDE: TranscriptPlace = TranscriptPlace {
    variable: Some("CLAUDE_CONFIG_DIR"),
    directory: ".claude",
    segments: &[
        Segment::Fixed("projects"),
        Segment::WorkingDir,
        Segment::File { before: "", has_time: false, id_chars: usize::MAX },
    ],
};

const OF_CODEX: TranscriptPlace = TranscriptPlace {
    variable: Some("CODEX_HOME"),
    directory: ".codex",
    segments: &[
        Segment::Fixed("sessions"),
        Segment::Digits(4),
        Segment::Digits(2),
        Segment::Digits(2),
        Segment::File { before: "rollout-", has_time: true, id_chars: usize::MAX },
    ],
};

const OF_GEMINI: TranscriptPlace = TranscriptPlace {
    variable: None,
    directory: ".gemini",
    segments: &[
        Segment::Fixed("tmp"),
        Segment::Project,
        Segment::Fixed("chats"),
        Segment::File { before: "session-", has_time: true, id_chars: 8 },
    ],
};

/// The agents, as `rekindle agents` lists them.
pub const TABLE: &[KnownAgent] = &[
    // 0.99.0. The program `claude` itself does not speak the protocol.
    KnownAgent {
        id: "claude",
        title: "Claude Agent",
        names: &["@agentclientprotocol/claude-agent-acp"],
        commands: &[command("claude-agent-acp", &[])],
        fetched: &[command("npx", &["-y", "@agentclientprotocol/claude-agent-acp"])],
        adapts: "claude",
        package: "@agentclientprotocol/claude-agent-acp",
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        login: "claude /login",
        environment: &["ANTHROPIC_", "CLAUDE_"],
        transcript: Some(OF_CLAUDE),
        ..PLAIN
    },
    // 2.6.0. The program `codex` itself does not speak the protocol.
    KnownAgent {
        id: "codex",
        title: "Codex",
        names: &["@agentclientprotocol/codex-acp"],
        commands: &[command("codex-acp", &[])],
        fetched: &[command("npx", &["-y", "@agentclientprotocol/codex-acp"])],
        adapts: "codex",
        package: "@agentclientprotocol/codex-acp",
        install: "npm install -g @agentclientprotocol/codex-acp",
        login: "codex login",
        environment: &["OPENAI_", "CODEX_"],
        transcript: Some(OF_CODEX),
        ..PLAIN
    },
    // 0.61.0. Without the variable it starts itself once more, and signals reach only the first of the two.
    KnownAgent {
        id: "gemini",
        title: "Gemini CLI",
        names: &["gemini-cli"],
        commands: &[command("gemini", &["--acp"])],
        fetched: &[command("npx", &["-y", "@google/gemini-cli", "--acp"])],
        adapts: "",
        package: "@google/gemini-cli",
        install: "npm install -g @google/gemini-cli",
        login: "gemini",
        environment: &["GEMINI_", "GOOGLE_"],
        set: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
        transcript: Some(OF_GEMINI),
        quirks: &[(LoadWithinAMinuteDestroys, Any), (ReplaysAfterLoad, Any)],
    },
    // 1.18.33.
    KnownAgent {
        id: "opencode",
        title: "OpenCode",
        names: &["OpenCode"],
        commands: &[command("opencode", &["acp"])],
        fetched: &[command("npx", &["-y", "opencode-ai", "acp"])],
        package: "opencode-ai",
        install: "npm install -g opencode-ai",
        login: "opencode auth login",
        environment: &["OPENCODE_", "ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_", "OPENROUTER_"],
        ..PLAIN
    },
    // 1.52.0.
    KnownAgent {
        id: "goose",
        title: "goose",
        names: &["goose"],
        commands: &[command("goose", &["acp", "--with-builtin", "developer"])],
        package: "@aaif/goose-binary-linux-x64",
        install: "npm install -g @aaif/goose-binary-linux-x64",
        login: "goose configure",
        environment: &["GOOSE_", "ANTHROPIC_", "OPENAI_", "GOOGLE_", "OPENROUTER_"],
        ..PLAIN
    },
    // 1.0.102.
    KnownAgent {
        id: "copilot",
        title: "GitHub Copilot",
        names: &["Copilot"],
        commands: &[command("copilot", &["--acp"])],
        fetched: &[command("npx", &["-y", "@github/copilot", "--acp"])],
        package: "@github/copilot",
        install: "npm install -g @github/copilot",
        login: "copilot login",
        environment: &["COPILOT_", "GITHUB_", "GH_"],
        ..PLAIN
    },
    // 0.24.4. The variable removes one of its two launchers.
    KnownAgent {
        id: "qwen",
        title: "Qwen Code",
        names: &["qwen-code"],
        commands: &[command("qwen", &["--acp"])],
        fetched: &[command("npx", &["-y", "@qwen-code/qwen-code", "--acp"])],
        package: "@qwen-code/qwen-code",
        install: "npm install -g @qwen-code/qwen-code",
        login: "qwen",
        environment: &["QWEN_", "DASHSCOPE_", "OPENAI_"],
        set: &[("QWEN_CODE_NO_RELAUNCH", "true")],
        ..PLAIN
    },
    // 7.7.7.
    KnownAgent {
        id: "kilo",
        title: "Kilo Code",
        names: &["Kilo"],
        commands: &[command("kilo", &["acp"])],
        fetched: &[command("npx", &["-y", "@kilocode/cli", "acp"])],
        package: "@kilocode/cli",
        install: "npm install -g @kilocode/cli",
        login: "kilo auth login",
        environment: &["KILO_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_"],
        ..PLAIN
    },
    // pi-acp 0.0.34 with pi 0.87.1. The adapter starts `pi`, which must be there.
    KnownAgent {
        id: "pi",
        title: "pi",
        names: &["pi-acp"],
        commands: &[Command { program: "pi-acp", args: &[], needs: Some("pi") }],
        fetched: &[Command { program: "npx", args: &["-y", "pi-acp"], needs: Some("pi") }],
        adapts: "pi",
        package: "pi-acp",
        install: "npm install -g @earendil-works/pi-coding-agent pi-acp",
        login: "pi",
        environment: &["PI_", "ANTHROPIC_", "OPENAI_", "GEMINI_", "OPENROUTER_"],
        ..PLAIN
    },
    // 3.0.65.
    KnownAgent {
        id: "cline",
        title: "Cline",
        names: &["cline"],
        commands: &[command("cline", &["--acp"])],
        fetched: &[command("npx", &["-y", "cline", "--acp"])],
        package: "cline",
        install: "npm install -g cline",
        login: "cline auth",
        environment: &["CLINE_"],
        ..PLAIN
    },
    // 2.1.0.
    KnownAgent {
        id: "kimi",
        title: "Kimi Code",
        names: &["Kimi Code CLI"],
        commands: &[command("kimi", &["acp"])],
        fetched: &[command("npx", &["-y", "@moonshot-ai/kimi-code", "acp"])],
        package: "@moonshot-ai/kimi-code",
        install: "npm install -g @moonshot-ai/kimi-code",
        login: "kimi login",
        environment: &["KIMI_", "MOONSHOT_"],
        ..PLAIN
    },
    // 1.30.0.
    KnownAgent {
        id: "nanocoder",
        title: "Nanocoder",
        names: &["nanocoder"],
        commands: &[command("nanocoder", &["--acp"])],
        fetched: &[command("npx", &["-y", "@nanocollective/nanocoder", "--acp"])],
        package: "@nanocollective/nanocoder",
        install: "npm install -g @nanocollective/nanocoder",
        environment: &["NANOCODER_", "OPENAI_", "ANTHROPIC_", "OPENROUTER_"],
        ..PLAIN
    },
    // 0.19.0.
    KnownAgent {
        id: "hermes",
        title: "Hermes",
        names: &["hermes-agent"],
        commands: &[command("hermes-acp", &[])],
        fetched: &[command("uvx", &["--from", "hermes-agent[acp]", "hermes-acp"])],
        package: "hermes-agent",
        install: "uv tool install 'hermes-agent[acp]'",
        login: "hermes setup",
        environment: &["HERMES_", "OPENAI_", "OPENROUTER_", "ANTHROPIC_"],
        ..PLAIN
    },
    // 3.0.1.
    KnownAgent {
        id: "vibe",
        title: "Mistral Vibe",
        names: &["@mistralai/mistral-vibe"],
        commands: &[command("vibe-acp", &[])],
        fetched: &[command("uvx", &["--from", "mistral-vibe", "vibe-acp"])],
        package: "mistral-vibe",
        install: "uv tool install mistral-vibe",
        login: "vibe --setup",
        environment: &["MISTRAL_", "VIBE_"],
        quirks: &[(LoadContinuesTurn, Any)],
        ..PLAIN
    },
    // 0.10.30.
    KnownAgent {
        id: "fast-agent",
        title: "fast-agent",
        names: &["fast-agent-acp"],
        commands: &[command("fast-agent-acp", &["--shell"])],
        fetched: &[command("uvx", &["--from", "fast-agent-mcp", "fast-agent-acp", "--shell"])],
        package: "fast-agent-mcp",
        install: "uv tool install fast-agent-mcp",
        environment: &["FAST_AGENT_", "ANTHROPIC_", "OPENAI_", "GOOGLE_", "HF_"],
        ..PLAIN
    },
    // 1.16.0. Its shell runs in a server of its own.
    KnownAgent {
        id: "openhands",
        title: "OpenHands",
        names: &["OpenHands CLI ACP Agent"],
        commands: &[command("openhands", &["acp"])],
        fetched: &[command("uvx", &["--python", "3.12", "openhands", "acp"])],
        package: "openhands",
        install: "uv tool install --python 3.12 openhands",
        login: "openhands login",
        environment: &["OPENHANDS_", "LLM_"],
        quirks: &[(RerunsInterruptedTool, Any)],
        ..PLAIN
    },
    // 0.16.2, the predecessor of `claude`.
    KnownAgent {
        id: "claude-code-acp",
        title: "Claude Code (older adapter)",
        names: &["@zed-industries/claude-code-acp"],
        commands: &[command("claude-code-acp", &[])],
        package: "@zed-industries/claude-code-acp",
        install: "npm install -g @zed-industries/claude-code-acp",
        login: "claude /login",
        environment: &["ANTHROPIC_", "CLAUDE_"],
        transcript: Some(OF_CLAUDE),
        ..PLAIN
    },
    // 0.16.0. Its program has the same name as that of `codex`, which is looked for; only its own package is sure
    // to be this one.
    KnownAgent {
        id: "codex-zed",
        title: "Codex (Zed's adapter)",
        names: &["codex-acp"],
        fetched: &[command("npx", &["-y", "@zed-industries/codex-acp"])],
        package: "@zed-industries/codex-acp",
        install: "npm install -g @zed-industries/codex-acp",
        login: "codex login",
        environment: &["OPENAI_", "CODEX_"],
        transcript: Some(OF_CODEX),
        ..PLAIN
    },
];
