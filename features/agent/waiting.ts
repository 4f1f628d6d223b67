/** Prompts that wait: the running turn takes them (they are steered), or they are withdrawn before they ran. */
import { AppError } from '../../kernel/index.ts'
import type { History } from '../history/index.ts'
import { noticeDropped } from './notices.ts'
import { PromptMissing } from './service.ts'
import type { Turn } from './turn.ts'
import { type Judgement, neverRan, type Turns } from './turns.ts'

export class WaitingPrompts {
  readonly #history: History
  readonly #turns: Turns
  /** Prompts whose abort is being recorded: what becomes of them, `withdraw` says. */
  readonly #withdrawing = new Set<string>()

  constructor(history: History, turns: Turns) {
    this.#history = history
    this.#turns = turns
  }

  /** They run with the next step of the running turn. Answers what packs want the model to read beside them. Throws PromptMissing. */
  async steer(prompt_ids: readonly string[]): Promise<Judgement['texts']> {
    const turn = this.#steerable(prompt_ids)
    const texts = this.#turns.asks ? await this.#judge(turn, prompt_ids) : []
    const steered = this.#turns.queue.take(prompt_ids)
    turn.steered.push(...steered)
    const ids = steered.map(item => item.prompt_id)
    try {
      await this.#history.append({ type: 'prompt.steered', turn_id: turn.turn_id, prompt_ids: ids, active_prompt_id: turn.id })
    } catch (error) {
      turn.steered = turn.steered.filter(item => !ids.includes(item.prompt_id))
      this.#turns.queue.restore(steered.filter(item => !turn.consumed.includes(item) && this.#isLost(item.prompt_id)))
      throw error
    }
    return texts
  }

  /** Prompts that wait, also for the next step of the running turn, are over: they never run. False when none of them waits. */
  async withdraw(prompt_ids: readonly string[]): Promise<boolean> {
    const turn = this.#turns.current
    const steered = turn?.steered.filter(item => prompt_ids.includes(item.prompt_id)) ?? []
    if (turn) turn.steered = turn.steered.filter(item => !steered.includes(item))
    const taken = [...steered, ...this.#turns.queue.take(prompt_ids)]
    if (taken.length === 0) return false
    this.#turns.withdrawn(prompt_ids)
    const ids = taken.map(item => item.prompt_id)
    for (const id of ids) this.#withdrawing.add(id)
    try {
      await this.#history.append({ type: 'prompt.settled', prompt_ids: ids, status: 'aborted' })
    } catch (error) {
      this.#turns.queue.restore(taken)
      this.#turns.start()
      throw error
    } finally {
      for (const id of ids) this.#withdrawing.delete(id)
    }
    this.#turns.queue.forget(ids)
    for (const item of taken) item.settled?.(neverRan)
    return true
  }

  /** Withdraws all prompts and notices that wait. */
  async withdrawAll(): Promise<void> {
    const steered = this.#turns.current?.steered ?? []
    await this.withdraw([...this.#turns.queue.items(), ...steered].map(item => item.prompt_id))
    const notice_ids = this.#turns.notices.map(notice => notice.notice_id)
    if (notice_ids.length > 0) await this.#history.append(noticeDropped.of({ notice_ids }))
    for (const id of notice_ids) this.#turns.ends.get(id)?.(neverRan)
  }

  /** The turn that takes these prompts. Throws PromptMissing. */
  #steerable(prompt_ids: readonly string[]): Turn {
    const turn = this.#turns.current
    const once = new Set(prompt_ids).size === prompt_ids.length
    if (!turn?.accepting || turn.signal.aborted || !once || !prompt_ids.every(id => this.#turns.queue.has(id)))
      throw new AppError(PromptMissing)
    return turn
  }

  /** What packs want the model to read beside these prompts. One that they block is over; then none is steered. */
  async #judge(turn: Turn, prompt_ids: readonly string[]): Promise<Judgement['texts']> {
    const waiting = this.#turns.queue.items().filter(item => prompt_ids.includes(item.prompt_id))
    const texts: Judgement['texts'][number][] = []
    let blocked = false
    for (const item of waiting) {
      const judgement = await this.#turns.judge(item, true, turn.signal)
      texts.push(...judgement.texts)
      if (!judgement.blocked || !this.#turns.queue.has(item.prompt_id)) continue
      await this.#turns.block(item, judgement.blocked)
      blocked = true
    }
    if (blocked) throw new AppError(PromptMissing, { message: 'a prompt was blocked by a hook' })
    if (this.#steerable(prompt_ids) !== turn) throw new AppError(PromptMissing)
    return texts
  }

  /** Waits, and nobody holds it. */
  #isLost(prompt_id: string): boolean {
    const status = this.#history.prompt(prompt_id)?.status ?? ''
    return ['queued', 'steered'].includes(status) && !this.#withdrawing.has(prompt_id) && !this.#turns.queue.has(prompt_id)
  }
}
