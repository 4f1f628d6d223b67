/** A kernel with everything a conversation needs, and search. The model answers what it was told, in other words. */

import { submitPrompt } from '../../../features/prompts/index.ts'
import { type searchAll as Route, searchAll } from '../../../features/search/index.ts'
import search from '../../../features/search/pack.ts'
import { createSession } from '../../../features/sessions/index.ts'
import undo from '../../../features/undo/pack.ts'
import type { DataOf } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { type StartOptions, startAgent } from '../agent/start.ts'

export type Found = DataOf<typeof Route>

export async function start(t: TestContextLike, options: StartOptions = {}) {
  const llm = scriptedLlm(({ messages }) => {
    const texts = JSON.stringify(messages.filter(({ role }) => role === 'user'))
    return `the reply to ${[...texts.matchAll(/about (\w+)/g)].at(-1)?.[1] ?? 'that'}`
  })
  const scene = await startAgent(t, llm, { ...options, packs: [search, undo, ...(options.packs ?? [])] })
  const find = async (body: Record<string, unknown>): Promise<Found> => {
    const reply = await ask(body)
    if (reply.code !== 0) throw new Error(JSON.stringify(reply))
    return reply.data
  }
  const ask = (body: Record<string, unknown>) =>
    scene.call(searchAll, { body: { mode: 'terms', op: 'AND', sort: 'score', page_size: 20, ...body } as never })
  /** A turn from its prompt to its end. */
  const turn = async (text: string, session_id = scene.session_id) => {
    const { data } = await scene.call(submitPrompt, { params: { session_id }, body: { content: [{ type: 'text', text }] } as never })
    await scene.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId: string }).promptId === data.prompt_id)
  }
  const session = async (title = '') =>
    (await scene.call(createSession, { body: { title, metadata: { cwd: scene.cwd } } as never })).data.id
  return {
    ...scene,
    find,
    ask,
    turn,
    session,
    texts: async (body: Record<string, unknown>) => (await find(body)).items.map(({ snippet }) => snippet)
  }
}
