import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LlmContent } from '../../../features/llm/index.ts'
import { imageHeader, mediaTypeOf } from '../../../features/media/image-header.ts'
import { ImageProblem, Recoder } from '../../../features/media/recode.ts'
import { toolImages } from '../../../features/media/tool-images.ts'
import type { AgentHost } from '../../../features/sessions/index.ts'
import { png } from '../../helpers/png.ts'
import { toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { silent } from '../tools/fakes.ts'
import { mediaScene, shownTo, texts } from './scene.ts'

/** What the model gets for each call, one after the other. */
async function look(
  t: Parameters<typeof mediaScene>[0],
  capabilities: readonly string[],
  files: Readonly<Record<string, Buffer>>,
  ...calls: readonly object[]
): Promise<{ parts: LlmContent[]; text: string; failed: boolean }[]> {
  const made = toolCalls(...calls.map((args, at) => ({ id: `c${at}`, name: 'ReadMediaFile', args })))
  const scene = await mediaScene(t, capabilities, [made, 'done'])
  await mkdir(join(scene.cwd, 'sub'))
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(scene.cwd, name), bytes)
  await scene.prompt('look')
  await scene.settled(1)
  const results = scene.llm.requests[1]?.messages.filter(message => message.role === 'tool') ?? []
  assert.equal(results.length, calls.length)
  return results.map(message => ({
    parts: shownTo([message]),
    text: texts(shownTo([message])),
    failed: message.role === 'tool' && message.is_error
  }))
}
const sizeOf = (parts: readonly LlmContent[]) => {
  const image = parts.find(part => part.type === 'image')
  const header = image && imageHeader(Buffer.from(image.data, 'base64'))
  return header && [header.width, header.height]
}

test('images come whole when they fit, smaller when they do not, and in regions', async t => {
  const [small, large, region, full, outside] = await look(
    t,
    ['image_in'],
    { 'a.png': png(20, 10), 'b.png': png(2500, 500) },
    { path: 'a.png' },
    { path: 'b.png' },
    { path: 'b.png', region: { x: 100, y: 50, width: 300, height: 200 } },
    { path: 'b.png', full_resolution: true },
    { path: 'b.png', region: { x: 2400, y: 0, width: 101, height: 10 } }
  )
  assert.deepEqual(sizeOf(small?.parts ?? []), [20, 10])
  assert.match(small?.text ?? '', /^<image path=".*\/a\.png">\n\n<\/image>\nOriginal: image\/png, 20x10 px, \d+ bytes\. Shown as it is\./)
  assert.deepEqual(sizeOf(large?.parts ?? []), [2000, 400])
  assert.match(large?.text ?? '', /Original: image\/png, 2500x500 px, \d+ bytes\. Shown as image\/png, 2000x400 px/)
  assert.deepEqual(sizeOf(region?.parts ?? []), [300, 200])
  assert.deepEqual(sizeOf(full?.parts ?? []), [2500, 500])
  assert.equal(outside?.failed, true)
  assert.match(outside?.text ?? '', /leads out of it \(2500x500 px\)/)
})

test('what cannot be shown is refused with its reason', async t => {
  const [missing, text, svg, video, dir, out, secret, broken] = await look(
    t,
    ['image_in'],
    {
      'a.txt': Buffer.from('words'),
      'a.svg': Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
      'v.mp4': Buffer.from('\0\0\0\x18ftypmp42....', 'latin1'),
      '.env': png(1, 1),
      'broken.png': png(3000, 3000).subarray(0, 300)
    },
    { path: 'none.png' },
    { path: 'a.txt' },
    { path: 'a.svg' },
    { path: 'v.mp4' },
    { path: 'sub' },
    { path: '../x.png' },
    { path: '.env' },
    { path: 'broken.png' }
  )
  assert.match(missing?.text ?? '', /does not exist/)
  assert.match(text?.text ?? '', /neither an image nor a video/)
  assert.match(svg?.text ?? '', /image\/svg\+xml, which models do not take/)
  assert.match(video?.text ?? '', /this model cannot see videos/)
  assert.match(dir?.text ?? '', /not a regular file/)
  assert.match(out?.text ?? '', /leads out of the working directory/)
  assert.match(secret?.text ?? '', /off limits/)
  assert.match(broken?.text ?? '', /could not be decoded/)
})

