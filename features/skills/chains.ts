/** Which skill that the model loads comes of which: one is called by another when the text of that one names it. */
import { defineSlot } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'

/** Skills that call each other are loaded so deep. Those that nobody calls are as many as the model likes. */
const mostInChain = 3

interface Activation {
  readonly name: string
  readonly args: string | undefined
  readonly step: number
  /** Lower case. */
  readonly text: string
  /** The skill that called it, if any. */
  readonly caller: Activation | undefined
}

interface Place {
  /** Why it may not be loaded. */
  readonly over?: string
  /** Another skill called it. */
  readonly nested: boolean
  /** The model reads its text in the next step. */
  loaded(text: string): void
}

/** What an agent loaded in the newest turn. */
export class SkillChains {
  #turn_id = -1
  #activations: Activation[] = []

  place({ turn_id, step }: { readonly turn_id: number; readonly step: number }, given: string, args: string | undefined): Place {
    if (turn_id !== this.#turn_id) this.#activations = []
    this.#turn_id = turn_id
    const name = given.toLowerCase()
    // Calls of one response were written before any of their texts was read.
    const read = this.#activations.filter(each => each.step < step)
    const isNamed = mention(name)
    // With the same arguments a skill is loaded again because it says so, by whatever name.
    const caller = read.findLast(each => (each.name === name && each.args === args) || isNamed.test(each.text))
    const chain = [...callers(caller), name]
    return {
      nested: caller !== undefined,
      loaded: text => void this.#activations.push({ name, args, step, text: text.toLowerCase(), caller }),
      ...(chain.length > mostInChain
        ? { over: `Skills load each other ${mostInChain} deep at most (${chain.join(' > ')}): go on with what they say.` }
        : {})
    }
  }
}

export const ChainsSlot = defineSlot('skills-loaded', (_agent: AgentHost) => new SkillChains())

/** Outermost first. */
function callers(activation: Activation | undefined): string[] {
  return activation ? [...callers(activation.caller), activation.name] : []
}

/** The name as a word of its own. */
function mention(name: string): RegExp {
  return new RegExp(`(?<![\\w.-])${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?![\\w-]|\\.\\w)`)
}
