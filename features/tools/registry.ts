/** Which tools exist, which of them an agent may use, and how models and clients see them. */
import {
  type Accounts,
  type AppError,
  type Collection,
  type Contribution,
  type Derived,
  defineSlot,
  derived,
  headOf,
  nearest,
  packOfTap,
  type Static
} from '../../kernel/index.ts'
import type { LlmTool } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { shownSchema } from './arguments.ts'
import type { ToolEntry } from './contract.ts'
import { meansTool } from './glob.ts'
import { type Tool, type ToolPolicy, type ToolSet, undecided } from './tool.ts'

type Listed<T> = Pick<Collection<T>, 'entries'>

interface RegistryPorts {
  readonly tools: Listed<Tool>
  readonly sets: Listed<ToolSet>
  readonly policies: Listed<ToolPolicy>
  readonly accounts: Accounts
  /** What is said for a pack that is away and comes back by itself. */
  readonly absence: (pack: string) => AppError | undefined
}

/** What the model of an agent was shown at the beginning of its turn. */
interface Offer {
  readonly turn_id: number
  readonly tools: readonly LlmTool[]
  /** Those that they show. */
  readonly of: readonly Tool[]
}

/** Tools that the policies refuse an agent, by their names, as long as what that follows from is the same. */
interface Refusals {
  readonly from: readonly unknown[]
  readonly refused: ReadonlyMap<string, string>
}

export const RefusalsSlot = defineSlot<{ last?: Refusals }, AgentHost>('tool-refusals', () => ({}))
export const OfferSlot = defineSlot<{ last?: Offer }, AgentHost>('tool-offer', () => ({}))

/** Live view of the contributed tools. Of two tools with one name the first counts. */
export class Registry {
  readonly #ports: RegistryPorts
  /** What brought the tools that were seen last, by their names. */
  readonly #owners = new Map<string, Contribution<unknown>>()
  /** Contributed tools by their names. */
  readonly #common: Derived<ReadonlyMap<string, Contribution<Tool>>>
  /** As models saw it last, by the schema of the tool: the same object as long as nothing changes, so that it is written for the wire once. */
  readonly #shown = new WeakMap<object, LlmTool>()

