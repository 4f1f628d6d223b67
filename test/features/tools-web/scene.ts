/** A model that calls the web tools, and a small web on this machine. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Config } from '../../../features/config/index.ts'
import { ToolAuthority } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import toolsWeb from '../../../features/tools-web/pack.ts'
import type { Pack } from '../../../kernel/index.ts'
import { stub, type TestContextLike } from '../../../kernel/testing.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { startAgent } from '../agent/start.ts'

export interface Result {
  readonly text: string
  readonly failed: boolean
}

export interface WebOptions {
  /** The section `services`. */
  readonly services?: Readonly<Record<string, unknown>>
  readonly options?: Readonly<Record<string, unknown>>
  readonly packs?: readonly Pack[]
}

/** Results of these calls, in one response. */
export async function callTools(
  t: TestContextLike,
  calls: readonly { readonly name: string; readonly args: object }[],
  { services = {}, options = {}, packs = [] }: WebOptions = {}
): Promise<{ results: Result[]; tools: string[]; events: { type: string; payload: unknown }[] }> {
  const llm = scriptedLlm(toolCalls(...calls.map((call, at) => ({ id: `c${at}`, ...call }))), 'done')
  const config = stub(Config, {
    get: (section => (section.name === 'services' ? services : section.default)) as Config['get'],
    onChange: () => () => undefined
  })
  const always = stub(ToolAuthority, { permit: async () => ({ kind: 'run' }), readable: async () => () => true })
  const agent = await startAgent(t, llm, {
    packs: [config, tools, always, ...packs, toolsWeb],
    config: { 'tools-web': { allow_addresses: ['127.0.0.1'], ...options } }
  })
  await agent.prompt('go')
  await agent.settled(1)
  const results = (llm.requests[1]?.messages ?? []).flatMap(message =>
    message.role === 'tool'
      ? [{ text: message.content.map(part => (part.type === 'text' ? part.text : '')).join(''), failed: message.is_error }]
      : []
  )
  return { results, tools: llm.requests[0]?.tools.map(({ name }) => name) ?? [], events: agent.events }
}

export const fetchAll = async (t: TestContextLike, urls: readonly string[], more: WebOptions = {}): Promise<Result[]> =>
  (
    await callTools(
      t,
      urls.map(url => ({ name: 'FetchURL', args: { url } })),
      more
    )
  ).results

/** A server on 127.0.0.1. */
export async function site(t: TestContextLike, answer: (req: IncomingMessage, res: ServerResponse, body: string) => void): Promise<string> {
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => answer(req, res, Buffer.concat(chunks).toString()))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
