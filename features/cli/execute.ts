/** Runs a command line: what `main.ts` does with the process's own streams, and tests with theirs. */
import { RouteMissing } from '../../kernel/errors.ts'
import { CommandError } from './command-error.ts'
import { type CommandLine, type CommandName, commandSpecs, type Runner } from './commands.ts'
import { homeOf } from './deployment.ts'
import { assertHome, homeProblem } from './home-access.ts'
import type { Io } from './io.ts'
import { assertLimits, tooFewDescriptors } from './limits.ts'
import { parseCommandLine, UsageError } from './options.ts'
import { productVersion } from './version.ts'

/** What runs a command; its code is loaded when it does. */
const runners: Readonly<Record<CommandName, () => Promise<Runner>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand,
  run: async () => (await import('./run.ts')).run,
  attach: async () => (await import('./attach.ts')).attach,
  sessions: async () => (await import('./sessions-command.ts')).sessions,
  login: async () => (await import('./login.ts')).login,
  models: async () => (await import('./models.ts')).models,
  config: async () => (await import('./config-command.ts')).config,
  status: async () => (await import('./status.ts')).status,
  stop: async () => (await import('./status.ts')).stop,
  open: async () => (await import('./open.ts')).open,
  logs: async () => (await import('./logs.ts')).logs,
  doctor: async () => (await import('./doctor.ts')).doctor,
  pack: async () => (await import('./pack-command.ts')).pack,
  packs: async () => (await import('./packs-command.ts')).packs,
  token: async () => (await import('./token.ts')).token,
  instances: async () => (await import('./status.ts')).instances,
  completion: async () => (await import('./completion.ts')).completion,
  help: async () => (await import('./help.ts')).help
}

/** Resolves to the exit code: 0 done, 1 failed, 2 the command line was not understood; `run` has more. Never rejects. */
export async function execute(args: readonly string[], io: Io): Promise<number> {
  let isServer = false
  try {
    const parsed = parseCommandLine(args)
    if (parsed.kind === 'version') {
      io.out(`${productVersion()}\n`)
      return 0
    }
    if (parsed.kind === 'help') {
      const { commandHelp, helpText } = await import('./help.ts')
      io.out(parsed.command === undefined ? helpText(productVersion()) : commandHelp(parsed.command, parsed.verb))
      return 0
    }
    if (parsed.command !== 'help' && parsed.command !== 'completion') assertLimits()
    if (usesHome(parsed)) assertHome(homeOf(parsed.flags, io.env), true)
    await warn(parsed, io)
    const run = await runners[parsed.command]()
    isServer = parsed.command === 'serve' || parsed.verb === 'dev' // nobody may read what one says, and it ends all the same
    return await run(parsed, io)
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    const { code } = error as { readonly code?: unknown }
    const hint = code === RouteMissing.code ? '; the pack that answers it is not active: svc-code packs says why' : ''
    io.err(`svc-code: ${code === 'EMFILE' ? tooFewDescriptors() : text}${hint}\n`)
    return error instanceof UsageError ? 2 : error instanceof CommandError ? error.exitCode : 1
  } finally {
    if (!isServer) await io.flushed()
  }
}

/** Commands that say themselves what is wrong with the home, or do without one. */
const ownWords: readonly CommandName[] = ['doctor', 'pack']

const usesHome = ({ command }: CommandLine): boolean => commandSpecs[command].flags.includes('home') && !ownWords.includes(command)

/** What is odd about `[packs]`, for commands that do not say it themselves. */
async function warn({ command, flags }: CommandLine, { env, err }: Io): Promise<void> {
  if (command === 'doctor' && homeProblem(homeOf(flags, env)) !== undefined) return // which it says
  if (command === 'serve' || command === 'packs' || !commandSpecs[command].flags.includes('home')) return
  const { configuredWarnings } = await import('./deployment-warnings.ts')
  for (const text of await configuredWarnings(flags, env)) err(`warning: ${text}\n`)
}
