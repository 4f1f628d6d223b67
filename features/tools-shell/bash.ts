/** The Bash tool: one command, waited for. */
import { realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Static } from '../../kernel/index.ts'
import { belongsToHome, type Tool, type ToolEnv, ToolRefusal, type ToolResult, type ToolUpdate } from '../tools/index.ts'
import { Command, type CommandEnd } from './command.ts'
import { bashParameters, DEFAULT_TIMEOUT_S } from './contract.ts'
import { commandEnv, type Hidden } from './environment.ts'
import { MAX_BYTES, Output, Pieces } from './output.ts'
import type { CommandRecord } from './record.ts'

type Arguments = Static<typeof bashParameters>

export interface BashPorts {
  readonly shell: string
  /** The server's home, absolute. */
  readonly home: string
  readonly newId: () => string
  /** Which variables commands do not get, by the configuration of this moment. */
  readonly hidden: () => Hidden
  readonly record: Pick<CommandRecord, 'begin' | 'started' | 'ended'>
  /** Remembers a running command for the pack's end; returns its release. */
  readonly own: (command: Command) => () => void
  readonly killGraceMs: number
  readonly drainMs: number
}

const description = `Runs a shell command and returns its output (stdout and stderr, merged).
- Each call is a new shell: directory changes and variables do not carry over. Use \`cwd\` or \`cd\` within the command.
- Standard input is closed: commands that ask questions fail. Pass flags such as -y instead.
- The command, and everything it started, is killed after \`timeout\` seconds (default 60, at most 300).
- A command that is put into the background (\`&\`) ends with the call: everything it left running is killed then.
- Chain with && where a step needs the one before, with ; where it does not. Put paths with blanks into quotes.
- Of output above 49000 characters the middle is cut and the whole kept in a file; above 16 MiB the command is killed. Escape sequences and
  the earlier states of progress bars are left out.
- Prefer Read, Grep, Glob, Write and Edit for files.`

/** Why a command was killed. */
type Killed = 'timeout' | 'output' | 'abort'

/** Between SIGTERM and SIGKILL when the session or the pack ends. */
export const CLOSE_GRACE_MS = 200
/** The same when the turn is aborted, at most: the runner gives a call up after 2 s, and nothing of it may be left by then. */
const ABORT_GRACE_MS = 1000

export function createBash(ports: BashPorts): Tool<typeof bashParameters> {
  return {
    name: 'Bash',
    description,
    parameters: bashParameters,
    source: 'builtin',
    async prepare(args: Arguments, env: ToolEnv) {
      if (args.command.includes('\0')) throw new ToolRefusal('The command contains a NUL character.')
      const cwd = directory(args.cwd, env.cwd)
      const found = await stat(cwd).catch(() => undefined) // absent is what the next line reports
      if (!found?.isDirectory()) throw new ToolRefusal(`The directory ${cwd} does not exist.`)
      const real = await realpath(cwd)
      const { readLine } = await import('./shell-line.ts') // the parser costs nothing before the first command
      const { subject, parts, uncertain, accesses } = await readLine(args.command, cwd, env.cwd, path =>
        belongsToHome(path, { home: ports.home, cwd: env.cwd, agent_dir: env.agent.dir })
      )
      return {
        description: `Running: ${args.command}`,
        display: {
          kind: 'command',
          command: args.command,
          cwd,
          ...(args.description === undefined ? {} : { description: args.description }),
          language: 'bash'
        },
        accesses: [{ kind: 'exclusive' as const }, ...accesses],
        approval_argument: subject,
        parts,
        uncertain,
        run: async (progress, signal) => {
          if ((await realpath(cwd).catch(() => undefined)) !== real)
            throw new ToolRefusal(`${cwd} leads elsewhere now. Make the call again.`)
          return run(args, cwd, env, progress, signal, ports)
        }
      }
    }
  }
}

function directory(given: string | undefined, cwd: string): string {
  if (given === undefined) return cwd
  return given === '~' || given.startsWith('~/') ? join(homedir(), given.slice(1)) : resolve(cwd, given)
}

async function run(
  args: Arguments,
  cwd: string,
  env: ToolEnv,
  progress: (update: ToolUpdate) => void,
  signal: AbortSignal,
  ports: BashPorts
): Promise<ToolResult> {
  const seconds = args.timeout ?? DEFAULT_TIMEOUT_S
  const output = new Output(join(env.agent.dir, 'tool-results', `${ports.newId()}-Bash.log`))
  const pieces = new Pieces(progress)
  let killed: Killed | undefined
  const mark = ports.record.begin()
  const command = new Command({
    shell: ports.shell,
    command: args.command,
    cwd,
    env: commandEnv(process.env, ports.hidden(), ports.shell, mark),
    mark,
    killGraceMs: ports.killGraceMs,
    drainMs: ports.drainMs,
    onText(kind, text) {
      if (output.bytes > MAX_BYTES) return
      output.add(kind, text)
      pieces.add(kind, text)
      if (output.bytes > MAX_BYTES) kill('output')
    }
  })
  const kill = (why: Killed) => {
    if (killed) return
    killed = why
    command.stop(why === 'output' ? 0 : why === 'abort' ? Math.min(ports.killGraceMs, ABORT_GRACE_MS) : undefined)
  }
  const onAbort = () => kill('abort')
  const timer = setTimeout(kill, seconds * 1000, 'timeout')
  const releases = [ports.own(command), () => ports.record.ended(mark)]
  if (command.pid !== undefined) void ports.record.started(mark, command.pid)
  try {
    releases.push(ownByAgent(env, command))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    const end = await command.ended
    pieces.flush()
    return result(end, killed, seconds, command.left, await output.finish())
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    for (const release of releases) release()
  }
}

/** A closing session takes its commands along and waits until they are gone. */
function ownByAgent(env: ToolEnv, command: Command): () => void {
  let over = false
  const release = env.agent.own(async () => {
    if (over) return
    command.stop(CLOSE_GRACE_MS)
    await command.ended
  })
  return () => {
    over = true
    void release()
  }
}

function result(
  end: CommandEnd,
  killed: Killed | undefined,
  seconds: number,
  left: boolean,
  output: { readonly text: string; readonly logPath?: string; readonly truncated: boolean }
): ToolResult {
  const verdict = verdictOf(end, killed, seconds)
  const lines = [output.text.replace(/\n$/, '')]
  if (output.truncated) lines.push(`The output was cut in the middle.${output.logPath ? ` The whole output is in ${output.logPath}` : ''}`)
  if (left && killed === undefined) lines.push('Processes of the command were still running in the background; they were ended with it.')
  if (verdict !== undefined) lines.push(verdict)
  const text = lines.filter(line => line !== '').join('\n')
  return { output: text, ...(verdict === undefined ? {} : { is_error: true }), ...(output.truncated ? { truncated: true } : {}) }
}

function verdictOf(end: CommandEnd, killed: Killed | undefined, seconds: number): string | undefined {
  if (killed === 'timeout') return `The command was killed after ${seconds} s (timeout).`
  if (killed === 'output') return 'The command was killed: it printed more than 16 MiB. Send long output to a file, or filter it.'
  if (killed === 'abort') return 'The command was killed: the call was aborted.'
  if (end.kind === 'failed') return `The command could not be started: ${end.error.message}`
  if (end.kind === 'signal') return `The command was ended by ${end.signal}.`
  return end.code === 0 ? undefined : `The command failed with exit code ${end.code}.`
}
