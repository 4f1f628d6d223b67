/**
 * What of the documents a run saw. Each process writes its part where `SVC_CODE_TEST_SEEN` says, at its end; `test/run.mjs` adds them up and
 * lists what is in the documents of the full server and was in no answer and no frame.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AnyRoute } from '../../../kernel/index.ts'

const place = process.env.SVC_CODE_TEST_SEEN
/** Lines: `saw` or `want`, and what. */
const lines = new Set<string>()

if (place) process.once('exit', () => writeFileSync(join(place, `${process.pid}.txt`), [...lines].map(line => `${line}\n`).join('')))

/** What any request may meet before its route is asked says nothing about the route. */
const atTheGate = new Set([40101, 40301, 40302, 42901])

/** An answer that fits its document. `code`: of the envelope; undefined: bytes, or no body. */
export function noteAnswer({ method, path, successCode = 0 }: AnyRoute, code: number | undefined): void {
  if (code === undefined || code === successCode) lines.add(`saw success of ${method} ${path}`)
  else if (atTheGate.has(code)) lines.add(`saw refusal of ${method} ${path}`)
  else lines.add(`saw failure of ${method} ${path}`)
}

/** A message of the AsyncAPI document that fits it, by its name there. */
export function noteMessage(name: string): void {
  lines.add(`saw message ${name}`)
}

/** What the run has to see. A route that takes nothing and declares no failure can only be refused at the gate, if it has one. */
export function demand(routes: readonly AnyRoute[], messages: readonly string[]): void {
  for (const { method, path, params, query, body, errors = [], auth } of routes) {
    lines.add(`want success of ${method} ${path}`)
    if (params || query || body || errors.length > 0) lines.add(`want failure of ${method} ${path}`)
    else if (auth !== 'none') lines.add(`want refusal of ${method} ${path}`)
  }
  for (const name of messages) lines.add(`want message ${name}`)
}
