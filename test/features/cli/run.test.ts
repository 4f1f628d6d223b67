/** `svc-code run` and `attach`: a prompt from the terminal, what the agent asks, and how it ends. */
import assert from 'node:assert/strict'
import { access, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { serve } from '../../helpers/cli.ts'
import { command, type Ran } from '../../helpers/cli-io.ts'
import type { Script, Step } from '../../helpers/fake-upstream.ts'
import { latch } from '../../helpers/latch.ts'
import { newSession, place, prompt, scene } from '../../helpers/scene.ts'
import { freshDir } from '../../helpers/temp.ts'

const bash = (line: string): Step => ({ tool: { name: 'Bash', args: { command: line } } })
const question = (multi_select: boolean): Step => ({
  tool: {
    name: 'AskUserQuestion',
    args: {
      questions: [
        {
          question: 'Which tea?',
          header: 'Tea',
          multi_select,
          options: [
            { label: 'Green', description: 'mild' },
            { label: 'Black', description: 'strong' }
          ]
        }
      ]
    }
  }
})

/** The last user text decides what the model does; after a tool result it says what it got. */
const script: Script = body => {
  const messages = body.messages as { role: string; content: unknown }[]
  const last = messages.at(-1)
  if (last?.role === 'tool') return [{ text: `result: ${JSON.stringify(last.content).slice(0, 400)}` }]
  const users = messages.filter(one => one.role === 'user').map(one => JSON.stringify(one.content))
  const asked = users.filter(text => !text.includes('<system-reminder>')).at(-1) ?? users.join('')
  if (asked.includes('touch')) return [{ text: 'I try.' }, bash('touch made')]
  if (asked.includes('choose one')) return [question(false)]
  if (asked.includes('choose some')) return [question(true)]
  if (asked.includes('fail')) return [{ status: 400, body: { error: { message: 'the model is on strike' } } }]
  if (asked.includes('hang')) return [{ text: 'so far' }, { hang: true }]
  return [{ text: 'four teas, ', chunks: 2 }, { text: 'all green' }]
}

const made = (dir: string) =>
  access(join(dir, 'made')).then(
    () => true,
    () => false
  )

test('run against a running server', async t => {
  const { home, cwd, server } = await scene(t, script)
  const run = (text: string, given: Parameters<typeof command>[2] = {}, ...more: string[]): Promise<Ran> =>
    command(home, ['run', ...text.split(' '), '--cwd', cwd, ...more], given)

  await t.test('the answer goes to the standard output alone, and the session can be gone on with', async () => {
    const ran = await run('count the teas')
    assert.deepEqual([ran.code, ran.stdout], [0, 'four teas, all green\n'])
    const id = /^session (session_\S+)\n$/.exec(ran.stderr)?.[1] ?? ''
    assert.ok(id)
    const again = await command(home, ['run', '-', '--session', id], { input: 'and again\n' })
    assert.deepEqual([again.code, again.stdout, again.stderr], [0, 'four teas, all green\n', `session ${id}\n`])
    const { data } = await server.rest.json('GET', `/api/v1/sessions/${id}/messages`)
    assert.equal((data as { items: { role: string }[] }).items.filter(one => one.role === 'assistant').length, 2)
  })

  await t.test('an approval is asked at the terminal, and the answer decides', async () => {
    const no = await run('touch it', { answers: () => 'Reject' })
    assert.match(no.asked.join(), /The agent asks for Bash: .*touch made/s)
    assert.equal(no.code, 0)
    assert.equal(await made(cwd), false)
    const yes = await run('touch it', { answers: () => 'Allow' })
    assert.equal(yes.code, 0)
    assert.match(yes.stdout, /^I try\.\nresult: /)
    assert.match(yes.stderr, /^> Bash .*touch made/m)
    assert.equal(await made(cwd), true)
  })

  await t.test('without a terminal it is rejected, which the exit code tells; --yes allows', async () => {
    const alone = await run('touch it')
    assert.equal(alone.code, 4)
    assert.match(alone.stderr, /^rejected, because nobody can be asked here \(--yes allows\): Bash: /m)
    assert.match(alone.stdout, /Nobody is there to approve this/)
    const yes = await run('touch it', {}, '--yes')
    assert.equal(yes.code, 0)
    assert.match(yes.stderr, /^allowed by --yes: Bash: /m)
    assert.match(yes.stdout, /^I try\.\nresult: /)
  })

  await t.test('questions are answered by one choice or several, and dismissed where nobody sits', async () => {
    const one = await run('choose one', { answers: () => 'Green' })
    assert.deepEqual(one.asked, ['Which tea?'])
    assert.match(one.stdout, /Green/)
    assert.match((await run('choose some', { answers: () => ['Green', 'Black'] })).stdout, /Green.*Black/)
    const alone = await run('choose one')
    assert.equal(alone.code, 4)
    assert.match(alone.stderr, /dismissed, because nobody can be asked here: Which tea\?/)
  })

  await t.test('a turn that fails ends with 1 and says why', async () => {
    const failed = await run('please fail')
    assert.equal(failed.code, 1)
    assert.match(failed.stderr, /svc-code: the turn was not completed: .*the model is on strike/)
  })

  await t.test('Ctrl+C aborts the turn and ends with 130', async () => {
    let interrupt: () => void = () => undefined
    const ran = await run('hang', {
      onInterrupt: stop => {
        interrupt = stop
      },
      hear: text => {
        if (text.includes('so far')) interrupt()
      }
    })
    assert.equal(ran.code, 130)
    assert.equal(ran.stdout, 'so far\n')
    assert.match(ran.stderr, /the turn was cancelled/)
  })

  await t.test('with --json every event is a line, and the last one is the outcome', async () => {
    const ran = await run('count the teas', {}, '--json')
    const lines = ran.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { type: string })
    assert.ok(lines.some(line => line.type === 'turn.started'))
    const { session_id, ...outcome } = lines.at(-1) as { type: string; session_id?: string }
    assert.deepEqual(outcome, { type: 'outcome', reason: 'completed', text: 'four teas, all green', exit_code: 0 })
    assert.match(session_id ?? '', /^session_/)
    assert.equal(ran.stderr, '')
  })

  await t.test('the outcome has the texts of several steps in lines of their own', async () => {
    const ran = await run('touch it', {}, '--json', '--yes')
    const { text } = JSON.parse(ran.stdout.trim().split('\n').at(-1) ?? '') as { text: string }
    assert.match(text, /^I try\.\nresult: /)
  })

  await t.test('what cannot be is refused before anything is sent', async () => {
    assert.deepEqual((await command(home, ['run'], { input: ' \n' })).code, 2)
    assert.match((await command(home, ['run'], { answers: () => '' })).stderr, /\[prompt\] is missing/)
    assert.match((await run('x', {}, '--model', 'none')).stderr, /svc-code models lists those that are configured/)
    assert.match((await run('x', {}, '--demo')).stderr, /a server runs on .* already, and --demo belongs to the start of one/)
    assert.match((await run('x', {}, '--session', 'y')).stderr, /--cwd belongs to a new session/)
  })

  await t.test('a prompt that is refused leaves no session behind, and the one that it was for where it is', async () => {
    const list = async () => JSON.parse((await command(home, ['sessions', '--json'])).stdout) as { id: string }[]
    const before = await list()
    assert.match((await run('x', {}, '--model', 'none')).stderr, /model none is not known/)
    assert.equal((await command(home, ['run', 'x', '--session', before[0]?.id ?? '', '--model', 'none'])).code, 1)
    assert.deepEqual(await list(), before)
  })
})