  constructor(ports: RegistryPorts) {
    this.#ports = ports
    const { tools } = ports
    this.#common = derived(
      () => [tools.entries()],
      () => {
        const first = new Map<string, Contribution<Tool>>()
        for (const from of tools.entries()) if (!first.has(from.item.name)) first.set(from.item.name, from)
        return first
      }
    )
  }

  /** What other packs contributed is known no more. */
  close(): void {
    this.#common.forget()
  }

  /** Why the agent must not use the tool; undefined when it may. */
  refusal(agent: AgentHost, tool: Tool): string | undefined {
    return this.#asked(agent, [tool]).refused.get(tool.name)
  }

  /** Which of the tools the agent must not use, by their names, and why. */
  #refusals(agent: AgentHost, tools: readonly Tool[]): ReadonlyMap<string, string> {
    const from = this.#basis(agent, tools)
    const kept = agent.get(RefusalsSlot)
    if (from && kept.last?.from.length === from.length && from.every((each, at) => each === kept.last?.from[at])) return kept.last.refused
    const { refused, failed } = this.#asked(agent, tools)
    if (from && !failed) kept.last = { from, refused }
    return refused
  }

  /** What the refusals follow from; undefined when a policy does not say. */
  #basis(agent: AgentHost, tools: readonly Tool[]): readonly unknown[] | undefined {
    const { policies, accounts } = this.#ports
    const entries = policies.entries()
    const from: unknown[] = [entries]
    for (const { name, source } of tools) from.push(name, source)
    for (const { pack, item: policy } of entries) {
      try {
        const basis = accounts.onAccountOf(pack, `tool policy ${policy.name}`, () => policy.basis?.(agent))
        if (!basis) return undefined
        from.push(basis.length, ...basis)
      } catch {
        return undefined // it is asked itself, and blamed when that fails
      }
    }
    return from
  }

  /** What the policies say. */
  #asked(agent: AgentHost, tools: readonly Tool[]): { readonly refused: ReadonlyMap<string, string>; readonly failed: boolean } {
    const refused = new Map<string, string>()
    let failed = false
    for (const { item: policy } of this.#ports.policies.entries()) {
      for (const tool of tools) {
        const reason = refused.has(tool.name) ? undefined : policy.refuses(agent, tool)
        if (reason === undefined) continue
        refused.set(tool.name, reason)
        failed ||= reason === undecided(policy.name, tool.name)
      }
    }
    return { refused, failed }
  }

  /** What goes to the model, the same throughout a turn. */
  forModel(agent: AgentHost, turn_id: number): readonly LlmTool[] {
    const offer = agent.get(OfferSlot)
    if (offer.last?.turn_id !== turn_id) {
      const there = this.#all(agent)
      const names = new Set(there.map(({ name }) => name))
      const back = offer.last?.of.filter(({ name }) => !names.has(name) && this.#absence(name)) ?? [] // soon: the model goes on knowing them
      const all = [...there, ...back]
      const refused = this.#refusals(agent, all)
      const of = all.filter(tool => !refused.has(tool.name))
      offer.last = { turn_id, tools: of.map(tool => this.#show(tool)), of }
    }
    return offer.last.tools
  }

  /** The tool as the agent has it now, or why it cannot be called, as a sentence for the model. */
  callable(agent: AgentHost, name: string): Tool | string {
    const tool = this.#find(agent, name)
    if (tool) return this.refusal(agent, tool) ?? tool
    const away = this.#absence(name)
    if (away) return `The tool ${name} cannot be called now: ${away.message} in a moment.`
    const shown = agent.get(OfferSlot).last?.tools.some(each => each.name === name)
    if (shown) return `The tool ${name} is not there any more.`
    const near = this.#near(agent, name.slice(0, 200))
    return `Tool not found: ${headOf(name, 200)}${near === undefined ? '' : `. Did you mean ${near}?`}`
  }

  /** A tool that the agent may use and the model may have meant: models write another case, or the name of a namespace in front. */
  #near(agent: AgentHost, name: string): string | undefined {
    const all = this.#all(agent)
    const refused = this.#refusals(agent, all)
    const known = all.filter(tool => !refused.has(tool.name)).map(tool => tool.name)
    return spelledLike(name.split(/[\s.:/]/).at(-1) ?? '', known)
  }

  /** Entries of the policies that mean no tool, with the one that may be meant. There may be an MCP server at any time. */
  unmatched(agent: AgentHost): readonly string[] {
    const { policies, sets } = this.#ports
    const entries = policies
      .entries()
      .flatMap(({ item }) => item.entries?.(agent) ?? [])
      .filter(entry => !entry.startsWith('mcp__'))
    if (entries.length === 0) return []
    const there = this.#all(agent).map(({ name }) => name)
    const known = [...there, ...sets.entries().flatMap(({ item }) => item.names ?? []), ...this.#owners.keys()]
    const unknown = entries.filter((entry, at) => !known.includes(entry) && entries.indexOf(entry) === at)
    return unknown.map(entry => {
      const meant = spelledLike(entry, known)
      return meant === undefined ? entry : `${entry} (did you mean ${meant}?)`
    })
  }

  /** Aborts when the tool that was found last under this name leaves with its pack. */
  leaving(name: string): AbortSignal | undefined {
    return this.#owners.get(name)?.signal
  }

  /** What clients see. */
  forClients(agent: AgentHost): Static<typeof ToolEntry>[] {
    const all = this.#all(agent)
    const refused = this.#refusals(agent, all)
    return all.map(tool => {
      const server = tool.source === 'mcp' ? /^mcp__(.+?)__/.exec(tool.name)?.[1] : undefined
      return {
        name: tool.name,
        description: tool.description,
        input_schema: null,
        source: tool.source,
        ...(server === undefined ? {} : { mcp_server_id: server }),
        active: !refused.has(tool.name)
      }
    })
  }

  /** What is said for the pack of a tool that was there, when it comes back. */
  #absence(name: string): AppError | undefined {
    const owner = this.#owners.get(name)
    return owner && this.#ports.absence(owner.pack)
  }

  /** Puts a tap that failed, or took too long, down to its pack. */
  blameTap(hook: { readonly name?: string | undefined }, tap: Parameters<typeof packOfTap>[0], error: unknown): void {
    this.#ports.accounts.blame(packOfTap(tap), `tap of ${hook.name}`, error)
  }

  /** Puts a call that failed in a way that its tool did not expect down to the pack of the tool. */
  blame(name: string, error: unknown): void {
    this.#ports.accounts.blame(this.#owners.get(name)?.pack ?? 'tools', `tool ${name}`, error)
  }

  #all(agent: AgentHost): Tool[] {
    const all = [...this.#common().values()].map(from => this.#owned(from, from.item))
    const names = new Set(this.#common().keys())
    for (const from of this.#ports.sets.entries()) {
      for (const tool of this.#toolsOf(from, agent)) {
        if (names.has(tool.name)) continue
        names.add(tool.name)
        all.push(this.#owned(from, tool))
      }
    }
    return all
  }

  #find(agent: AgentHost, name: string): Tool | undefined {
    const common = this.#common().get(name)
    if (common) return this.#owned(common, common.item)
    for (const from of this.#ports.sets.entries()) {
      const tool = this.#toolsOf(from, agent).find(each => each.name === name)
      if (tool) return this.#owned(from, tool)
    }
    return undefined
  }

  #owned(from: Contribution<unknown>, tool: Tool): Tool {
    this.#owners.set(tool.name, from)
    return tool
  }

  /** The tools of a set that fails are left out. */
  #toolsOf({ pack, item: set }: Contribution<ToolSet>, agent: AgentHost): readonly Tool[] {
    const { accounts } = this.#ports
    const what = `tool set ${set.name}`
    try {
      return accounts.onAccountOf(pack, what, () => set.tools(agent))
    } catch (err) {
      accounts.blame(pack, what, err)
      return []
    }
  }

  #show({ name, description, parameters, model_schema }: Tool): LlmTool {
    const schema = model_schema ?? parameters
    const known = this.#shown.get(schema)
    if (known?.name === name && known.description === description) return known
    const written = known?.parameters ?? model_schema ?? shownSchema(parameters)
    const shown = { name, description, parameters: written }
    this.#shown.set(schema, shown)
    return shown
  }
}

const spelledLike = (name: string, known: readonly string[]): string | undefined =>
  known.find(each => each.toLowerCase() === name.toLowerCase()) ?? nearest(name, known)

/** The policy behind the configuration's `tools.enabled` and `tools.disabled`. */
export function configPolicy(read: () => { readonly enabled?: readonly string[]; readonly disabled?: readonly string[] }): ToolPolicy {
  return {
    name: 'config',
    refuses(_agent, tool) {
      const { enabled = [], disabled = [] } = read()
      const off =
        (enabled.length > 0 && !enabled.some(entry => meansTool(entry, tool.name))) || disabled.some(entry => meansTool(entry, tool.name))
      return off ? `The tool ${tool.name} is switched off in the configuration.` : undefined
    },
    basis: () => [read()],
    entries({ record }) {
      const { enabled = [], disabled = [] } = read()
      return record.type === 'main' ? [...enabled, ...disabled] : [] // told once
    }
  }
}
