/** Secrets in texts of an export, wherever the pieces of a text are cut. */
import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { entryOf, openEntry } from '../../../features/export/entries.ts'
import { secretsOf, secretsOnDisk, withoutThem } from '../../../features/export/secrets.ts'
import { fileNameOf } from '../../../features/export/session-export.ts'
import { inEachDisguise } from '../../helpers/disguises.ts'
import { freshDir } from '../../helpers/temp.ts'

/** The text without secrets, when it comes in chunks of so many bytes. */
async function cleaned(text: string, secrets: readonly string[], bytes: number): Promise<string> {
  async function* chunks() {
    const whole = Buffer.from(text)
    for (let at = 0; at < whole.length; at += bytes) yield whole.subarray(at, at + bytes)
  }
  const parts: Buffer[] = []
  for await (const part of withoutThem(chunks(), secrets, 'text')) parts.push(part)
  return Buffer.concat(parts).toString('utf8')
}

test('a secret in a line of any length goes, wherever the line is cut to be looked at', async () => {
  const secret = 'correct-horse-battery-staple'
  const block = 64 * 1024
  for (const before of [0, 10, ...Array.from({ length: 30 }, (_, n) => block - 4096 - n), block - 30, block - 10, block, 2 * block - 20]) {
    const text = `${'x'.repeat(before)}${secret}${'y'.repeat(3 * block)}`
    for (const bytes of [block, 1024 * 1024]) {
      const told = await cleaned(text, [secret], bytes)
      assert.equal(told === text.replace(secret, '[redacted]'), true, `${before} characters before it, chunks of ${bytes}`)
    }
  }
})

test('a line of JSON stays one, without what stands under the name of a secret; a text of eight characters can be one, a shorter one not', async () => {
  const line = `${JSON.stringify({ api_key: 'x"y', text: 'eight-88 seven-7' })}\n`
  async function* chunks() {
    yield Buffer.from(line)
  }
  const parts: Buffer[] = []
  for await (const part of withoutThem(chunks(), ['eight-88', 'seven-7'], 'journal')) parts.push(part)

  const { api_key, text } = JSON.parse(Buffer.concat(parts).toString('utf8'))
  assert.deepEqual([api_key, text], ['[redacted]', '[redacted] seven-7'])
})

test('what stands in headers and environments of the configuration is a secret, whatever its name', () => {
  const provider = { base_url: 'https://a.example', api_key: 'key', custom_headers: { 'X-Team': 'header' }, env: { REGION: 'variable' } }
  const found = secretsOf({ one: provider, two: { headers: { accept: 'all' } } }, 'providers')

  assert.deepEqual(
    found.filter(text => text !== ''),
    ['key', 'header', 'variable', 'all']
  )
})

test('a file whose directory was put in place of another one by a link is left out', async () => {
  const [root, other] = [await freshDir(), await freshDir()]
  for (const dir of [join(root, 'real'), join(other, 'dir')]) {
    await mkdir(dir)
    await writeFile(join(dir, 'file'), 'x')
  }
  await symlink(join(other, 'dir'), join(root, 'swapped'))
  await symlink(root, join(other, 'way'))

  assert.equal(await openEntry(root, entryOf('swapped/file', join(root, 'swapped', 'file'))), undefined)
  for (const place of [root, join(other, 'way')]) {
    const opened = await openEntry(place, entryOf('real/file', join(place, 'real', 'file')))
    assert.equal(opened?.size, 1)
    await opened?.handle.close()
  }
})

test('the archive of a session has a name that every system takes', () => {
  assert.equal(fileNameOf('../a b'), 'svc-session-___a_b.zip')
  assert.equal(fileNameOf('x'.repeat(100)), `svc-session-${'x'.repeat(48)}.zip`)
})

test('what is no file among the logins keeps no export waiting', async () => {
  const home = await freshDir()
  await mkdir(join(home, 'credentials'))
  await writeFile(join(home, 'credentials', 'b.json'), '{"access_token":"a-token-of-a-login"}')
  await inEachDisguise(join(home, 'credentials', 'a.json'), async what =>
    assert.deepEqual(await secretsOnDisk(home), ['', 'a-token-of-a-login'], what)
  )
})

test('the token of the server is known without the line break behind it', async () => {
  const home = await freshDir()
  await writeFile(join(home, 'server.token'), 'a-token-of-some-length\n')
  assert.deepEqual(await secretsOnDisk(home), ['a-token-of-some-length'])
})
