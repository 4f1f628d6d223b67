/**
 * Runs what a page of the documents prints, as a reader would: one bash per page, in a project of its own and with a home of its own. `curl`,
 * `node` and the command line are real. `npm` and `sleep` ask this process, which starts the server and knows when a turn is over.
 */
import { spawn } from 'node:child_process'
import { chmod, cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Running, serveWith } from './cli.ts'
import { projectRoot } from './project-root.ts'
import { freshDir } from './temp.ts'

interface TestLike {
  after(fn: () => unknown): void
}

const main = fileURLToPath(new URL('../../bundle/main.js', import.meta.url))

/** A fenced block: what it is, where it is to be saved (```js name), its text. */
export interface Block {
  readonly kind: string
  readonly file: string | undefined
  readonly text: string
  /** Of its first line of text, from 1. */
  readonly line: number
}

export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w*) ?(\S*)\n(.*?)^```/gms)].map(({ 1: kind = '', 2: file = '', 3: text = '', index }) => ({
    kind,
    file: file === '' ? undefined : file,
    text,
    line: page.slice(0, index).split('\n').length + 1
  }))
}

/** What other pages take from the first one. */
const variables = `U=http://127.0.0.1:58627/api/v1
H="Authorization: Bearer $(npx svc-code token)"
J='Content-Type: application/json'
S=$(curl -s -H "$H" -H "$J" $U/sessions -d "{\\"metadata\\":{\\"cwd\\":\\"$PWD\\"}}" | sed 's/.*"id":"\\(session_[^"]*\\)".*/\\1/')
`

/** Asks this process: arguments, an empty one, then the variables that are set for the command. */
const asking = `#!/bin/bash
{ printf '%s\\0' "$@"; printf '\\0'; env -0 | grep -z '^SVC_CODE_'; } |
  "$DOC_CURL" -sS --fail-with-body --data-binary @- "$DOC_CONTROL/\${0##*/}"
