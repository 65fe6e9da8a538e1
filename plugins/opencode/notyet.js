// notyet plugin 6c2338e0d9e5a861: notyet replaces and removes this file only while it is not edited
// Runs the gates of your project when an agent of OpenCode stops, and sends it back if one fails.
// `notyet install opencode` wrote this file, and `notyet uninstall opencode` removes it.
// It runs inside OpenCode: whatever goes wrong here, the agent ends as it would without it.
import { spawn } from "node:child_process"

// The command of each event, for /bin/sh, and how many seconds it may take.
const HOOKS = {
  "Stop": {"command": "command -v notyet >/dev/null && exec notyet hook --host opencode --timeout 900 || echo '{\"systemMessage\": \"notyet: NOT CHECKED: the program notyet is not on your PATH; install it\"}'", "timeout": 900},
  "SubagentStop": {"command": "command -v notyet >/dev/null && exec notyet hook --host opencode --timeout 900 || echo '{\"systemMessage\": \"notyet: NOT CHECKED: the program notyet is not on your PATH; install it\"}'", "timeout": 900},
  "SessionStart": {"command": "command -v notyet >/dev/null && exec notyet hook --host opencode --timeout 30 || echo '{\"systemMessage\": \"notyet: NOT CHECKED: the program notyet is not on your PATH; install it\"}'", "timeout": 30},
  "SubagentStart": {"command": "command -v notyet >/dev/null && exec notyet hook --host opencode --timeout 30 || echo '{\"systemMessage\": \"notyet: NOT CHECKED: the program notyet is not on your PATH; install it\"}'", "timeout": 30}
}

const UNSEEN =
  "notyet: NOT CHECKED: OpenCode ended the turn without a text, so the agent could not be sent back"

// A file of the user and one of the project may both be loaded: one of them is enough.
const shared = (globalThis[Symbol.for("notyet.opencode")] ??= { folders: new Set(), answers: null })
const running = new Map() // session: the hook that is asked about it
process.on("exit", () => running.forEach((child) => end(child, "SIGTERM")))

export const Notyet = async ({ client, directory }) => {
  if (shared.folders.has(directory)) return {}
  shared.folders.add(directory)
  const answers = (shared.answers ??= watchAnswers())
  const turns = new Map() // session: the user's message that is being worked on
  const asked = new Map() // session: the message that was asked about last
  const answered = new Map() // session: the model's last message
  const held = new Set() // turns that were sent back

  const tell = async (words) => {
    if (process.argv[2] === "run") process.stderr.write(`${words}\n`)
    else await client.tui.showToast({ body: { message: words, variant: "warning", duration: 15000 } })
  }
  const guarded = (action) => async (...args) => {
    try {
      await action(...args)
    } catch (error) {
      const message = `notyet: NOT CHECKED: the plugin failed: ${error?.message ?? error}`
      await client.app.log({ body: { service: "notyet", level: "error", message } }).catch(() => {})
      await tell(message).catch(() => {})
    }
  }
  const about = async (sessionID) => {
    const session = (await client.session.get({ path: { id: sessionID } })).data
    let root = session
    while (root.parentID) root = (await client.session.get({ path: { id: root.parentID } })).data
    const ids = { session_id: root.id, agent_id: session.parentID && session.id }
    return { host: "opencode", host_version: session.version, ...ids, cwd: session.directory }
  }

  const started = async ({ sessionID }, { message, parts }) => {
    if (parts.some((part) => part.metadata?.notyet)) return // our own words
    const isNew = !turns.has(sessionID)
    turns.set(sessionID, message.id)
    if (!isNew) return
    const fields = await about(sessionID)
    const event = fields.agent_id ? "SubagentStart" : "SessionStart"
    const answer = await ask({ hook_event_name: event, ...fields, agent_type: message.agent })
    if (answer.systemMessage) await tell(answer.systemMessage)
  }

  const stopped = async ({ sessionID, messageID }, { text }) => {
    const { info, parts } = (await client.session.message({ path: { id: sessionID, messageID } })).data
    const answer = answers.get(sessionID)
    const isCurrent = answer?.asked >= info.time.created // else of a message before
    if (isCurrent && (await answer.callsTool)) return // a tool call follows the text
    if (info.summary || parts.some((part) => part.type === "tool")) return
    if (asked.get(sessionID) === messageID) return // an answer of several texts
    asked.set(sessionID, messageID)
    const fields = await about(sessionID)
    const turn = turns.get(sessionID) ?? info.parentID
    const verdict = await ask({
      hook_event_name: fields.agent_id ? "SubagentStop" : "Stop",
      ...fields,
      agent_type: info.agent,
      model: info.modelID,
      prompt_id: turn,
      stop_hook_active: held.has(turn),
      last_assistant_message: text,
    })
    if (verdict.systemMessage) await tell(verdict.systemMessage)
    if (verdict.decision !== "block" || !verdict.reason) return
    held.add(turn)
    // OpenCode goes on as long as the last message is a user's.
    const model = { providerID: info.providerID, modelID: info.modelID }
    const words = [{ type: "text", text: verdict.reason, metadata: { notyet: true } }]
    const body = { noReply: true, agent: info.agent, model, variant: info.variant, parts: words }
    const sent = await client.session.prompt({ path: { id: sessionID }, body })
    if (sent.error) throw new Error("OpenCode did not take the message")
  }

  // While a hook is asked, a session is idle only because its user interrupted it.
  const idle = async (sessionID) => {
    if (running.has(sessionID)) return end(running.get(sessionID), "SIGTERM")
    const last = answered.get(sessionID)
    if (!last?.finish || last.error || last.summary || asked.get(sessionID) === last.id) return
    asked.set(sessionID, last.id)
    await tell(UNSEEN)
  }

  return {
    "chat.message": guarded(started),
    "experimental.text.complete": guarded(stopped),
    event: guarded(async ({ event: { type, properties } }) => {
      const info = type === "message.updated" && properties.info
      if (info?.role === "assistant") answered.set(info.sessionID, info)
      if (type === "session.idle") await idle(properties.sessionID)
    }),
    dispose: async () => shared.folders.delete(directory),
  }
}

