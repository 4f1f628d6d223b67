/** A conversation with uploads and media, a model that sees what the test says, and tools that always may run. */
import { type UploadObject, uploadFile } from '../../../features/files/index.ts'
import files from '../../../features/files/pack.ts'
import type { LlmContent, LlmMessage } from '../../../features/llm/index.ts'
import media from '../../../features/media/pack.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import { ToolAuthority } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import toolsFiles from '../../../features/tools-files/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { stub } from '../../../kernel/testing.ts'
import { type Reply, type ScriptedLlm, scriptedLlm, testModel } from '../../helpers/scripted-llm.ts'
import { type Started, type StartOptions, startAgent } from '../agent/start.ts'

export interface MediaScene extends Started {
  readonly llm: ScriptedLlm
  upload(bytes: Buffer | string, name: string, type: string): Promise<UploadObject>
  submit(
    ...content: readonly unknown[]
  ): Promise<{ code: number; msg: string; details?: unknown; data: { prompt_id: string; content: { type: string }[] } }>
  /** A medium of the session over HTTP. */
  medium(file_id: string, headers?: Record<string, string>): Promise<Response>
}

const always = stub(ToolAuthority, { permit: async () => ({ kind: 'run' }), readable: async () => () => true })

export async function mediaScene(
  t: TestContextLike,
  capabilities: readonly string[],
  replies: readonly Reply[],
  options: StartOptions = {}
): Promise<MediaScene> {
  const llm = scriptedLlm(...replies)
  Object.assign(llm.llm, { resolve: () => ({ ...testModel, capabilities }) })
  const started = await startAgent(t, llm, { ...options, packs: [files, media, tools, toolsFiles, always, ...(options.packs ?? [])] })
  const authorization = `Bearer ${started.token}`
  return {
    ...started,
    llm,
    async upload(bytes, name, type) {
      const body = new FormData()
      body.append('file', new Blob([bytes], { type }), name)
      const reply = await fetch(`${started.url}${uploadFile.path}`, { method: 'POST', headers: { authorization }, body })
      return ((await reply.json()) as { data: UploadObject }).data
    },
    submit: async (...content) =>
      (await started.call(submitPrompt, {
        params: { session_id: started.session_id },
        body: { content: content as never }
      })) as never,
    medium: (file_id, headers = {}) =>
      fetch(`${started.url}/api/v1/sessions/${started.session_id}/media/${file_id}`, { headers: { authorization, ...headers } })
  }
}

/** Everything that a request shows to the model beside the system prompt. */
export const shownTo = (messages: readonly LlmMessage[] = []): LlmContent[] =>
  messages.flatMap(({ content }) => content.flatMap(part => (part.type === 'tool_call' ? [] : [part])))

export const texts = (parts: readonly LlmContent[]): string => parts.map(part => (part.type === 'text' ? part.text : '')).join('\n')