`

/** The command line that was built, where it is called. */
const program = `#!/bin/bash
[ "$1" = svc-code ] || { echo "nobody knows npx $1" >&2; exit 1; }
exec "$DOC_NODE" "$DOC_MAIN" "\${@:2}"
`

/** Every answer of the API is a success, unless the line says which code it shows (\`# 40001\`). */
const checkedCurl = `#!/bin/bash
"$DOC_CURL" "$@" > "$DOC_PLACE/answer" || exit
cat "$DOC_PLACE/answer"; echo >&2
code=$(grep -o '^{"code":[0-9]*' "$DOC_PLACE/answer" | grep -o '[0-9]*$')
[ "\${code:-0}" = "\${EXPECTED:-0}" ] || { echo "answered $(head -c 400 "$DOC_PLACE/answer"), expected \${EXPECTED:-0}" >&2; exit 1; }
`

/**
 * Runs every shell block of these pages in order: after the start of a server (with the demo model, unless the first block starts one or
 * goes without), which the variables of the first page follow. Resolves to what was printed; rejects with the command that failed.
 */
export async function runPages(t: TestLike, pages: readonly string[]): Promise<string> {
  const blocks = pages.flatMap(blocksOf)
  const place = await freshDir()
  const [bin, project, home] = ['bin', 'project', 'me'].map(name => join(place, name)) as [string, string, string]
  await cp(fileURLToPath(new URL('examples/demo/project', projectRoot)), project, { recursive: true })
  await symlink(fileURLToPath(new URL('node_modules', projectRoot)), join(project, 'node_modules'))
  await Promise.all([bin, home].map(dir => mkdir(dir)))
  for (const [name, text] of Object.entries({ npm: asking, npx: program, sleep: asking, curl: checkedCurl })) {
    await writeFile(join(bin, name), text)
    await chmod(join(bin, name), 0o755)
  }
  const ports = await freePorts(2)
  const adapted = (text: string) =>
    text
      .replaceAll(/\b(58627|8080)\b/g, String(ports[0]))
      .replaceAll('58700', String(ports[1]))
      .replaceAll('/tmp/other-home', join(place, 'other'))
      .replaceAll(/^(curl .*)# (\d{5})$/gm, 'EXPECTED=$2 $1')
  // One with a path is an excerpt of a file of the project.
  for (const { file, text } of blocks) if (file !== undefined && !file.includes('/')) await writeFile(join(project, file), adapted(text))
  const shells = blocks.filter(({ kind }) => kind === 'sh').map(({ text }) => text)
  if (!/npm start|svc-code run/.test(shells[0] ?? '')) shells.unshift('npm start -- --demo >/dev/null')
  shells.splice(shells.findIndex(text => text.includes('npm start')) + 1, 0, variables)
  const script = adapted(shells.join('\n'))
  const control = await listen(t, new Desk(t, { home, project, port: ports[0] ?? 0 }))
  const curl = process.env.DOC_CURL ?? (await ended('sh', ['-c', 'command -v curl'])).trim()
  const env = {
    SVC_CODE_OFFLINE: '1', // nobody is called, whatever a page configures
    SVC_CODE_CATALOG_URL: 'off',
    ...process.env,
    PATH: `${bin}:${process.env.PATH}`,
    HOME: home,
    DOC_CONTROL: control,
    DOC_CURL: curl,
    DOC_PLACE: place,
    DOC_NODE: process.execPath,
    DOC_MAIN: main
  }
  return await ended('bash', ['-c', `set -eEo pipefail\ntrap 'echo "FAILED: $BASH_COMMAND" >&2' ERR\n${script}`], { cwd: project, env })
}

/** Does what `npm` and `sleep` ask for. */
class Desk {
  readonly #t: TestLike
  readonly #at: { readonly home: string; readonly project: string; readonly port: number }
  #server: Running | undefined
  /** What the server was started with; asked for again, it stays. */
  #words = ''

  constructor(t: TestLike, at: { readonly home: string; readonly project: string; readonly port: number }) {
    this.#t = t
    this.#at = at
  }

  async answer(command: string, words: readonly string[], variables: NodeJS.ProcessEnv): Promise<string> {
    const env = { ...variables, HOME: this.#at.home, SVC_CODE_HOME: join(this.#at.home, '.svc-code') }
    if (command === 'sleep') return await this.#settled()
    const [script, ...rest] = words
    if (script === 'start')
      return await this.#start(
        env,
        rest.filter((word, at) => !(word === '--' && at === 0))
      )
    if (script === 'ci' || script === 'test' || script === 'run') return '' // the pipeline runs these
    throw new Error(`nobody knows npm ${words.join(' ')}`)
  }

  /** One server at a time, as in a terminal; one on a home of its own runs beside it. */
  async #start(env: NodeJS.ProcessEnv, words: readonly string[]): Promise<string> {
    const beside = words.includes('--home')
    if (this.#server?.child.exitCode === null && words.join(' ') === this.#words) return this.#server.printed()
    if (!beside && this.#server) {
      this.#server.child.kill('SIGTERM')
      await this.#server.ended
    }
    const port = words.includes('--port') ? [] : ['--port', String(this.#at.port)]
    const args = words.map(word => (word.startsWith('./') ? join(this.#at.project, word) : word))
    const running = await serveWith(this.#t, env, ...args, ...port)
    if (!beside) {
      this.#server = running
      this.#words = words.join(' ')
    }
    return running.printed()
  }

  /** Resolves when no turn runs, or each one waits for the user. */
  async #settled(): Promise<string> {
    const { url, token } = this.#server ?? {}
    for (;;) {
      const answer = await fetch(`${url}/api/v1/sessions?busy=true`, { headers: { authorization: `Bearer ${token}` } })
      const { data } = (await answer.json()) as { data: { items: readonly { pending_interaction: string }[] } }
      if (data.items.every(session => session.pending_interaction !== 'none')) return ''
      await delay(10)
    }
  }
}

async function listen(t: TestLike, desk: Desk): Promise<string> {
  const server = createServer((request, response) => {
    asked(request)
      .then(({ command, words, env }) => desk.answer(command, words, env))
      .then(
        text => response.end(text),
        error => response.writeHead(500).end(String(error))
      )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function asked(request: IncomingMessage) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const all = Buffer.concat(chunks).toString().split('\0')
  const words = all.slice(0, all.indexOf(''))
  const env = Object.fromEntries(
    all
      .slice(words.length + 1)
      .filter(line => line !== '')
      .map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
  )
  return { command: (request.url ?? '').slice(1), words, env }
}

/** Below those that systems give to whoever asks for any: another test would take them as soon as they are free again. */
async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const server = createServer()
    const isFree = await new Promise<boolean>(resolve => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    ports.push(port)
    await new Promise(resolve => server.close(resolve))
  }
  return ports
}

/** What a program printed; rejects when it did not end with 0. */
function ended(command: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Promise<string> {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let all = ''
  child.stdout.on('data', chunk => {
    stdout += String(chunk)
    all += String(chunk)
  })
  child.stderr.on('data', chunk => {
    all += String(chunk)
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      if (code === 0) resolve(stdout)
      else reject(new Error(`ended with ${code}\n${all.slice(-4000)}`))
    })
  })
}
