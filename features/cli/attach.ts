/** `svc-code attach`: follows a session, and sends what is typed, or the lines of a pipe, as prompts. */
import { Interrupted } from './ask.ts'
import type { Runner } from './commands.ts'
import { Conversation, ending } from './conversation.ts'
import { homeOf } from './deployment.ts'
import { neededServer } from './servers.ts'
import { ownerOf, sessionOf } from './session-id.ts'

/** Messages of the past that are shown at the beginning. */
const past = 12

export const attach: Runner = async ({ words: [given], flags }, io) => {
  const home = homeOf(flags, io.env)
  const first = await neededServer(home)
  const session = await sessionOf(first.client, given ?? '')
  const { client } = await ownerOf(home, first, session)
  if (client !== first.client) first.client.close()
  const json = flags.json ?? false
  const left = new AbortController()
  const interrupted = () => left.abort()
  const talk = new Conversation(client, io, { session_id: session.id, yes: flags.yes ?? false, json, past, interrupted })
  const off = io.onInterrupt(interrupted)
  const leave = new Promise<number>(resolve => left.signal.addEventListener('abort', () => resolve(0)))
  try {
    await talk.open()
    if (!json) io.err(`attached to ${session.id}; ${io.interactive ? 'Ctrl+C' : 'a signal'} leaves, what runs goes on\n`)
    const sent = prompts(talk, io.interactive && !json ? typed(talk, left.signal) : io.lines())
    const code = await Promise.race([leave, talk.lost, sent])
    talk.endLine()
    return code
  } finally {
    off()
    talk.close()
  }

  /** The terminal is asked again when the answer is over. */
  async function* typed(conversation: Conversation, signal: AbortSignal): AsyncGenerator<string> {
    while (!signal.aborted) {
      await conversation.idle()
      const text = await io.ask.text('you', signal).catch((error: unknown) => {
        if (error instanceof Interrupted) return undefined
        throw error
      })
      if (text === undefined) return
      yield text
    }
  }

  /** One after the other. Resolves to the exit code: who sits at the terminal has seen what failed. */
  async function prompts(conversation: Conversation, texts: AsyncIterable<string>): Promise<number> {
    let code = 0
    for await (const text of texts) {
      if (text.trim() === '') continue
      const problem = await outcomeOf(conversation, text).catch((error: Error) => `svc-code: ${error.message}`)
      conversation.endLine()
      if (problem === undefined) continue
      io.err(`${problem}\n`)
      if (!io.interactive) code = 1
    }
    return code
  }
}

/** Sends a prompt and waits for its end; undefined: it was completed. */
async function outcomeOf(conversation: Conversation, text: string): Promise<string | undefined> {
  const outcome = await conversation.outcome(await conversation.submit(text))
  return outcome.reason === 'completed' ? undefined : ending(outcome)
}
