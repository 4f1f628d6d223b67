/** Commands at a real (pseudo) terminal: keys instead of signals, and what a model may make of the screen. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawn } from 'node-pty'
import { run, serve } from '../../helpers/cli.ts'
import { freshDir } from '../../helpers/temp.ts'

const main = fileURLToPath(new URL('../../../bundle/main.js', import.meta.url))

/** A command at a terminal; `keys` are typed as soon as the screen shows their text, one after the other; `before` is for the shell. */
async function type(home: string, args: readonly string[], keys: readonly (readonly [shown: string, typed: string])[], before = '') {
  const env = { ...process.env, SVC_CODE_HOME: home, SVC_CODE_CATALOG_URL: 'off' } as Record<string, string>
  const line = ['-c', `${before} exec "$0" "$@"`, process.execPath, main, ...args]
  const child = spawn('sh', line, { cols: 100, rows: 30, cwd: home, env })
  let screen = ''
  let at = 0
  const left = [...keys]
  child.onData(data => {
    screen += data
    const found = left[0] === undefined ? -1 : screen.indexOf(left[0][0], at)
    if (found < 0) return
    at = screen.length
    child.write(left.shift()![1])
  })
  const code = await new Promise<number>(resolve => child.onExit(({ exitCode }) => resolve(exitCode)))
  return { code, screen }
}

test('Ctrl+C at the question for an approval aborts the turn, as it does elsewhere', { timeout: 60_000 }, async () => {
  const { code, screen } = await type(await freshDir(), ['run', '--demo', 'run date'], [['confirm', '\u0003']])

  assert.equal(code, 130)
  assert.match(screen, /the turn was cancelled/)
  assert.doesNotMatch(screen, /That is all you asked for/)
})

test('Escape at the question for an approval rejects the call, and the turn goes on', { timeout: 60_000 }, async () => {
  const { code, screen } = await type(await freshDir(), ['run', '--demo', 'run date'], [['confirm', '\u001b']])

  assert.equal(code, 0)
  assert.match(screen, /That did not work: .*That is all you asked for/s)
})

test('Ctrl+D at the question for an approval rejects the call, as Escape does', { timeout: 60_000 }, async () => {
  const { code, screen } = await type(await freshDir(), ['run', '--demo', 'run date'], [['confirm', '\u0004']])

  assert.equal(code, 0)
  assert.match(screen, /That did not work: .*That is all you asked for/s)
})

test('a terminal that says it has no size is taken for one of 80 columns and 24 rows: every choice is seen', {
  timeout: 60_000
}, async () => {
  const keys = [['Reject', '\u001b']] as const
  const { screen } = await type(await freshDir(), ['run', '--demo', 'run date'], keys, 'stty cols 0 rows 0;')

  assert.match(screen, /The agent asks for Bash/)
})

test('Ctrl+D leaves attach, also after an answer', { timeout: 60_000 }, async t => {
  const home = await freshDir()
  await serve(t, home, '--port', '0', '--demo')
  const { stderr } = await run(home, 'run', 'hello')
  const id = /^session (\S+)$/m.exec(stderr)?.[1] ?? ''
  const asked = '\u001b[?25l' // the cursor is hidden as soon as keys are read
  const keys = [
    [asked, 'hello\r'],
    [asked, '\u0004']
  ] as const
  const { code, screen } = await type(home, ['attach', id], keys)

  assert.equal(code, 0)
  assert.match(screen, /attached to/)
})

test('attach without any input leaves', { timeout: 60_000 }, async t => {
  const home = await freshDir()
  await serve(t, home, '--port', '0', '--demo')
  const { stderr } = await run(home, 'run', 'hello')
  assert.equal((await run(home, 'attach', /^session (\S+)$/m.exec(stderr)?.[1] ?? '')).code, 0)
})

test('what a model says and asks for cannot steer the terminal', { timeout: 60_000 }, async () => {
  const steering = '\u001b]0;stolen\u0007\u009b2Jdate'
  const { code, screen } = await type(await freshDir(), ['run', '--demo', `run ${steering}`], [['confirm', '\r']])

  assert.equal(code, 0)
  assert.match(screen, /I run \]0;stolen2Jdate/)
  assert.match(screen, /asks for Bash: .*\]0;stolen2Jdate/s)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  assert.doesNotMatch(screen, /\u001b\]0;|\u0007|\u009b/)
})

test('a server whose terminal is closed stops in good order', { timeout: 60_000 }, async () => {
  const home = await freshDir()
  const env = { ...process.env, SVC_CODE_HOME: home, SVC_CODE_CATALOG_URL: 'off' } as Record<string, string>
  const child = spawn(process.execPath, [main, 'serve', '--port', '0'], { cols: 100, rows: 30, cwd: home, env })
  let screen = ''
  await new Promise<void>(resolve =>
    child.onData(data => {
      screen += data
      if (/^ {2}stop /m.test(screen)) resolve()
    })
  )
  const ended = new Promise<number>(resolve => child.onExit(({ exitCode }) => resolve(exitCode)))
  process.kill(child.pid, 'SIGHUP')
  let over = false
  void ended.then(() => {
    over = true
  })
  // It comes again and again until there is nobody left to hear it.
  while (!over) {
    try {
      process.kill(child.pid, 'SIGHUP')
    } catch {
      break
    }
    await new Promise(setImmediate)
  }

  assert.equal(await ended, 0)
  assert.deepEqual(await readdir(join(home, 'server', 'instances')), [])
  assert.match(await readFile(join(home, 'logs', 'svc-code.log'), 'utf8'), /"msg":"stopped"\}\n$/)
})
