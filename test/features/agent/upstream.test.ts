import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import agent from '../../../features/agent/pack.ts'
import config from '../../../features/config/pack.ts'
import history from '../../../features/history/pack.ts'
import instructions from '../../../features/instructions/pack.ts'
import llm from '../../../features/llm/pack.ts'
import chat from '../../../features/llm-chat/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import messages from '../../../features/messages/pack.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import prompts from '../../../features/prompts/pack.ts'
import { createSession } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { modelConfig } from '../../helpers/model-config.ts'
import { freshDir } from '../../helpers/temp.ts'
import { echoRunner } from './start.ts'

test('a conversation over HTTP: thinking, text, a tool call, a retry, and the next request carries the history', async t => {
  const upstream = await fakeUpstream(t, [
    [{ status: 503, body: { error: { message: 'busy' } } }],
    [{ thinking: 'let me see' }, { text: 'Looking. ', chunks: 3 }, { tool: { name: 'Echo', args: { x: 1 } } }],
    [{ text: 'It says hello.' }]
  ])
  const home = await freshDir()
  const cwd = join(home, 'project')
  await mkdir(cwd)
  await writeFile(join(cwd, 'AGENTS.md'), 'Always say please.')
  await writeFile(join(home, 'config.toml'), modelConfig(upstream.url))
  const kernel = await startTestKernel(t, {
    home,
    packs: [config, workspaces, sessions, history, llm, chat, echoRunner(() => 'hello'), agent, instructions, prompts, messages],
    config: { agent: { retry_base_ms: 1 } }
  })
  const { id: session_id } = (await kernel.call(createSession, { body: { metadata: { cwd } } })).data

  const prompt = await kernel.call(submitPrompt, {
    params: { session_id },
    body: { content: [{ type: 'text', text: 'what does it say?' }] }
  })
  assert.equal(prompt.code, 0, prompt.msg)
  await kernel.waitFor(event => event.type === 'prompt.completed')

  const roles = ((upstream.requests[2]?.body.messages ?? []) as { role: string }[]).map(message => message.role)
  assert.deepEqual(roles, ['system', 'user', 'user', 'assistant', 'tool'])
  assert.match(JSON.stringify(upstream.requests[0]?.body.messages), /Always say please/)
  assert.equal(kernel.events.filter(event => event.type === 'turn.step.retrying').length, 1)
  const { items } = (await kernel.call(listMessages, { params: { session_id } })).data
  assert.deepEqual(
    items.map(item => item.content.map(part => part.type)),
    [['text'], ['tool_result'], ['thinking', 'text', 'tool_use'], ['text'], ['text']]
  )
  assert.ok(!JSON.stringify(kernel.events).includes('secret-key'))
})
