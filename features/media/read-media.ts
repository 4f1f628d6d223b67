/** The ReadMediaFile tool: shows the model an image or a video of the disk. */
import type { Static } from '../../kernel/index.ts'
import type { LlmContent } from '../llm/index.ts'
import { type Tool, ToolRefusal, type ToolResult } from '../tools/index.ts'
import { assertSame, locate, type Place, type PlacePorts, pathRule, refusal } from '../tools-files/index.ts'
import { fullBytes, type ImageLimits, readMediaParameters } from './contract.ts'
import { imageHeader, measured, mediaTypeOf, shownTypes } from './image-header.ts'
import { fits, ImageProblem, type Recoder } from './recode.ts'

type Arguments = Static<typeof readMediaParameters>

/** Files above this are not read. */
const fileBytes = 100 * 1024 * 1024
/** Videos above this fit into no request. */
const videoBytes = 20 * 1024 * 1024

export interface ReadMediaPorts extends PlacePorts {
  readonly recoder: Recoder
  readonly limits: () => ImageLimits
}

/** The tool of a model with these capabilities; none for one that sees nothing. */
export function readMediaTools(ports: ReadMediaPorts): (capabilities: readonly string[]) => readonly Tool[] {
  const made = new Map<string, readonly Tool[]>()
  return capabilities => {
    const sees = ['image_in', 'video_in'].filter(each => capabilities.includes(each))
    const known = made.get(sees.join()) ?? (sees.length > 0 ? [createReadMedia(ports, sees)] : [])
    made.set(sees.join(), known)
    return known
  }
}

function createReadMedia(ports: ReadMediaPorts, capabilities: readonly string[]): Tool<typeof readMediaParameters> {
  const kinds = [capabilities.includes('image_in') ? 'images' : '', capabilities.includes('video_in') ? 'videos' : ''].filter(Boolean)
  return {
    name: 'ReadMediaFile',
    description:
      `Shows you ${kinds.join(' and ')} from the disk (${kinds.includes('images') ? 'PNG, JPEG, GIF, WebP' : 'MP4, WebM and others'}; files up to 100 MiB). ` +
      (kinds.includes('images')
        ? 'Large images are made smaller; the note says the original size. To see details, give a region in pixels of the original, or full_resolution for an image up to 3.75 MiB.'
        : 'Videos up to 20 MiB.'),
    parameters: readMediaParameters,
    source: 'builtin',
    async prepare(args: Arguments, env) {
      const place = await locate(args.path, env, ports)
      return {
        description: `Looking at ${place.path}`,
        display: { kind: 'file_io', operation: 'read', path: place.path },
        accesses: [{ kind: 'read' as const, path: place.real }],
        ...pathRule(place, env.cwd),
        async run() {
          await assertSame(place, ports.ops)
          return await look(args, place, ports, capabilities)
        }
      }
    }
  }
}

async function look(args: Arguments, place: Place, ports: ReadMediaPorts, capabilities: readonly string[]): Promise<ToolResult> {
  const { path } = place
  const bytes = await readWhole(place, ports)
  const type = mediaTypeOf(bytes.subarray(0, 4096))
  if (type?.startsWith('video/')) return video(args, path, type, bytes, capabilities)
  if (type === undefined) throw new ToolRefusal(`${path} is neither an image nor a video that is known here. Use Read for text.`)
  if (!capabilities.includes('image_in')) throw new ToolRefusal(`${path} is an image, and this model cannot see images.`)
  if (!(shownTypes as readonly string[]).includes(type))
    throw new ToolRefusal(`${path} is ${type}, which models do not take. Convert it to PNG or JPEG first.`)
  try {
    return await image(args, path, type, bytes, ports)
  } catch (error) {
    throw error instanceof ImageProblem ? new ToolRefusal(`${path} cannot be shown: ${error.message}.`) : error
  }
}

async function readWhole({ real, path }: Place, { ops }: ReadMediaPorts): Promise<Buffer> {
  try {
    const facts = await ops.stat(real)
    if (!facts) throw new ToolRefusal(`The file ${path} does not exist.`)
    if (facts.kind !== 'file') throw new ToolRefusal(`${path} is not a regular file.`)
    if (facts.size > fileBytes) throw new ToolRefusal(`${path} has ${facts.size} bytes; at most 100 MiB are read.`)
    return await ops.readAll(real)
  } catch (error) {
    throw refusal(error, path)
  }
}

function video(
  { region, full_resolution }: Arguments,
  path: string,
  media_type: string,
  bytes: Buffer,
  capabilities: readonly string[]
): ToolResult {
  if (!capabilities.includes('video_in')) throw new ToolRefusal(`${path} is a video, and this model cannot see videos.`)
  if (region || full_resolution) throw new ToolRefusal('region and full_resolution are for images.')
  if (bytes.length > videoBytes)
    throw new ToolRefusal(`${path} has ${bytes.length} bytes; videos above 20 MiB cannot be sent. Cut it or make it smaller first.`)
  return framed('video', path, { type: 'video', media_type, data: bytes.toString('base64') }, `${media_type}, ${bytes.length} bytes.`)
}

async function image(
  args: Arguments,
  path: string,
  media_type: string,
  bytes: Buffer,
  { recoder, limits }: ReadMediaPorts
): Promise<ToolResult> {
  const { max_edge_px: edge, read_byte_budget } = limits()
  const header = imageHeader(bytes)
  const facts = (size: { readonly width: number; readonly height: number } | undefined = header) =>
    `Original: ${media_type}, ${measured(size, bytes.length)}.`
  const asItIs = () => framed('image', path, { type: 'image', media_type, data: bytes.toString('base64') }, `${facts()} Shown as it is.`)
  if (args.full_resolution && !args.region) {
    if (bytes.length > fullBytes)
      throw new ImageProblem(`it has ${bytes.length} bytes, and full_resolution takes at most ${fullBytes}; look at regions of it`)
    return asItIs()
  }
  if (!args.region && fits(header, bytes.length, { edge, bytes: read_byte_budget })) return asItIs()
  const bounds = { edge, bytes: args.region ? fullBytes : Math.min(read_byte_budget, fullBytes) }
  const { data, width, height, media_type: shown, original } = await recoder.shrink(bytes, bounds, args.region)
  const what = args.region ? `Region ${Object.values(args.region).join(', ')} shown` : 'Shown'
  const note = `${facts(original)} ${what} as ${shown}, ${width}x${height} px, ${data.length} bytes.`
  return framed('image', path, { type: 'image', media_type: shown, data: data.toString('base64') }, note)
}

function framed(tag: string, path: string, part: LlmContent, note: string): ToolResult {
  const output: LlmContent[] = [{ type: 'text', text: `<${tag} path=${JSON.stringify(path)}>` }, part, { type: 'text', text: `</${tag}>` }]
  return { output, note, truncated: true }
}
