"use strict";
(() => {
  const link = /^#(wait_[0-9a-z]{1,64})\.(rt_[0-9a-z]{1,64}\.[0-9a-f]{64})$/.exec(location.hash);
  // Before anything else the secret leaves the address bar and the history.
  history.replaceState(null, "", location.pathname);

  const OVER = {
    expired: "This link has expired: it answers nothing any more.",
    answered: "This was answered already, in another way.",
    replaced: "Newer links were sent for this question: open one of those.",
    withdrawn: "This is not asked any more.",
    run_ended: "This is not asked any more: the run has ended.",
    cancelled: "This is not asked any more: the run was cancelled.",
    interrupted: "The agent that asked this is gone, so a link cannot answer it.",
    timeout: "Nobody answered in time.",
  };
  const ELSEWHERE = " On the computer, “rekindle waits” shows what is open.";
  const KINDS = { permission: "The agent asks for permission", question: "The agent asks", tool_result: "A program waits for a result" };

  const at = (id) => document.getElementById(id);
  // What agents say is text and nothing else. What would turn it round or hide some of it is shown as what it is.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
  const plain = (text) => text.replaceAll("\r\n", "\n").replace(UNSEEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  const show = (id, text) => { at(id).textContent = plain(text ?? ""); at(id).hidden = !text; };
  const stop = (text) => { at("confirm").hidden = true; show("until", ""); show("notice", text); };

  const post = async (what, body) => {
    const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...body, token: link[2] }) };
    const reply = await fetch(`api/waits/${link[1]}/${what}`, { ...sent, credentials: "omit", cache: "no-store", redirect: "error" });
    const told = await reply.json();
    if (reply.ok) return told;
    throw { ...told.error, status: reply.status, after: reply.headers.get("Retry-After") };
  };

  const refused = (error) => {
    if (error.code === "too_many_failures") return `Too many links that are not good were tried from your network. Try again in ${error.after} seconds.`;
    if (error.code === "token_unknown" || error.code === "wait_unknown") return "This link is not known here: it may have been cut off, or is too old." + ELSEWHERE;
    if (error.status) return `${error.message}.${error.hint ? ` ${error.hint}.` : ""}`;
    return "The daemon cannot be reached just now.";
  };

  const look = async () => {
    let seen;
    try {
      seen = await post("view", {});
    } catch (error) {
      stop(refused(error));
      if (!error.status || error.after) retry("Try again", look);
      return;
    }
    show("title", seen.title || "Answer an agent");
    if (seen.asked) {
      show("asks", KINDS[seen.asked.kind] ?? "A program asks");
      show("question", seen.asked.question);
      show("detail", seen.asked.detail);
      at("cut").hidden = !seen.asked.cut;
    }
    const label = seen.option?.label;
    if (seen.state === "consumed") stop(label ? `Answered: ${label}` : "Answered.");
    else if (seen.state !== "open") stop((OVER[seen.reason ?? seen.state] ?? "This link is not good any more.") + ELSEWHERE);
    else if (!label) stop("This token leaves the answer open, which this page does not." + ELSEWHERE);
    else {
      show("notice", "");
      retry(label, () => answer(seen.option));
      if (seen.expires_at) show("until", `Good until ${new Date(seen.expires_at).toLocaleString()}. Nothing is answered before you press the button.`);
    }
  };

  const answer = async (option) => {
    try {
      await post("answer", { option_id: option.option_id });
      stop(`Answered: ${option.label}`);
    } catch (error) {
      // What became of it is told by the link itself: it may have been answered, here or elsewhere.
      if (error.status === 409 || error.status === 410) return look();
      stop(refused(error) + (error.status ? "" : " It is not known whether the answer arrived; sent again, it counts once."));
      if (!error.status || error.after || error.status >= 500) retry(option.label, () => answer(option));
    }
  };

  const retry = (label, act) => {
    const button = at("confirm");
    button.textContent = plain(label);
    button.hidden = button.disabled = false;
    button.onclick = async () => { button.disabled = true; await act(); };
  };

  if (link) look();
  else stop("This link is not whole. Open it again from the message it came with." + ELSEWHERE);
})();
