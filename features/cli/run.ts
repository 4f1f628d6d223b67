/** `svc-code run`: one prompt, its answer as it comes, and an exit code that tells how it ended. */
import { resolve } from 'node:path'
import { ApiError, unwrap } from '../../client/index.ts'
import { CommandError } from './command-error.ts'
import type { CommandLine, Runner } from './commands.ts'
import { Conversation, ending, type Outcome } from './conversation.ts'
import { demoModel, homeOf } from './deployment.ts'
import type { FlagName, FlagValues } from './flags.ts'
import type { Io } from './io.ts'
import { UsageError } from './options.ts'
import { type Reached, withServer } from './servers.ts'
import { ownerOf, sessionOf } from './session-id.ts'

/** See `svc-code run --help`. */
const exitCodes: Readonly<Record<Outcome['reason'], number>> = { completed: 0, failed: 1, blocked: 3, cancelled: 130 }
const unaskedCode = 4

/** What only the start of a server can heed. */
const startFlags: readonly FlagName[] = ['demo', 'offline', 'log-level', 'pack', 'disable', 'require']

export const run: Runner = async (line, io) => {
  const { words, flags } = line
  if (words.length === 0 && io.interactive) throw new UsageError('[prompt] is missing: give it as words, or on the standard input.')
  const text = words.length === 0 || (words.length === 1 && words[0] === '-') ? (await io.input()).trim() : words.join(' ')
  if (text === '') throw new UsageError('the prompt is empty.')
  const use = async (server: Reached) => {
    if (server.instance !== undefined) await assertHeeded(server, flags, homeOf(flags, io.env))
    return await converse(server, text, line, io)
  }
  return await withServer(flags, io, use, { visible: true, outbound: true })
}

/** Throws for what a server that runs already cannot heed; one with the demo model does what `--demo` asks for. */
async function assertHeeded({ client: { rest } }: Reached, flags: FlagValues, home: string): Promise<void> {
  const late = startFlags.filter(name => flags[name] !== undefined)
  if (late.length === 0) return
  const { items } = await unwrap(rest.GET('/api/v1/models'))
  const isDemo = items.some(({ model }) => model === demoModel)
  const odd = late.find(name => name !== 'demo' || !isDemo)
  if (odd !== undefined)
    throw new CommandError(`a server runs on ${home} already, and --${odd} belongs to the start of one; svc-code stop ends it`)
}

async function converse(first: Reached, text: string, { flags }: CommandLine, io: Io): Promise<number> {
  const { session_id, server } = await place(first, { flags }, io)
  const json = flags.json ?? false
  let interrupts = 0
  let abort: () => void = () => undefined
  const interrupted = () => {
    interrupts++
    if (interrupts === 1) abort()
    else process.exit(130)
  }
  const talk = new Conversation(server.client, io, { session_id, yes: flags.yes ?? false, json, interrupted })
  const off = io.onInterrupt(interrupted)
  try {
    await talk.open()
    const prompt_id = await talk.submit(text, flags.model ?? (flags.demo ? demoModel : undefined)).catch(async (error: unknown) => {
      if (flags.session === undefined && isRefusal(error)) await discard(server, session_id)
      throw error
    })
    abort = () => void talk.abort(prompt_id).catch((error: unknown) => io.err(`svc-code: ${(error as Error).message}\n`))
    if (interrupts > 0) abort()
    const outcome = await talk.outcome(prompt_id)
    talk.endLine()
    const code = outcome.reason === 'completed' && talk.unasked ? unaskedCode : exitCodes[outcome.reason]
    if (json) io.out(`${JSON.stringify({ type: 'outcome', session_id, ...outcome, exit_code: code })}\n`)
    else {
      if (outcome.reason !== 'completed') io.err(`svc-code: ${ending(outcome)}\n`)
      io.err(`session ${session_id}\n`)
    }
    return code
  } finally {
    off()
    talk.close()
  }
}

/** The server has answered, so nobody works on the prompt. */
const isRefusal = (error: unknown) => error instanceof CommandError || (error instanceof ApiError && error.code > 0)

/** A session that was made for a prompt which nobody took would stay as an empty one. */
async function discard({ client: { rest } }: Reached, session_id: string): Promise<void> {
  await rest.DELETE('/api/v1/sessions/{session_id}', { params: { path: { session_id } } }).catch(() => undefined) // the refusal is what counts
}

/** The session of the prompt, and the server that has it. */
async function place(first: Reached, { flags }: Pick<CommandLine, 'flags'>, { env }: Io): Promise<{ session_id: string; server: Reached }> {
  if (flags.session === undefined) {
    const body = { metadata: { cwd: resolve(flags.cwd ?? process.cwd()) } }
    return { session_id: (await unwrap(first.client.rest.POST('/api/v1/sessions', { body }))).id, server: first }
  }
  if (flags.cwd !== undefined) throw new UsageError('--cwd belongs to a new session, --session to one that is there.')
  const session = await sessionOf(first.client, flags.session)
  return { session_id: session.id, server: await ownerOf(homeOf(flags, env), first, session) }
}
