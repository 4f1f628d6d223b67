/** The Bash tool: one command, waited for, or as a task beside the conversation. */
import { lookAt, realAt } from '../../kernel/index.ts'
import type { Tasks } from '../tasks/index.ts'
import { absolutePath, type Tool, type ToolEnv, ToolRefusal, type ToolResult, type ToolUpdate } from '../tools/index.ts'
import { type BackgroundSettings, runAsTask } from './as-task.ts'
import { type Arguments, CommandRun, type Line, type RunPorts, resultOf } from './command-run.ts'
import { bashParameters, DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S } from './contract.ts'

interface BashPorts extends RunPorts {
  /** The server's home, absolute. */
  readonly home: string
  /** Undefined: commands run in the foreground only. */
  readonly tasks: () => Tasks | undefined
  readonly background: () => BackgroundSettings
}

const common = `Runs a shell command and returns its output (stdout and stderr, merged).
- Each call is a new shell: directory changes and variables do not carry over. Use \`cwd\` or \`cd\` within the command.
- Standard input is closed: commands that ask questions fail. Pass flags such as -y instead.
- A command that is put into the background by the shell (\`&\`) ends with the call: everything it left running is killed then.
- Chain with && where a step needs the one before, with ; where it does not. Put paths with blanks into quotes.
- Of output above 49000 characters the middle is cut and the whole kept in a file; above 16 MiB the command is killed. Escape sequences and
  the earlier states of progress bars are left out.
- Prefer Read, Grep, Glob, Write and Edit for files.`

const alone = `${common}
- The command, and everything it started, is killed after \`timeout\` seconds (default 60, at most 300).`

const withTasks = `${common}
- A command that takes longer than \`timeout\` seconds (default 60, at most 300) goes on in the background.
- With \`run_in_background\` the call answers at once with a task id, and you get a message when the command ends. Use it for servers,
  watchers, long builds and tests while there is other work; then \`description\` is required. Do not sleep or poll to wait for it.
  TaskOutput shows what it printed so far, TaskStop ends it. \`timeout\` may be up to 86400 there; \`disable_timeout\` means no limit.`

/** Between SIGTERM and SIGKILL when the session or the pack ends. */
export const CLOSE_GRACE_MS = 200
/** The same when the turn is aborted, at most: the runner gives a call up after 2 s, and nothing of it may be left by then. */
const ABORT_GRACE_MS = 1000

let reading: Promise<typeof import('./rules/read-line.ts')> | undefined

export function createBash(ports: BashPorts): Tool<typeof bashParameters> {
  return {
    name: 'Bash',
    get description() {
      return ports.tasks() ? withTasks : alone
    },
    parameters: bashParameters,
    source: 'builtin',
    async prepare(args: Arguments, env: ToolEnv) {
      if (args.command.includes('\0')) throw new ToolRefusal('The command contains a NUL character.')
      checkTime(args, env, ports.tasks())
      const cwd = args.cwd === undefined ? env.cwd : absolutePath(args.cwd, env.cwd)
      const real = (await lookAt(cwd))?.isDirectory() ? await realAt(cwd) : undefined
      if (real === undefined) throw new ToolRefusal(`The directory ${cwd} does not exist.`)
      void ports.pipes?.ready() // beside the reading of the first command, so that nobody waits for it
      reading ??= import('./rules/read-line.ts') // with the first command; an import walks through the loader each time
      const { readLine } = await reading
      const around = { home: ports.home, cwd: env.cwd, agent_dir: env.agent.dir }
      const read = await readLine(args.command, { shell: ports.shell, cwd, around })
      return {
        description: `Running: ${args.command}`,
        display: {
          kind: 'command',
          command: args.command,
          cwd,
          ...(args.description === undefined ? {} : { description: args.description }),
          language: 'bash'
        },
        ...read,
        accesses: [{ kind: 'exclusive' }, ...read.accesses],
        run: async (progress, signal, told) => {
          await ports.pipes?.ready()
          if ((await realAt(cwd)) !== real) throw new ToolRefusal(`${cwd} leads elsewhere now. Make the call again.`)
          const tasks = ports.tasks()
          checkTime(args, env, tasks) // an approval may have taken its time
          signal.throwIfAborted() // nothing of an aborted call begins, in the background either
          if (ports.over?.()) throw new ToolRefusal('No more commands can be run here.')
          const line = { args, cwd, env, told }
          if (!tasks) return runAlone(line, ports, progress, signal)
          return runAsTask(line, ports, { tasks, settings: ports.background() }, progress, signal)
        }
      }
    }
  }
}

/** What the schema cannot say: what goes together. */
function checkTime({ timeout, description, run_in_background, disable_timeout }: Arguments, { agent }: ToolEnv, tasks: Tasks | undefined) {
  if (!run_in_background) {
    if (disable_timeout) throw new ToolRefusal('disable_timeout is for run_in_background only.')
    if (timeout === undefined || timeout <= MAX_TIMEOUT_S) return
    throw new ToolRefusal(`timeout: at most ${MAX_TIMEOUT_S} s, unless the command runs in the background (run_in_background).`)
  }
  const refusal = tasks ? tasks.refusal(agent) : 'Nothing can run in the background here. Make the call without run_in_background.'
  if (refusal !== undefined) throw new ToolRefusal(refusal)
  if (!description?.trim()) throw new ToolRefusal('description: is required with run_in_background.')
  if (disable_timeout && timeout !== undefined) throw new ToolRefusal('timeout and disable_timeout exclude each other.')
}

/** Without tasks: waited for, and nothing else. */
async function runAlone(line: Line, ports: RunPorts, progress: (update: ToolUpdate) => void, signal: AbortSignal): Promise<ToolResult> {
  const seconds = line.args.timeout ?? DEFAULT_TIMEOUT_S
  const run = new CommandRun(line, ports, progress)
  const onAbort = () => run.kill('abort', Math.min(ports.killGraceMs, ABORT_GRACE_MS))
  const timer = setTimeout(() => run.kill('timeout'), seconds * 1000)
  let release = () => {}
  try {
    release = ownByAgent(line.env, run)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    return resultOf(await run.ended, seconds)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    release()
  }
}

/** A closing session takes its commands along and waits until they are gone. */
function ownByAgent({ agent }: ToolEnv, { command, ended }: CommandRun): () => void {
  let over = false
  const release = agent.own(async () => {
    if (over) return
    command.stop(CLOSE_GRACE_MS)
    await ended
  })
  return () => {
    over = true
    void release()
  }
}
