/** Wires version control of sessions: status and diffs, and the status of files in listings. */
import { AppError, definePack, milliseconds, Type } from '../../kernel/index.ts'
import { rootOf } from '../file-search/index.ts'
import { FileStatuses, relativePath } from '../fs/index.ts'
import { assertOutbound, OutboundHosts } from '../llm/index.ts'
import { Sessions } from '../sessions/index.ts'
import { PathMissing } from '../workspaces/index.ts'
import { GitUnavailable, repositoryAt } from './command.ts'
import { diffFile, readGitStatus } from './contract.ts'
import { GitCache, pullRequests } from './pull-requests.ts'

export default definePack({
  name: 'git',
  description: 'Status and diffs of the repository around a session',
  area: 'Files',
  needs: { sessions: Sessions },
  provides: [FileStatuses],
  config: Type.Object({
    pull_request_program: Type.String({ default: 'gh', description: 'asked for the pull request; empty: nobody is' }),
    pull_request_ms: milliseconds({ minimum: 1, default: 5000, description: 'how long it may take' }),
    pull_request_wait_ms: milliseconds({ minimum: 0, default: 2000, description: 'how long a status waits for it; the next one shows it' })
  }),
  setup(ctx, { sessions }) {
    const { pull_request_program: program, pull_request_ms: programMs, pull_request_wait_ms: waitMs } = ctx.config
    if (program !== '') {
      const host = { url: pullRequests.href, why: `pull requests, by ${program}`, when: 'fs:git_status in a repository' }
      ctx.contribute(OutboundHosts, { pack: 'git', hosts: () => [host] })
    }
    const requests = new GitCache({
      now: () => ctx.now().getTime(),
      program,
      allowed: () => assertOutbound(pullRequests),
      programMs,
      waitMs
    })

    ctx.provide(FileStatuses, {
      async below(root, directories, signal) {
        const { statusesBelow } = await import('./listed.ts')
        return await statusesBelow(root, directories, signal)
      }
    })
    /** Throws GitUnavailable (40908) when the working directory is gone: it is in no repository. */
    const placeOf = async <B extends { readonly runtime_id: string }>(session_id: string, input: { readonly body: B }) => {
      try {
        return await rootOf(sessions, session_id, input)
      } catch (cause) {
        if (!AppError.is(cause) || cause.code !== PathMissing.code) throw cause
        throw new AppError(GitUnavailable, { message: cause.message, cause })
      }
    }
    ctx.route(readGitStatus, async input => {
      const { root, cwd, body } = await placeOf(input.params.session_id, input)
      const paths = body.paths?.map((path, at) => relativePath(path, `body.paths.${at}`))
      const { below, lineCounts, statusOf } = await import('./status.ts')
      const repository = await repositoryAt(root.real, input.signal)
      const asked = requests.of([cwd])
      const status = await statusOf(repository, false, input.signal)
      const { additions, deletions } = await lineCounts(repository, status, input.signal)
      const { branch, ahead, behind, entries } = status
      const shown = paths?.length ? await below(paths, entries) : entries
      const pullRequest = (await asked).get(cwd)?.pull_request ?? null
      return { branch, ahead, behind, entries: Object.fromEntries(shown), additions, deletions, pullRequest }
    })
    ctx.route(diffFile, async input => {
      const { root, body } = await placeOf(input.params.session_id, input)
      const path = relativePath(body.path)
      const { diffOf } = await import('./diff.ts')
      return await diffOf(root, path, input.signal)
    })
  }
})
