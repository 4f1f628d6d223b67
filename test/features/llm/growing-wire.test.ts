/** Requests of a conversation that grows: what was encoded before is taken over, and nobody can tell. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallIds, holdsThinking, type LlmContent, type LlmMessage, type LlmRequest, ResponseIds } from '../../../features/llm/index.ts'
import { jsonBody } from '../../../features/llm/json-body.ts'
import { compatChat, svc } from '../../../features/llm-chat/dialect.ts'
import { encode as encodeChat } from '../../../features/llm-chat/encode.ts'
import { encode as encodeGenai } from '../../../features/llm-genai/encode.ts'
import { encode as encodeMessages } from '../../../features/llm-messages/encode.ts'
import { encode as encodeResponses } from '../../../features/llm-responses/encode.ts'
import { llmRequest, toolCall } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'
import { randomSource } from '../../helpers/random.ts'

const wires: Readonly<Record<string, (request: LlmRequest) => Record<string, unknown>>> = {
  'plain chat': request => encodeChat(request, compatChat, 'reasoning'),
  'chat with extensions': request => encodeChat(request, svc, svc.reasoning_key),
  messages: request => encodeMessages(request).body,
  responses: encodeResponses,
  genai: encodeGenai
}

/** Choices that a seed repeats. */
function choices(seed: number) {
  const next = randomSource(seed)
  const below = (count: number) => Math.floor(next() * count)
  return { below, pick: <T>(of: readonly T[]): T => of[below(of.length)] as T } // there is one at every place
}

const image = { type: 'image', media_type: 'image/png', data: 'QUJD'.repeat(17_000) } as const

/** Steps of a conversation as turns make them, and as they do not: ids that collide, answers with nothing in them, orphans. */
function grow(random: ReturnType<typeof choices>, messages: LlmMessage[], n: number): void {
  const thought: LlmContent = { type: 'thinking', text: `thought ${n}`, signature: random.pick(['sig', 'redacted:x', '']) }
  const id = random.pick([`call_${n}`, `call:${n % 5}`, `call_${n % 5}`])
  const step = random.below(6)
  if (step === 0) messages.push({ role: 'user', content: [{ type: 'text', text: random.pick([`say ${n}`, '  ', 'half \ud83d']) }] })
  else if (step === 1)
    messages.push({
      role: 'assistant',
      content: [...(random.below(2) ? [thought] : []), { type: 'text', text: random.pick([`${n}`, ' ']) }]
    })
  else {
    messages.push({ role: 'assistant', content: [...(random.below(3) ? [] : [thought]), toolCall(id), toolCall(`${id}b`)] })
    for (const tool_call_id of [id, `${id}b`])
      messages.push({
        role: 'tool',
        tool_call_id,
        name: 'Read',
        content: [{ type: 'text', text: `result ${n}` }, ...(random.below(20) ? [] : [image])],
        is_error: false
      })
  }
}

for (const [name, encode] of Object.entries(wires)) {
  test(`${name}: a request that goes on from another is the one that would be made from nothing`, async () => {
    const random = choices(name.length)
    let messages: LlmMessage[] = [{ role: 'user', content: [{ type: 'text', text: 'begin' }] }]
    for (let n = 0; n < 60; n++) {
      grow(random, messages, n)
      if (random.below(12) === 0) messages = messages.slice(0, 1 + random.below(messages.length))
      const request = llmRequest(resolvedModel({ name: random.pick(['m', 'm', 'm', 'claude-sonnet-4-5', 'gemini-3-pro']) }), {
        messages: [...messages],
        system: random.pick(['be kind', 'be kind', 'be brief']),
        effort: random.pick(['', 'on', 'high']),
        ...(random.below(6) ? {} : { replayed_thinking: random.pick(['turn', 'none'] as const) })
      })
      const fresh = () => encode(structuredClone(request))
      const body = encode(request)

      assert.deepEqual(body, fresh())
      assert.equal(Buffer.concat(await jsonBody(body)).toString(), Buffer.concat(await jsonBody(fresh())).toString())
    }
  })
}

test('two requests of one conversation at a time do not disturb each other, and bytes that were given out stay as they are', async () => {
  const all = Array.from(
    { length: 400 },
    (_, n): LlmMessage => ({ role: n % 2 ? 'assistant' : 'user', content: [{ type: 'text', text: `${n}` }] })
  )
  const bodyOf = (count: number) => encodeChat(llmRequest(resolvedModel({}), { messages: all.slice(0, count) }), compatChat, undefined)
  const asText = (count: number) => JSON.stringify(bodyOf(count))
  for (const count of [100, 200, 300]) await jsonBody(bodyOf(count))

  const counts = [400, 350, 120, 400, 260]
  const written = await Promise.all(counts.map(count => jsonBody(bodyOf(count))))

  assert.deepEqual(
    written.map(pieces => Buffer.concat(pieces).toString()),
    counts.map(asText)
  )
})

test('what a step adds to a long conversation is all that is encoded', async () => {
  let read = 0
  const counted = (n: number): LlmMessage => ({
    role: n % 2 ? 'assistant' : 'user',
    get content() {
      read++
      return [{ type: 'text' as const, text: `${n}` }]
    }
  })
  const messages: LlmMessage[] = []
  const reads: number[] = []
  for (let n = 0; n < 2000; n += 2) {
    messages.push(counted(n), counted(n + 1))
    const before = read
    encodeChat(llmRequest(resolvedModel({}), { messages: [...messages] }), compatChat, undefined)
    reads.push(read - before)
  }

  assert.ok(
    Math.max(...reads.slice(-100)) <= 2 * Math.max(...reads.slice(1, 100)),
    `${reads.at(1)} at the beginning, ${reads.at(-1)} at the end`
  )
})

test('ids of calls are brought to the alphabet of the wires and stay different; those of one answer are given once', () => {
  const ids = new CallIds()
  const long = 'x'.repeat(70)
  const made = ['a_b', 'a.b', 'a b', '', long, `${long}y`].map(id => ids.of(id))
  assert.equal(made[0], 'a_b')
  assert.equal(new Set(made).size, made.length)
  for (const id of made) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/)
  assert.equal(ids.of('a.b'), made[1])

  let n = 0
  const given = new ResponseIds(() => `made_${++n}`)
  assert.deepEqual(
    ['a', 'a', '', 'b'].map(id => given.take(id)),
    ['a', 'made_1', 'made_2', 'b']
  )
})

test('another form of the same messages is encoded anew; thinking that was taken back is not there any more', () => {
  const ask: LlmMessage = { role: 'user', content: [{ type: 'text', text: 'why?' }] }
  const answer: LlmMessage = { role: 'assistant', content: [{ type: 'thinking', text: 'hm' }, toolCall('a')] }
  const result: LlmMessage = { role: 'tool', tool_call_id: 'a', name: 'Read', content: [], is_error: false }
  const last: LlmMessage = { role: 'assistant', content: [toolCall('b')] }
  const request = llmRequest(resolvedModel(), { messages: [ask, answer, result, last] })
  const sent = [undefined, 'reasoning', undefined].map(key => JSON.stringify(encodeChat(request, compatChat, key).messages).includes('hm'))
  assert.deepEqual(sent, [false, true, false])

  assert.equal(holdsThinking(request.messages), true)
  assert.equal(holdsThinking([ask, { role: 'assistant', content: [{ type: 'text', text: 'so' }] }]), false)
})
