/**
 * The main job in one go, offline: full server, workspace, session, prompt, streamed answer, an approval, the tool's result,
 * a restart, and the history that is still there. `--yes` approves by itself (scripts, CI).
 */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stdin, stdout } from 'node:process'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import type { Client, EventFrame } from './client.ts'
import { startServer } from './server.ts'

const { values } = parseArgs({ options: { yes: { type: 'boolean', short: 'y', default: false }, prompt: { type: 'string' } } })
const prompt = values.prompt ?? 'list the files then read teas.txt then run sh longest.sh'
const say = (text: string) => {
  stdout.write(text)
}

async function demo(): Promise<void> {
  const place = await mkdtemp(join(tmpdir(), 'svc-code-demo-'))
  try {
    await cp(new URL('../../../examples/demo/project', import.meta.url), join(place, 'tea-timer'), { recursive: true })
    const first = await startServer(join(place, 'home'))
    say(`1. The server runs on ${first.url} (home ${join(place, 'home')}).\n`)
    const workspace = await first.client.call('POST', '/workspaces', { root: join(place, 'tea-timer') })
    const session = await first.client.call('POST', '/sessions', { workspace_id: workspace.id, title: 'Tea' })
    say(`2. Workspace ${workspace.name}, session ${session.id}.\n3. You: ${prompt}\n\n`)
    await converse(first.client, session.id)
    await first.stop()
    say('\n4. The server has stopped. It starts again on the same home.\n')
    const second = await startServer(join(place, 'home'))
    const { items } = await second.client.call('GET', `/sessions/${session.id}/messages`)
    say(`5. The session still holds ${items.length} messages, oldest first:\n\n`)
    for (const { role, metadata, content } of items.reverse()) {
      const who = metadata?.origin?.kind === 'injection' ? 'reminder' : role // what the server adds for the model stands in the place of a user
      say(`   ${who.padEnd(9)} ${summary(content)}\n`)
    }
    await second.stop()
    say('\nDone. Start your own server with: npm start\n')
  } finally {
    await rm(place, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Sends the prompt, prints what streams in, answers approvals, and returns when the prompt has completed. */
async function converse(client: Client, session_id: string): Promise<void> {
  let close: () => void = () => undefined
  await new Promise<void>((resolve, reject) => {
    const onEvent = (event: EventFrame) => {
      show(event)
      if (event.type === 'event.approval.requested') answer(client, session_id, event.payload).catch(reject)
      if (event.type === 'prompt.completed' || event.type === 'prompt.aborted') resolve()
    }
    client
      .follow(session_id, onEvent)
      .then(stop => {
        close = stop
        return client.call('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: prompt }] })
      })
      .catch(reject)
  })
  close()
}

function show({ type, payload }: EventFrame): void {
  if (type === 'turn.step.started') say('   Agent: ')
  if (type === 'assistant.delta') say(payload.delta)
  if (type === 'tool.call.started') say(`\n   [tool] ${payload.name} ${JSON.stringify(payload.args)}\n`)
  if (type === 'tool.result') say(`${indent(String(payload.output))}\n`)
  if (type === 'turn.ended') say(`\n   (turn ${payload.reason} after ${payload.durationMs} ms)\n`)
  if (type === 'error') say(`\n   error: ${payload.message}\n`)
}

async function answer(client: Client, session_id: string, request: { approval_id: string; action: string }): Promise<void> {
  say(`\n   The agent asks: ${request.action}\n`)
  let approved = values.yes
  if (approved) say('   Approved by --yes.')
  else if (!stdin.isTTY) {
    approved = true // nobody could answer, and the script is the demo's own
    say('   Nobody is at the terminal: approved.')
  } else {
    const terminal = createInterface({ input: stdin, output: stdout })
    approved = /^y/i.test((await terminal.question('   Allow this? [y/N] ')).trim())
    terminal.close()
  }
  await client.call('POST', `/sessions/${session_id}/approvals/${request.approval_id}`, { decision: approved ? 'approved' : 'rejected' })
}

function indent(text: string): string {
  const lines = text.split('\n')
  const shown = lines.slice(0, 8).map(line => `          ${line}`)
  if (lines.length > 8) shown.push(`          ... ${lines.length - 8} more lines`)
  return shown.join('\n')
}

function summary(content: readonly Record<string, unknown>[]): string {
  const text = content
    .map(part => {
      if (part.type === 'tool_use') return `calls ${part.tool_name} ${JSON.stringify(part.input)}`
      if (part.type === 'tool_result') return `result: ${String(part.output)}`
      return String(part.text ?? part.thinking ?? `[${part.type}]`)
    })
    .join(' | ')
    .replace(/<\/?system-reminder>/g, '')
    .replace(/\s+/g, ' ')
    .trim()
  return text.length > 100 ? `${text.slice(0, 97)}...` : text
}

await demo()
