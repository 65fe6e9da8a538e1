// Runs the gates of your project when an agent of Pi stops, and sends it back if one fails.
// `notyet install pi` wrote this file, and `notyet uninstall pi` removes it.
// It runs inside Pi: whatever goes wrong here, the agent ends as it would without it.
import { spawn } from "node:child_process"

// The command of each event, for /bin/sh, and how many seconds it may take.
const HOOKS: Record<string, { command: string; timeout: number }> = {}

export default function (pi: any) {
  // A file of the project and one of the user may both be loaded: the last one, the user's, asks.
  const key = Symbol.for("notyet.pi")
  const own = {}
  const isOwner = () => (globalThis as any)[key] === own
  let turn = "" // the user's message that is being worked on
  let isHeld = false

  const tell = (ctx: any, words: string) => {
    if (ctx.hasUI) ctx.ui.notify(words, "warning")
    else process.stderr.write(`${words}\n`)
  }
  const guarded = (action: any) => async (event: any, ctx: any) => {
    try {
      await action(event, ctx)
    } catch (error: any) {
      tell(ctx, `notyet: NOT CHECKED: the extension failed: ${error?.message ?? error}`)
    }
  }
  const about = (ctx: any) => ({
    host: "pi",
    session_id: ctx.sessionManager.getSessionId(),
    transcript_path: ctx.sessionManager.getSessionFile(),
    cwd: ctx.cwd,
    model: ctx.model?.id,
  })

  const started = async (event: any, ctx: any) => {
    ;(globalThis as any)[key] = own
    const payload = { hook_event_name: "SessionStart", ...about(ctx), source: event.reason }
    const answer = await ask(payload, undefined)
    if (answer.systemMessage) tell(ctx, answer.systemMessage)
  }

  const stopped = async (event: any, ctx: any) => {
    const isEnd = ["stop", "length"].includes(event.message.stopReason) // no error, no interrupt
    if (!isOwner() || event.toolResults.length || !isEnd) return
    turn ||= ctx.sessionManager.getBranch().findLast(isOfUser)?.id ?? ""
    const said = event.message.content.filter((part: any) => part.type === "text")
    const payload = {
      hook_event_name: "Stop",
      ...about(ctx),
      prompt_id: turn,
      stop_hook_active: isHeld,
      last_assistant_message: said.map((part: any) => part.text).join("\n"),
    }
    const answer = await ask(payload, ctx.signal)
    if (answer.systemMessage) tell(ctx, answer.systemMessage)
    if (answer.decision !== "block" || !answer.reason || ctx.signal?.aborted) return
    isHeld = true
    await pi.sendUserMessage(answer.reason, { deliverAs: "followUp" })
  }

  pi.on("session_start", guarded(started))
  pi.on("before_agent_start", () => {
    turn = ""
    isHeld = false
  })
  pi.on("turn_end", guarded(stopped))
}

const isOfUser = (entry: any) => entry.type === "message" && entry.message.role === "user"

// Run the hook; return its answer. An interrupted hook has none.
function ask(payload: any, signal: AbortSignal | undefined): Promise<any> {
  const { command, timeout } = HOOKS[payload.hook_event_name] ?? { command: "", timeout: 10 }
  return new Promise((resolve, reject) => {
    const stdio: any = ["pipe", "pipe", "ignore"]
    const child: any = spawn("/bin/sh", ["-c", command], { cwd: payload.cwd, detached: true, stdio })
    const interrupt = () => end(child, "SIGTERM")
    process.on("exit", interrupt)
    signal?.addEventListener("abort", interrupt)
    let out = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text))
    const late = setTimeout(() => {
      interrupt()
      setTimeout(() => end(child, "SIGKILL"), 5000).unref()
      reject(new Error(`no answer in ${timeout} s`))
    }, timeout * 1000)
    const done = (code: number | null, how: string | null) => {
      clearTimeout(late)
      process.off("exit", interrupt)
      signal?.removeEventListener("abort", interrupt)
      try {
        const isBroken = how || (code && !out.trim())
        if (isBroken && !child.isEnded) throw new Error(`the hook ended with ${how ?? code}`)
        resolve(out.trim() ? JSON.parse(out) : {})
      } catch (error) {
        reject(error)
      }
    }
    child.on("close", done)
    child.on("exit", (code: any, how: any) => setTimeout(() => done(code, how), 2000).unref()) // others hold stdout
    child.on("error", reject)
    child.stdin.on("error", () => {}) // it ended before it read all
    child.stdin.end(JSON.stringify(payload))
  })
}

function end(child: any, signal: any) {
  child.isEnded = true
  try {
    process.kill(-child.pid, signal)
  } catch {} // it has ended
}