test('a model that sees videos gets them, one that sees nothing has no such tool', async t => {
  const mp4 = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42', 'latin1'), Buffer.alloc(100)])
  const [video, image] = await look(t, ['video_in'], { 'v.mp4': mp4, 'a.png': png(1, 1) }, { path: 'v.mp4' }, { path: 'a.png' })
  assert.deepEqual(
    video?.parts.find(part => part.type === 'video'),
    { type: 'video', media_type: 'video/mp4', data: mp4.toString('base64') }
  )
  assert.match(image?.text ?? '', /this model cannot see images/)
  const [none] = await look(t, ['tool_use'], {}, { path: 'a.png' })
  assert.match(none?.text ?? '', /Tool not found: ReadMediaFile/)
})

test('noise becomes a JPEG within its budget; without sharp nothing is made smaller', async () => {
  const noise = png(900, 600, { noise: true })
  const shown = await new Recoder().shrink(noise, { edge: 2000, bytes: 262_144 })
  assert.equal(shown.media_type, 'image/jpeg')
  assert.ok(shown.data.length <= 262_144)
  await assert.rejects(new Recoder(() => false).shrink(noise, { edge: 100, bytes: 1000 }), ImageProblem)
  await assert.rejects(new Recoder().shrink(noise, { edge: 2000, bytes: 100 }), /does not get small enough/)
})

test('the original of an image that a tool answered is kept beside its agent, whatever the tool calls it', async () => {
  const dir = await freshDir()
  const recoder = {
    shrink: async () => ({ data: png(9, 9), media_type: 'image/png', width: 9, height: 9, original: { width: 90, height: 90 } })
  }
  const images = toolImages({ recoder: recoder as unknown as Recoder, edge: () => 50, newId: () => 'id', log: silent })
  const data = png(90, 90).toString('base64')
  for (const [media_type, name] of [
    ['image/png', 'id.png'],
    ['image/../../../planted', 'id.bin'],
    ['text/../planted', 'id.bin']
  ] as const) {
    const { note } = await images.fit({ output: [{ type: 'image', media_type, data }] }, { dir: join(dir, 'agent') } as AgentHost)
    assert.ok(note?.endsWith(`The original is in ${join(dir, 'agent', 'tool-results', name)}`), note)
  }
  assert.deepEqual(await readdir(join(dir, 'agent'), { recursive: true }), ['tool-results', 'tool-results/id.bin', 'tool-results/id.png'])
  assert.deepEqual(await readdir(dir), ['agent'])
})

test('headers say format and size; a head that is cut says neither', () => {
  const bytes = (text: string, ...more: number[]) => Buffer.concat([Buffer.from(text, 'latin1'), Buffer.from(more), Buffer.alloc(40)])
  assert.deepEqual(imageHeader(bytes('GIF89a', 0x10, 0x01, 5, 0)), { media_type: 'image/gif', width: 272, height: 5 })
  assert.deepEqual(imageHeader(bytes('\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08', 1, 0, 2, 1)), {
    media_type: 'image/jpeg',
    width: 513,
    height: 256
  })
  assert.deepEqual(imageHeader(bytes('RIFF....WEBPVP8X', 10, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0x0f, 1, 0)), {
    media_type: 'image/webp',
    width: 256,
    height: 272
  })
  for (const cut of [png(9, 9).subarray(0, 20), Buffer.from('GIF89a'), Buffer.from('\xff\xd8\xff\xe0\0\x04', 'latin1'), Buffer.alloc(0)])
    assert.equal(imageHeader(cut), undefined)
  assert.equal(mediaTypeOf(Buffer.from('\0\0\0\x18ftypavif', 'latin1')), 'image/avif')
  assert.equal(mediaTypeOf(Buffer.from('plain words')), undefined)
})

test('a file of nothing but comments is told from an SVG as fast as any other', { timeout: 20_000 }, async t => {
  const comments = '<!---->'.repeat(200)
  const [page, image] = await look(
    t,
    ['image_in'],
    { 'a.html': Buffer.from(`${comments}<p>`), 'b.svg': Buffer.from(`<?xml version="1.0"?>\n${comments.slice(0, 700)} <svg>`) },
    { path: 'a.html' },
    { path: 'b.svg' }
  )
  assert.match(page?.text ?? '', /neither an image nor a video that is known here/)
  assert.match(image?.text ?? '', /is image\/svg\+xml, which models do not take/)
})
