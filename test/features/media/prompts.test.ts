import assert from 'node:assert/strict'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { deleteFile } from '../../../features/files/index.ts'
import { openSide } from '../../../features/fork/index.ts'
import fork from '../../../features/fork/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import { png } from '../../helpers/png.ts'
import { toolCalls } from '../../helpers/scripted-llm.ts'
import { wireOf } from '../agent/start.ts'
import { mediaScene, shownTo, texts } from './scene.ts'

const asked = { type: 'text', text: 'what is it?' }
const upload = (type: string, file_id: string) => ({ type, source: { kind: 'file', file_id } })

test('an uploaded image becomes a medium of the session: the model sees it, messages refer to it, and it outlives the upload', async t => {
  const scene = await mediaScene(t, ['image_in'], ['a square', 'again'])
  const bytes = png(40, 30)
  const { id } = await scene.upload(bytes, 'my photo.png', 'application/octet-stream')
  assert.deepEqual(Buffer.from(await (await scene.medium(id)).arrayBuffer()), bytes, 'what is not committed comes from the uploads')

  const { code, data } = await scene.submit(asked, upload('image', id))
  assert.equal(code, 0)
  await scene.settled(1)
  const reference = { type: 'image', source: { kind: 'session_media', file_id: id, media_type: 'image/png' } }
  assert.deepEqual(data.content, [asked, reference])
  const image = { type: 'image', media_type: 'image/png', data: bytes.toString('base64') }
  assert.deepEqual(shownTo(scene.llm.requests[0]?.messages).slice(0, 2), [asked, image])
  const { items } = (await scene.call(listMessages, { params: { session_id: scene.session_id } })).data
  assert.deepEqual(items.find(({ id: message_id }) => message_id === data.prompt_id)?.content, [asked, reference])

  await scene.call(deleteFile, { params: { file_id: id } })
  const answer = await scene.medium(id, { range: 'bytes=1-3' })
  assert.deepEqual([answer.status, await answer.text()], [206, 'PNG'])
  assert.equal(answer.headers.get('etag'), `"${scene.session_id}-${id}-${bytes.length}"`)
  assert.equal((await scene.submit(upload('image', id))).code, 40407)
  assert.equal(
    (await scene.submit({ ...asked, text: 'and now?' }, { type: 'image', source: { kind: 'session_media', file_id: id } })).code,
    0
  )
  await scene.settled(2)
  assert.equal(shownTo(scene.llm.requests[1]?.messages).filter(part => part.type === 'image').length, 2)
})

test('references that lead nowhere, or to another kind, are refused before anything is applied', async t => {
  const scene = await mediaScene(t, ['image_in'], ['x'])
  const text = await scene.upload('hello', 'a.txt', 'text/plain')
  const picture = await scene.upload(png(4, 4), 'a.png', 'image/png')
  for (const part of [
    upload('image', 'f_01ARZ3NDEKTSV4RRFFQ69G5FAV'),
    upload('image', 'nonsense'),
    upload('image', text.id),
    upload('video', picture.id),
    { type: 'file', file_id: 'f_x', name: 'x', media_type: 'x/y', size: 1 },
    { type: 'image', source: { kind: 'session_media', file_id: picture.id } }
  ])
    assert.equal((await scene.submit(asked, part)).code, 40407, JSON.stringify(part))
  assert.ok(!scene.events.some(event => event.type === 'prompt.submitted' || event.type === 'agent.created'))
})

test('what is no base64 and what is no address of a network is refused', async t => {
  const scene = await mediaScene(t, ['image_in'], ['x'])
  const inline = (data: string, type = 'image') => ({ type, source: { kind: 'base64', media_type: `${type}/png`, data } })
  const linked = (url: string) => ({ type: 'image', source: { kind: 'url', url } })
  for (const [part, path] of [
    [inline('!!!'), 'data'],
    [inline(''), 'data'],
    [inline('data:image/png;base64,AAAA', 'video'), 'data'],
    [linked('a.png'), 'url'],
    [linked('file:///a.png'), 'url'],
    [linked('javascript:alert(1)'), 'url'],
    [linked('data:image/png;base64,!!!'), 'url'],
    [linked('data:image/png;base64,'), 'url']
  ] as const) {
    const { code, details } = await scene.submit(asked, part)
    assert.deepEqual([code, (details as { path: string }[])[0]?.path], [40001, `body.content.1.source.${path}`], JSON.stringify(part))
  }
  assert.ok(!scene.events.some(event => event.type === 'prompt.submitted'))

  const bytes = png(30, 30)
  const lines = bytes.toString('base64url').replace(/.{60}/g, '$&\n')
  assert.equal((await scene.submit(asked, inline(lines), linked('data:image/png;base64,AAAA'))).code, 0)
  await scene.settled(1)
  assert.deepEqual(shownTo(scene.llm.requests[0]?.messages)[1], { type: 'image', media_type: 'image/png', data: bytes.toString('base64') })
})