// Run the hook; return its answer. An interrupted hook has none.
function ask(payload) {
  const { command, timeout } = HOOKS[payload.hook_event_name] ?? { command: "", timeout: 10 }
  const session = payload.agent_id ?? payload.session_id
  return new Promise((resolve, reject) => {
    const stdio = ["pipe", "pipe", "ignore"]
    const child = spawn("/bin/sh", ["-c", command], { cwd: payload.cwd, detached: true, stdio })
    running.set(session, child)
    let out = ""
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text))
    const late = setTimeout(() => {
      end(child, "SIGTERM")
      setTimeout(() => end(child, "SIGKILL"), 5000).unref()
      reject(new Error(`no answer in ${timeout} s`))
    }, timeout * 1000)
    const done = (code, signal) => {
      clearTimeout(late)
      if (running.get(session) === child) running.delete(session)
      try {
        const isBroken = signal || (code && !out.trim())
        if (isBroken && !child.isEnded) throw new Error(`the hook ended with ${signal ?? code}`)
        resolve(out.trim() ? JSON.parse(out) : {})
      } catch (error) {
        reject(error)
      }
    }
    child.on("close", done)
    child.on("exit", (...how) => setTimeout(() => done(...how), 2000).unref()) // others hold stdout
    child.on("error", reject)
    child.stdin.on("error", () => {}) // it ended before it read all
    child.stdin.end(JSON.stringify(payload))
  })
}

function end(child, signal) {
  child.isEnded = true
  try {
    process.kill(-child.pid, signal)
  } catch {} // it has ended
}

// Return for each session whether the model's current answer calls a tool, known at its end.
// OpenCode tells of the end of a text before it knows whether a tool call follows, so this reads
// a copy of the stream from the model. It changes nothing, and keeps nothing.
function watchAnswers() {
  const answers = new Map()
  const fetch = globalThis.fetch
  const watched = async (...args) => {
    const asked = Date.now()
    const response = await fetch(...args)
    try {
      const headers = new Headers(args[1]?.headers)
      const session = headers.get("x-session-affinity") ?? headers.get("x-opencode-session")
      const isStream = response.headers.get("content-type")?.includes("event-stream")
      // Titles are asked for without tools.
      if (session && isStream && String(args[1].body).includes('"tools"'))
        answers.set(session, { asked, callsTool: callsTool(response.clone().body).catch(() => false) })
    } catch {} // then the parts of the message must do
    return response
  }
  globalThis.fetch = Object.assign(watched, fetch)
  return answers
}

const TOOL_CALL = /"type":\s*"(tool_use|function_call)"|"tool_calls":\s*\[\s*\{|"functionCall":\s*\{/

async function callsTool(stream) {
  const decoder = new TextDecoder()
  let text = ""
  let found = false
  for await (const bytes of stream) {
    text = text.slice(-100) + decoder.decode(bytes, { stream: true })
    found ||= TOOL_CALL.test(text)
  }
  return found
}
