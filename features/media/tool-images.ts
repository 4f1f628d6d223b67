/** Images that tools answer: those that are larger than models should get are made smaller, and the original is kept beside the agent. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Logger, serviceToken } from '../../kernel/index.ts'
import type { LlmContent } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { ToolResult } from '../tools/index.ts'
import { fullBytes } from './contract.ts'
import { imageHeader, measured } from './image-header.ts'
import { fits, ImageProblem, type Recoder } from './recode.ts'

/** For packs whose tools answer images that they did not make. */
export interface ToolImages {
  /** The result with its images as models get them, and a note about each that was made smaller or left out. */
  fit(result: ToolResult, agent: AgentHost): Promise<ToolResult>
}
export const ToolImages = serviceToken<ToolImages>('tool-images')

export interface ToolImagePorts {
  readonly recoder: Recoder
  /** Longest edge, pixels. */
  readonly edge: () => number
  readonly newId: () => string
  readonly log: Pick<Logger, 'error'>
}

type Image = Extract<LlmContent, { readonly type: 'image' }>

export function toolImages({ recoder, edge, newId, log }: ToolImagePorts): ToolImages {
  const keep = async (bytes: Buffer, media_type: string, { dir }: AgentHost): Promise<string> => {
    try {
      // What the tool calls it is no part of a path.
      const path = join(dir, 'tool-results', `${newId()}.${/^image\/(\w+)/.exec(media_type)?.[1] ?? 'bin'}`)
      await mkdir(join(dir, 'tool-results'), { recursive: true, mode: 0o700 })
      await writeFile(path, bytes, { mode: 0o600 })
      return ` The original is in ${path}`
    } catch (err) {
      log.error({ err }, 'the original of an image could not be kept')
      return ''
    }
  }

  const fitOne = async (part: Image, agent: AgentHost): Promise<{ readonly part: LlmContent; readonly note?: string }> => {
    const bytes = Buffer.from(part.data, 'base64')
    const bounds = { edge: edge(), bytes: fullBytes }
    if (fits(imageHeader(bytes), bytes.length, bounds)) return { part }
    try {
      const { data, original, ...shown } = await recoder.shrink(bytes, bounds)
      const sizes = `${measured(original, bytes.length)} became ${measured(shown, data.length)}`
      const where = await keep(bytes, part.media_type, agent)
      return {
        part: { type: 'image', media_type: shown.media_type, data: data.toString('base64') },
        note: `An image was made smaller: ${sizes}.${where}`
      }
    } catch (error) {
      if (!(error instanceof ImageProblem)) throw error
      // Its edges alone are too long: most providers make it smaller by themselves.
      if (bytes.length <= fullBytes) return { part }
      const text = `[image left out: ${measured(imageHeader(bytes), bytes.length)}, and ${error.message}]`
      return { part: { type: 'text', text } }
    }
  }

  return {
    async fit(result, agent) {
      if (typeof result.output === 'string') return result
      const done: { readonly part: LlmContent; readonly note?: string }[] = []
      for (const part of result.output) done.push(part.type === 'image' ? await fitOne(part, agent) : { part })
      const note = [result.note, ...done.map(each => each.note)].filter(Boolean).join('\n')
      return { ...result, output: done.map(({ part }) => part), ...(note === '' ? {} : { note }) }
    }
  }
}