test('run --demo uses a running server that has the demo model; what else belongs to a start is refused', async t => {
  const home = await freshDir()
  await serve(t, home, '--port', '0', '--demo')

  const ran = await command(home, ['run', '--demo', 'hello'])

  assert.deepEqual([ran.code, ran.stdout.slice(0, 21)], [0, 'I am the demo model. '], ran.stderr)
  assert.match((await command(home, ['run', '--demo', '--offline', 'hello'])).stderr, /--offline belongs to the start of one/)
})

test('without a running server run brings its own, which others see and which ends with it', async t => {
  const { home, cwd, upstream } = await place(t, (...given) =>
    script(...given).flatMap(step => ('chunks' in step ? [step, { hang: true }] : [step]))
  )
  let seen: Promise<Ran> | undefined
  const ran = await command(home, ['run', 'count', '--cwd', cwd], {
    hear: text => {
      // It is there as long as the model speaks.
      if (text.includes('teas')) seen ??= command(home, ['instances']).finally(() => upstream.release())
    }
  })
  assert.match((await seen)?.stdout ?? '', new RegExp(` pid ${process.pid} `))
  assert.deepEqual([ran.code, ran.stdout], [0, 'four teas, all green\n'])
  assert.deepEqual(await readdir(join(home, 'server', 'instances')), [])
  assert.match((await command(home, ['sessions'])).stdout, / completed .* count$/m)

  const none = await freshDir()
  const refused = await command(none, ['run', 'hello', '--cwd', none])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /svc-code login stores a key; svc-code run --demo needs none/)
  const demo = await command(none, ['run', 'list', 'the', 'files', '--demo', '--yes', '--cwd', cwd])
  assert.equal(demo.code, 0, demo.stderr)
  assert.ok(demo.stdout.length > 0)
  const beside = await command(home, ['run', 'list', 'the', 'files', '--demo', '--yes', '--cwd', cwd]) // where another model is the default
  assert.deepEqual([beside.code, beside.stdout], [0, demo.stdout], beside.stderr)
})

