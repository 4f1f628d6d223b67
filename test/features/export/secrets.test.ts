/** Secrets in texts of an export, wherever the pieces of a text are cut. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { secretsOnDisk, withoutThem } from '../../../features/export/secrets.ts'
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

test('the token of the server is known without the line break behind it', async () => {
  const home = await freshDir()
  await writeFile(join(home, 'server.token'), 'a-token-of-some-length\n')
  assert.deepEqual(await secretsOnDisk(home), ['a-token-of-some-length'])
})
