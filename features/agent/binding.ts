/** What an agent is bound to: settings, profile, model and the system prompt that follows from them. */
import { AppError, inOrder, nextPass, ValidationFailed } from '../../kernel/index.ts'
import type { History, HistoryRecord } from '../history/index.ts'
import { type ResolvedModel, windowOf } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { AgentDeps } from './deps.ts'
import type { AgentProfile, PromptWarning } from './extension-points.ts'
import { promptBasis, renderPrompt } from './prompt/profile.ts'
import type { AgentSettings } from './service.ts'
import {
  type Bound,
  bound,
  boundState,
  changed,
  disabledTools,
  inForce,
  PromptDateSlot,
  promptRecord,
  type RenderedPrompt,
  sameSettings,
  settingsRecord,
  ToolLimitsSlot,
  type ToolRange
} from './settings.ts'

/** Frozen for the whole turn: a switch of the model counts from the next one. */
export interface TurnSetup {
  readonly model: ResolvedModel
  readonly effort: string
  readonly system: string
}

/** What the system prompt follows from, looked up ahead of the turn. */
export interface LookedUp {
  readonly profile: string
  readonly basis: string
}

export interface TurnBinding {
  /** To be recorded with the turn's start. */
  readonly records: readonly HistoryRecord[]
  /** Frozen for the turn; throws what keeps it from running, so that the failure shows inside the turn. */
  readonly use: () => TurnSetup
  /** What clients are to hear of the system prompt, when it was rendered now. */
  readonly warnings: readonly PromptWarning[]
}

export class AgentBinding {
  readonly #host: AgentHost
  readonly #history: History
  readonly #deps: AgentDeps
  #settings: AgentSettings
  /** One change after the other: each begins with what the one before made. */
  readonly #inOrder = inOrder()
  /** The disk refused what the agent is bound to. */
  #unsaved = false
  /** Rendered last, and recorded. */
  #rendered: RenderedPrompt | undefined
  /** Entries of which the user was told last that they mean no tool. */
  #told = ''

  private constructor(host: AgentHost, history: History, deps: AgentDeps, { settings, prompt }: Bound) {
    this.#host = host
    this.#history = history
    this.#deps = deps
    this.#settings = settings
    this.#rendered = prompt
    host.get(PromptDateSlot).date = prompt?.date
    this.#limitTools()
  }

  static async open(host: AgentHost, history: History, deps: AgentDeps): Promise<AgentBinding> {
    return new AgentBinding(host, history, deps, (await history.track(boundState)).value)
  }

