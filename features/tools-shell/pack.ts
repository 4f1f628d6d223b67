/** Wires tools-shell: contributes Bash and ends running commands with the pack. */
import { definePack, type EventTarget, milliseconds, Type } from '../../kernel/index.ts'
import { PromptBlocks } from '../agent/index.ts'
import { backgroundSection, Config, servicesSection } from '../config/index.ts'
import { modelsSection, providersSection } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { Tasks } from '../tasks/index.ts'
import { ToolAuthority, Tools } from '../tools/index.ts'
import { apart } from './apart.ts'
import { CLOSE_GRACE_MS, createBash } from './bash.ts'
import type { Command } from './command.ts'
import type { ShellEvents, TellShell } from './command-run.ts'
import { shellCompleted, shellOutput, shellStarted } from './contract.ts'
import { findShell, hiddenFrom } from './environment.ts'
import { OutputPipes } from './pipes.ts'
import { CommandRecord } from './record.ts'
import { createShell, Shell } from './shell.ts'

export default definePack({
  name: 'tools-shell',
  description: 'Bash: runs shell commands',
  area: 'Tools',
  needs: { authority: ToolAuthority },
  optional: { config: Config, tasks: Tasks },
  provides: [Shell],
  config: Type.Object({
    kill_grace_ms: milliseconds({ minimum: 0, default: 5000, description: 'between SIGTERM and SIGKILL, without the pack tasks' }),
    drain_ms: milliseconds({
      minimum: 0,
      default: 250,
      description: 'reading on after the exit while another process holds the output open'
    }),
    keep_apart: Type.Boolean({
      default: false,
      description: 'Linux: commands cannot look into the memory of the server; sudo and other setuid programs do not work in them'
    }),
    hide_env: Type.Array(Type.String(), { default: [], description: 'environment variables that commands do not get; `*` is a wildcard' })
  }),
  async setup(ctx, { config, tasks }) {
    const record = await CommandRecord.open(ctx.home, ctx.newId(), ctx.log)
    const pipes = new OutputPipes(record.pipes)
    ctx.own(() => pipes.close())
    const running = new Set<Command>()
    const emit: { [N in keyof ShellEvents]: (event: ShellEvents[N], to: EventTarget) => void } = {
      started: ctx.event(shellStarted),
      output: ctx.event(shellOutput),
      completed: ctx.event(shellCompleted)
    }
    let over = false
    ctx.own(async () => {
      over = true
      for (const command of running) command.stop(CLOSE_GRACE_MS)
      await Promise.all([...running].map(command => command.ended))
    })
    const shell = findShell()
    ctx.contribute(PromptBlocks, {
      name: 'shell',
      order: 310,
      render: () => ({ text: `The shell of Bash is ${shell}.`, variables: { shell } })
    })
    const ports = {
      shell,
      ...(ctx.config.keep_apart ? { launcher: await apart() } : {}),
      pipes,
      record,
      over: () => over,
      hidden: () => hiddenFrom(records(config()), ctx.config.hide_env),
      own(command: Command) {
        running.add(command)
        return () => running.delete(command)
      },
      events:
        ({ id: subject, session }: AgentHost): TellShell =>
        (name, event) => {
          if (!over || name === 'started') emit[name](event, { session_id: session.id, subject })
        },
      killGraceMs: ctx.config.kill_grace_ms,
      drainMs: ctx.config.drain_ms
    }
    const background = () => {
      const { bash_auto_background_on_timeout: auto = true, bash_task_timeout_s: seconds = 600 } = config()?.get(backgroundSection) ?? {}
      return { auto, seconds }
    }
    ctx.contribute(Tools, createBash({ ...ports, home: ctx.home, newId: () => ctx.newId(), tasks, background }))
    ctx.provide(Shell, createShell(ports))
  }
})

/** What of the configuration holds keys. */
const records = (config: Config | undefined) =>
  config ? [config.get(providersSection), config.get(modelsSection), config.get(servicesSection)] : []
