/** A session whose working directory is a git repository. */
import { execFileSync } from 'node:child_process'
import git from '../../../features/git/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fileScene } from '../fs/scene.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
export type Json = any

const env = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' }

/** Runs git as a user would. */
export const run = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', '-c', 'protocol.file.allow=always', ...args], {
    cwd,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore']
  })

export async function repository(t: TestContextLike, config: object = { pull_request_program: '' }) {
  const scene = await fileScene(t, [git], { config: { git: config } })
  run(scene.cwd, 'init', '-q', '-b', 'main')
  const commit = (message = 'x') => {
    run(scene.cwd, 'add', '-A')
    run(scene.cwd, 'commit', '-qm', message)
  }
  return {
    ...scene,
    commit,
    run: (...args: string[]) => run(scene.cwd, ...args),
    /** Answers of `fs:<action>` of a new session in another directory. */
    async askIn(dir: string, action: string, body?: object): Promise<Json> {
      const { data } = await scene.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: dir } })
      return await scene.rest.json('POST', `/api/v1/sessions/${(data as { id: string }).id}/fs:${action}`, body)
    }
  }
}

/** Sets a variable of this process until the test ends. */
export function setEnv(t: TestContextLike, name: string, value: string): void {
  const before = process.env[name]
  process.env[name] = value
  t.after(() => {
    if (before === undefined) delete process.env[name]
    else process.env[name] = before
  })
}