test('an image at a data address is one that came inline: of the type that it is, in a form that models take', async t => {
  const scene = await mediaScene(t, ['image_in'], ['x'])
  const bytes = png(30, 30)
  const linked = (url: string) => ({ type: 'image', source: { kind: 'url', url, id: 'mine' } })
  const svg = 'data:image/svg+xml,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22/%3E'

  const { data } = await scene.submit(asked, linked(`data:image/jpeg;base64,${encodeURIComponent(bytes.toString('base64'))}`), linked(svg))
  await scene.settled(1)

  const parts = shownTo(scene.llm.requests[0]?.messages)
  assert.deepEqual(parts[1], { type: 'image', media_type: 'image/png', data: bytes.toString('base64') })
  assert.match(texts(parts), /format that models do not take \(image\/svg\+xml\)/)
  assert.deepEqual(data.content[1], { type: 'image', source: { kind: 'base64', media_type: 'image/png', data: bytes.toString('base64') } })
})

test('a file is a notice with a path that Read may read, and stays a file for clients', async t => {
  const scene = await mediaScene(
    t,
    [],
    [
      request => {
        const path = /: (\/\S+) - open it with the Read tool/.exec(texts(shownTo(request.messages)))?.[1]
        return toolCalls({ id: 'c', name: 'Read', args: { path } })
      },
      'done'
    ]
  )
  const { id } = await scene.upload('first\nsecond\n', 'my notes (1).md', 'text/markdown')
  const part = { type: 'file', file_id: id, name: 'wrong', media_type: 'wrong/type', size: 1 }
  const { data } = await scene.submit(asked, part)
  await scene.settled(1)
  assert.deepEqual(data.content[1], { type: 'file', file_id: id, name: 'my notes (1).md', media_type: 'text/markdown', size: 13 })
  const notice = texts(shownTo(scene.llm.requests[0]?.messages))
  assert.match(
    notice,
    /Attached file "my notes \(1\)\.md" \(text\/markdown, 13 bytes\): \S+\/agents\/main\/attachments\/f_\w+-my_notes_1_\.md - open it with the Read tool, or with a command if it is no text$/m
  )
  assert.match(texts(shownTo(scene.llm.requests[1]?.messages)), /1\tfirst\n2\tsecond/)
  const answer = await scene.medium(id)
  assert.deepEqual([answer.headers.get('content-type'), await answer.text()], ['text/markdown', 'first\nsecond\n'])
  assert.match(answer.headers.get('content-disposition') ?? '', /^attachment/)
})

test('a large image is made smaller for the model alone, which is told so', async t => {
  const scene = await mediaScene(t, ['image_in'], ['big'])
  const bytes = png(3000, 1000)
  const { id } = await scene.upload(bytes, 'wide.png', 'image/png')
  await scene.submit(upload('image', id), {
    type: 'image',
    source: { kind: 'base64', media_type: 'image/png', data: bytes.toString('base64') }
  })
  await scene.settled(1)
  const parts = shownTo(scene.llm.requests[0]?.messages)
  const images = parts.filter(part => part.type === 'image')
  for (const { data } of images) {
    const small = Buffer.from(data, 'base64')
    assert.deepEqual([small.readUInt32BE(16), small.readUInt32BE(20)], [2000, 667])
  }
  assert.equal(images.length, 2)
  assert.match(texts(parts), /made smaller: 3000x1000 px, \d+ bytes became 2000x667 px, \d+ bytes\. The file is \S+wide\.png\./)
  assert.deepEqual(Buffer.from(await (await scene.medium(id)).arrayBuffer()), bytes)
  const dir = join(scene.home, (await readdir(scene.home, { recursive: true })).find(name => name.endsWith('main/attachments')) ?? '')
  assert.equal((await readdir(dir)).filter(name => /^f_/.test(name)).length, 6, 'twice: original, shown, facts')
  const accepted = (await wireOf(scene)).find(record => record.type === 'prompt.accepted')
  assert.ok(!JSON.stringify(accepted).includes('base64'))
})