test('attach shows what was said, follows what comes, and sends what is typed', async t => {
  const { page, home, cwd } = await scene(t, script)
  const author = await page()
  const id = await newSession(author, cwd)
  await author.openSession(id)
  const done = author.next('prompt.completed')
  await prompt(author, id, 'count the teas')
  await done

  let turn = 0
  const typed = await command(home, ['attach', id.slice(8, 22)], { answers: () => (turn++ === 0 ? 'count again' : undefined) })
  assert.equal(typed.code, 0)
  assert.match(typed.stdout, /^\nyou: count the teas\n\nfour teas, all green\nfour teas, all green\n$/)
  assert.deepEqual(typed.asked, ['you', 'you'])

  let interrupt: () => void = () => undefined
  const attached = latch()
  const watching = command(home, ['attach', id], {
    more: new Promise(() => undefined),
    onInterrupt: stop => {
      interrupt = stop
    },
    hear: text => {
      if (text.includes('attached to')) attached.open()
    }
  })
  await attached.opened
  const from = author.frames.length
  await prompt(author, id, 'touch it')
  const asked = await author.next('event.approval.resolved', from)
  assert.equal(asked.payload.decision, 'rejected')
  await author.next('prompt.completed', from)
  interrupt()
  const watched = await watching
  assert.match(watched.stderr, /> Bash/)
  assert.match((await command(home, ['attach', 'session_0none'])).stderr, /no session session_0none/)
})

test('attach sends the lines of a pipe as prompts, and leaves at its end when their turns are over', async t => {
  const { page, home, cwd } = await scene(t, script)
  const id = await newSession(await page(), cwd)

  const piped = await command(home, ['attach', id], { input: 'count the teas\n\ntouch it\n' })
  assert.equal(piped.code, 0)
  assert.match(piped.stdout, /^four teas, all green\nI try\.\nresult: .*Nobody is there/)
  const failed = await command(home, ['attach', id, '--json'], { input: 'please fail' })
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /^the turn was not completed: .*the model is on strike/)
  assert.match(failed.stdout, /^\{"type":"snapshot".*"type":"turn.ended"/s)
  assert.equal((await command(home, ['attach', id])).code, 0)
})
