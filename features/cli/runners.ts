/** What runs a command; its code is loaded when it does. */
import type { CommandName, Runner } from './commands.ts'

export const runners: Readonly<Record<CommandName, () => Promise<Runner>>> = {
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