test('what no model takes is a note with the path; what nobody knows goes as it is', async t => {
  const scene = await mediaScene(t, ['image_in'], ['x'])
  const bmp = Buffer.concat([Buffer.from('BM'), Buffer.alloc(60)])
  const { id } = await scene.upload(bmp, 'old.bmp', 'image/bmp')
  const cut = png(30, 30).subarray(0, 60)
  const odd = { type: 'image', source: { kind: 'base64', media_type: 'image/png', data: cut.toString('base64') } }
  await scene.submit(upload('image', id), odd, { type: 'image', source: { kind: 'url', url: 'https://example.com/a.png' } })
  await scene.settled(1)
  const parts = shownTo(scene.llm.requests[0]?.messages)
  assert.match(texts(parts), /format that models do not take \(image\/bmp\).*The file is \S+old\.bmp/)
  assert.deepEqual(
    parts.filter(part => part.type === 'image'),
    [{ type: 'image', media_type: 'image/png', data: cut.toString('base64') }]
  )
  assert.deepEqual(
    parts.filter(part => part.type === 'image_url'),
    [{ type: 'image_url', url: 'https://example.com/a.png' }]
  )
  assert.deepEqual(Buffer.from(await (await scene.medium(id)).arrayBuffer()), bmp)
})

test('a model without eyes gets paths; one that sees videos gets them', async t => {
  const mp4 = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42', 'latin1'), Buffer.alloc(5000, 7)])
  for (const capabilities of [[], ['image_in', 'video_in']]) {
    const scene = await mediaScene(t, capabilities, ['x'])
    const picture = await scene.upload(png(4, 4), 'a.png', 'image/png')
    const film = await scene.upload(mp4, 'film.mp4', 'video/mp4')
    const inline = { type: 'video', source: { kind: 'base64', media_type: 'video/mp4', data: mp4.toString('base64') } }
    await scene.submit(upload('image', picture.id), upload('video', film.id), inline)
    await scene.settled(1)
    const parts = shownTo(scene.llm.requests[0]?.messages)
    const videos = parts.filter(part => part.type === 'video')
    if (capabilities.length > 0) {
      const video = { type: 'video', media_type: 'video/mp4', data: mp4.toString('base64') }
      assert.deepEqual(videos, [video, video])
      assert.match(texts(parts), /Video "film\.mp4": \S+film\.mp4/)
    } else {
      assert.deepEqual(videos, [])
      assert.match(texts(parts), /\[image "a\.png": this model cannot see images; the file is \S+a\.png\]/)
      assert.match(texts(parts), /\[video "film\.mp4": this model cannot see videos; the file is \S+film\.mp4\]/)
    }
  }
})

test('attachments are there after a restart, and a file that is gone is a text', async t => {
  const scene = await mediaScene(t, ['image_in'], ['x'])
  const { id } = await scene.upload(png(5, 5), 'a.png', 'image/png')
  await scene.submit(asked, upload('image', id))
  await scene.settled(1)
  await scene.stop()
  const again = await mediaScene(t, ['image_in'], ['y'], { home: scene.home, session_id: scene.session_id })
  await again.prompt('go on')
  await again.settled(1)
  assert.equal(shownTo(again.llm.requests[0]?.messages).filter(part => part.type === 'image').length, 1)
  const name = (await readdir(again.home, { recursive: true })).find(path => path.endsWith('-a.png')) ?? ''
  assert.deepEqual(await readFile(join(again.home, name)), png(5, 5))
  await rm(join(again.home, name))
  await again.stop()
  const third = await mediaScene(t, ['image_in'], ['z'], { home: scene.home, session_id: scene.session_id })
  await third.prompt('and now')
  await third.settled(1)
  assert.match(texts(shownTo(third.llm.requests[0]?.messages)), /\[image: its file is missing\]/)
})

test('an image of the session whose file is gone is missing for an agent that is to get it, too', async t => {
  const scene = await mediaScene(t, ['image_in'], ['x'], { packs: [fork] })
  const params = { session_id: scene.session_id }
  const { agent_id } = (await scene.call(openSide, { params })).data
  const { id } = await scene.upload(png(5, 5), 'a.png', 'image/png')
  await scene.submit(asked, upload('image', id))
  await scene.settled(1)
  const name = (await readdir(scene.home, { recursive: true })).find(path => path.endsWith('-a.png')) ?? ''
  await rm(join(scene.home, name))
  const again = { type: 'image' as const, source: { kind: 'session_media' as const, file_id: id } }
  assert.equal((await scene.call(submitPrompt, { params, body: { agent_id, content: [again] } })).code, 40407)
})
