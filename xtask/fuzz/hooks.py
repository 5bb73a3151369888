"""Keeps what is fuzzed harmless, and lets it get further than the first check.

Requests are made up from the daemon's own description, and one of them may contain any command. Before any request leaves, its
agent becomes the demo agent and what the agent is told becomes one of a few scripts. Beside that the daemon has no PATH."""

import json
import os

import schemathesis

WORK = os.environ["REKINDLE_FUZZ_WORK"]
AGENT = json.loads(os.environ["REKINDLE_FUZZ_AGENT"])

# What the demo agent is told: these touch nothing.
SCRIPTS = ["say hello", "ask may I?", "question which one?", "words 20 every 1ms", "hang", "crash 1"]


def script(text):
    """Chooses by what was made up, so that a seed means the same requests."""
    return SCRIPTS[sum(text.encode("utf-8", "replace")) % len(SCRIPTS)]


def harmless_content(content):
    if isinstance(content, str) and content:
        return script(content)
    if isinstance(content, list):
        return [dict(block, text="say hello") if isinstance(block, dict) and isinstance(block.get("text"), str) else block
                for block in content]
    return content


def is_valid(case):
    meta = getattr(case, "meta", None)
    return meta is not None and meta.generation.mode.is_positive


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if isinstance(body, dict):
        make_harmless(body, case)
        tasks = body.get("tasks")
        for task in tasks if isinstance(tasks, list) else []:
            if isinstance(task, dict):
                make_harmless(task, case)
                # A name that two tasks have, or one that no task has, is no question of shape.
                if is_valid(case):
                    task.pop("after", None)
                    task.pop("ref", None)
        # Runs of several tasks need a worktree each, and what a project's file says must make sense: no questions of shape either.
        if is_valid(case) and isinstance(tasks, list) and all(isinstance(task, str) for task in tasks):
            body["tasks"] = tasks[:1]
            body.pop("config", None)
    # Only a list gives out cursors; what a text says does not make it one.
    if is_valid(case) and isinstance(case.query, dict):
        case.query.pop("cursor", None)


def make_harmless(body, case):
    if isinstance(body.get("agent"), dict) and isinstance(body["agent"].get("command"), list):
        # One that makes no sense stays so: an empty command, or one of numbers.
        command = body["agent"]["command"]
        if command and all(isinstance(word, str) for word in command) and command[0]:
            body["agent"]["command"] = AGENT
        elif not (command and isinstance(command[0], str) and not command[0]):
            body["agent"]["command"] = [word for word in command if not isinstance(word, str)]
    for field in ("prompt", "content"):
        if field in body:
            body[field] = harmless_content(body[field])
    if isinstance(body.get("env"), dict):
        body["env"].pop("PATH", None)
    # There is one directory that everybody may use.
    if isinstance(body.get("working_dir"), str) and is_valid(case):
        body["working_dir"] = WORK
    # What is restored elsewhere replaces what is there.
    for field in ("files", "force", "worktree"):
        if body.get(field) is True and not is_valid(case):
            body[field] = False