  get settings(): AgentSettings {
    return inForce(this.#settings, this.#deps.llm)
  }

  /** True when something changed; recorded before it counts. */
  configure(change: Partial<AgentSettings>): Promise<boolean> {
    if (Object.keys(change).length === 0) return Promise.resolve(false) // as most prompts have it
    return this.#inOrder(() => this.#change(change))
  }

  async #change(change: Partial<AgentSettings>): Promise<boolean> {
    if (change.model !== undefined) await this.#deps.llm.lookUp(change.model)
    const next = changed(this.settings, change, this.#deps.llm, this.#deps.profiles(this.#host.session))
    if (sameSettings(next, this.#settings)) return false
    await this.#history.append(settingsRecord.of(next))
    this.#settings = next
    this.#limitTools()
    return true
  }

  model(): ResolvedModel {
    return this.#deps.llm.resolve(this.settings.model)
  }

  /** Empty until a model is bound. `max`: window of the model (the default one while unbound); undefined when there is none. */
  limits(): { readonly max: number | undefined; readonly effort: string } {
    const { model: bound, thinking } = this.settings
    try {
      const model = this.model()
      return { max: windowOf(model), effort: bound === undefined ? '' : this.#deps.llm.effort(model, thinking) }
    } catch {
      return { max: undefined, effort: '' } // a status is told without it; the prompt that needs a model reports what is missing
    }
  }

  /** Looks up what the prompt of the next turn follows from, so that it is there when the turn is; undefined without a profile. Never rejects. */
  async look(): Promise<LookedUp | undefined> {
    await nextPass() // the disk gets its work first
    const profile = this.#profile()
    return profile && { profile: profile.name, basis: await promptBasis(this.#host, profile, this.#deps.prompt) }
  }

  /** Binds model and profile and renders the system prompt where that has not happened yet. Never rejects. */
  async forTurn(looked?: Promise<LookedUp | undefined>): Promise<TurnBinding> {
    const records: HistoryRecord[] = []
    await this.#inOrder(async () => undefined) // changes that began before count
    try {
      const settings = bound(this.settings, this.#deps.llm)
      if (this.#unsaved || !sameSettings(settings, this.#settings)) this.#record(settings)
      this.#settings = settings
      const profile = this.#limitTools()
      const warnings = [...this.#unmatched(), ...(profile ? await this.#render(profile, records, await looked) : [])]
      if (!this.#rendered) throw new AppError(ValidationFailed, { message: `the profile ${settings.profile} is not there` })
      const model = this.model()
      const setup = { model, effort: this.#deps.llm.effort(model, settings.thinking), system: this.#rendered.text }
      return { records, use: () => setup, warnings }
    } catch (error) {
      const use = () => {
        throw error
      }
      return { records, use, warnings: [] }
    }
  }

  /** At once, so that no later change stands before it on record; the turn need not wait. */
  #record(settings: AgentSettings): void {
    const { log } = this.#deps
    this.#unsaved = false
    this.#history.append(settingsRecord.of(settings)).catch((err: unknown) => {
      this.#unsaved = true
      log.error({ err, session_id: this.#host.session.id }, 'what an agent is bound to could not be saved')
    })
  }

  /**
   * Renders the system prompt where that has not happened, or what it follows from has changed: tools that are off, files and other things that
   * blocks tell, a context that began anew. While that fails, the old text stays.
   */
  async #render(profile: AgentProfile, records: HistoryRecord[], looked?: LookedUp): Promise<readonly PromptWarning[]> {
    const disabled = disabledTools(this.#host).join()
    const compactions = this.#history.compactions()
    const basis = looked?.profile === profile.name ? looked.basis : await promptBasis(this.#host, profile, this.#deps.prompt)
    const old = this.#rendered
    if (old && old.disabled === disabled && (old.compactions ?? 0) === compactions && (old.basis ?? '') === basis) return []
    const rendered = await renderPrompt(this.#host, profile, this.#deps.prompt).catch((error: unknown) => {
      if (!old) throw error
      return { failed: [(error as Error).message] }
    })
    if (!('text' in rendered) || (old && rendered.failed.length > 0)) {
      return [{ code: 'system-prompt-refresh-failed', message: `the system prompt stays as it was: ${rendered.failed.join(', ')} failed` }]
    }
    const { text, date, warnings } = rendered
    this.#rendered = { profile: profile.name, disabled, compactions, basis, text, ...(date ? { date } : {}), ...limitsOf(profile) }
    this.#host.get(PromptDateSlot).date = date
    records.push(promptRecord.of(this.#rendered))
    return warnings
  }

  /** Entries of lists of tools that mean none, when they are others than before. */
  #unmatched(): readonly PromptWarning[] {
    const entries = this.#deps.runner()?.unmatched?.(this.#host) ?? []
    const told = entries.join(', ')
    if (told === this.#told) return []
    this.#told = told
    return told === '' ? [] : [{ code: 'tool-pattern-no-match', message: `no tool has the name that is switched on or off: ${told}` }]
  }

  #profile(): AgentProfile | undefined {
    return this.#deps.profiles(this.#host.session).find(profile => profile.name === this.#settings.profile)
  }

  /** A profile whose pack has left limits the agent as it did. Answers the profile that is there. */
  #limitTools(): AgentProfile | undefined {
    const profile = this.#profile()
    const recorded = this.#rendered && { name: this.#rendered.profile, ...limitsOf(this.#rendered) }
    this.#host.get(ToolLimitsSlot).set(this.#settings, profile ?? recorded)
    return profile
  }
}

/** What of a profile limits its tools. */
function limitsOf({ tools, disallowed_tools }: ToolRange): ToolRange {
  return { ...(tools ? { tools } : {}), ...(disallowed_tools ? { disallowed_tools } : {}) }
}
