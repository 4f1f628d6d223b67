/** Tells an agent of instruction files beside the files that it works on, each once. */
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { defineSlot } from '../../kernel/index.ts'
import type { Injection, StepInjector } from '../agent/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { filled, type Homes, placesAbove, placesFor } from './files.ts'
import { reminderVariant, type Touched, touchedState } from './touched.ts'

/** Paths of the state that were looked at since the agent was opened. */
export const LookedSlot = defineSlot<Set<string>, AgentHost>('instructions-looked', () => new Set())

/** Named in one reminder. */
const atOnce = 20

export function nearbyInjector(homes: Homes): StepInjector {
  return {
    variant: reminderVariant,
    inject({ agent }, history) {
      const touched = history.tracked(touchedState)
      return touched ? said(agent, touched) : history.track(touchedState).then(({ value }) => said(agent, value))
    }
  }

  /** Mostly the agent has been nowhere else since. */
  function said(agent: AgentHost, touched: Touched): Promise<Injection | undefined> | undefined {
    const looked = agent.get(LookedSlot)
    // Gone from the state by a compaction, or an undo.
    for (const path of looked) if (!touched.paths.includes(path)) looked.delete(path)
    const fresh = touched.paths.filter(path => !looked.has(path))
    return fresh.length === 0 ? undefined : remind(agent, fresh, touched)
  }

  async function remind(agent: AgentHost, fresh: readonly string[], { paths, told }: Touched): Promise<Injection | undefined> {
    const looked = agent.get(LookedSlot)
    const known = new Set([...told, ...paths, ...(await placesFor(agent.session.cwd, homes)).flat()])
    const dirs = new Set((await Promise.all(fresh.map(directoryOf))).flatMap(dir => dir ?? []))
    const found = new Set((await Promise.all([...dirs].map(async dir => filled(await placesAbove(dir))))).flat())
    for (const path of fresh) looked.add(path)
    const named = [...found].filter(path => !known.has(path)).slice(0, atOnce)
    if (named.length === 0) return undefined
    const list = named.map(path => `- ${path}`).join('\n')
    return {
      text: `There are instructions for places that you are working on; read them before you go on there:\n${list}`,
      facts: { paths: named }
    }
  }
}

/** The path itself or where it lies; undefined when nothing is there. */
async function directoryOf(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined) // a word of a command, or a file that is gone
  return found?.isDirectory() ? path : found && dirname(path)
}
