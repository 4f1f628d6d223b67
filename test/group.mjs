/**
 * Runs files in this process, each one that no other process has taken. The test runner follows every promise by an async hook, to say of an error
 * that nobody caught which test it came from: a fifth of the time of all tests. Here it does so while files register their tests; later such an
 * error is printed and fails the group, and `--alone` tells which test.
 */
import hooks from 'node:async_hooks'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

const { createHook } = hooks
let follow
let forget
/** Tests and suites that have not ended. */
let open = []
hooks.createHook = ({ init, destroy }) => {
  const noted = []
  follow = createHook({
    init(id, type, by, resource) {
      noted.push(id)
      if (type === 'Test') open.push(resource)
      init(id, type, by, resource)
    },
    destroy
  })
  // Of what begins while the hook is on, the runner would keep the test for good: it never hears of the end.
  forget = () => {
    for (const id of noted.splice(0)) destroy?.(id)
  }
  return follow
}
const { after, beforeEach, describe } = await import('node:test') // makes its hook now
hooks.createHook = createHook

for (const kind of ['uncaughtException', 'unhandledRejection'])
  process.on(kind, error => process.stderr.write(`${kind}: ${error?.stack ?? error}\n`))

// A list of listeners that grows is a leak, or is said to be none where it is made.
process.on('warning', warning => {
  if (warning.name !== 'MaxListenersExceededWarning') return
  process.stderr.write(`${warning.stack}\n`)
  process.exitCode = 1
})

// For this process alone (`run.mjs`).
delete process.env.GLIBC_TUNABLES

/** Of a file and of each of its tests, on a machine that does much else. */
const timeout = 300_000

/** `files`: names and URLs, in the order in which they are to be begun. `most`: so many of them this process takes; then another one goes on. */
export async function suites(files, most) {
  beforeEach(letGo)
  let taken = 0
  for (const [index, [name, url]] of files.entries()) {
    if (taken === most) return
    if (!takes(index)) continue
    taken++
    await suite(name, url)
  }
}

function takes(index) {
  try {
    mkdirSync(join(process.env.SVC_CODE_TEST_TAKEN, String(index)))
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

/** One file as a suite of its name; resolves at its end. */
function suite(name, url) {
  return new Promise(resolve => {
    follow?.enable()
    describe(name, { timeout }, async () => {
      if (!follow) throw new Error('node:test was loaded before group.mjs, so its hook cannot be switched off')
      after(resolve)
      await import(url)
      follow.disable()
      forget()
    })
  })
}

/**
 * The runner keeps every test to the end, and a test what its `after` has closed: whole servers. They are a multiple of all else in the memory of a
 * group, which every start of a child process has to copy the tables of.
 */
function letGo() {
  open = open.filter(test => {
    if (test.finished) dropEnds(test)
    return !test.finished
  })
}

/** These are inner parts of the runner: where they are called otherwise, everything is kept as it would be without this. */
function dropEnds({ hooks, subtests }) {
  hooks?.after?.splice(0)
  for (const subtest of subtests ?? []) dropEnds(subtest)
}
