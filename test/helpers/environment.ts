/** Environment variables of the process, changed for one test. */
import type { TestContextLike } from '../../kernel/testing.ts'

/** Sets environment variables; undefined takes one away. */
export function setEnvironment(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
}

/** As `setEnvironment`, for one test. */
export function withEnvironment(t: TestContextLike, variables: Readonly<Record<string, string | undefined>>): void {
  const before = Object.fromEntries(Object.keys(variables).map(name => [name, process.env[name]]))
  setEnvironment(variables)
  t.after(() => setEnvironment(before))
}
