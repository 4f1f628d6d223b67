/** `svc-code attach`: follows a session, and sends what is typed as prompts. */
import { Interrupted } from './ask.ts'
import type { Runner } from './commands.ts'
import { Conversation } from './conversation.ts'
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
  const leave = new Promise<void>(resolve => left.signal.addEventListener('abort', () => resolve()))
  try {
    await talk.open()
    if (!json) io.err(`attached to ${session.id}; ${io.interactive ? 'Ctrl+C' : 'a signal'} leaves, what runs goes on\n`)
    await Promise.race([leave, talk.lost, ...(io.interactive && !json ? [prompts(talk, left)] : [])])
    talk.endLine()
    return 0
  } finally {
    off()
    talk.close()
  }

  /** One after the other: the terminal is asked again when the answer is over. */
  async function prompts(conversation: Conversation, { signal }: AbortController): Promise<void> {
    while (!signal.aborted) {
      await conversation.idle()
      const text = await io.ask.text('you', signal).catch((error: unknown) => {
        if (error instanceof Interrupted) return undefined
        throw error
      })
      if (text === undefined) return
      if (text.trim() === '') continue
      const id = await conversation.submit(text).catch((error: Error) => {
        io.err(`svc-code: ${error.message}\n`)
        return undefined
      })
      if (id === undefined) continue
      const { reason, error } = await conversation.outcome(id)
      conversation.endLine()
      if (reason !== 'completed') io.err(`the turn was ${reason}${error ? `: ${error}` : ''}\n`)
    }
  }
}
