/**
 * A timeline and what operations do to it: the same for the server, which folds records to it, and for clients, which get the operations. Most
 * of them are about the newest step of a turn, which may have thousands: it is looked for from the end.
 */
import type { Frame, Item, Op, Step, Turn } from './shapes.ts'

export class Timeline {
  readonly items: Item[] = []
  readonly #turns = new Map<string, Turn>()

  turn(id: string): Turn | undefined {
    return this.#turns.get(id)
  }

  lastTurn(): Turn | undefined {
    return this.items.findLast(item => item.kind === 'turn')
  }

  step(turn_id: string, step_id: string): Step | undefined {
    return this.#turns.get(turn_id)?.steps.findLast(step => step.stepId === step_id)
  }

  /** Takes in what concerns the timeline. False: text is missing before an `append`, which was not taken. */
  apply(op: Op): boolean {
    switch (op.op) {
      case 'turn.upsert': {
        const known = this.#turns.get(op.turn.turnId)
        const turn: Turn = { ...op.turn, steps: known?.steps ?? [] }
        this.#turns.set(turn.turnId, turn)
        if (known) this.items[this.items.indexOf(known)] = turn
        else this.#insert(turn)
        return true
      }
      case 'step.upsert': {
        const turn = this.#ensureTurn(op.turnId)
        const at = turn.steps.findLastIndex(step => step.stepId === op.step.stepId)
        const step: Step = { ...op.step, frames: turn.steps[at]?.frames ?? [] }
        if (at >= 0) turn.steps[at] = step
        else turn.steps.splice(turn.steps.findLastIndex(other => other.ordinal <= step.ordinal) + 1, 0, step)
        return true
      }
      case 'frame.upsert': {
        const { frames } = this.#ensureStep(op.turnId, op.stepId)
        const at = frames.findLastIndex(frame => frame.frameId === op.frame.frameId)
        if (at >= 0) frames[at] = op.frame
        else frames.push(op.frame)
        return true
      }
      case 'append': {
        const { target } = op
        if (target.type !== 'frame') return true
        const frames = this.step(target.turnId, target.stepId)?.frames ?? []
        const at = frames.findLastIndex(frame => frame.frameId === target.frameId)
        const frame = frames[at]
        if (frame?.kind !== 'text' && frame?.kind !== 'thinking') return false
        const text = appended(frame.text, op.offset, op.text)
        if (text === undefined) return false
        frames[at] = { ...frame, text } as Frame
        return true
      }
      case 'marker.upsert':
      case 'taskref.upsert': {
        const { item } = op
        const at = this.items.findIndex(other => other.kind === item.kind && idOf(other) === idOf(item))
        if (at >= 0) this.items[at] = item
        else this.items.push(item)
        return true
      }
      case 'items.remove': {
        const gone = new Set(op.ids)
        for (const id of gone) this.#turns.delete(id)
        const left = this.items.filter(item => !gone.has(idOf(item)))
        this.items.splice(0, this.items.length, ...left)
        return true
      }
      default:
        return true
    }
  }

  #insert(turn: Turn): void {
    const behind = this.items.findIndex(item => item.kind === 'turn' && item.ordinal > turn.ordinal)
    this.items.splice(behind < 0 ? this.items.length : behind, 0, turn)
  }

  #ensureTurn(turnId: string): Turn {
    const known = this.#turns.get(turnId)
    if (known) return known
    const turn: Turn = { kind: 'turn', turnId, ordinal: ordinalOf(turnId) ?? 0, state: 'running', origin: { kind: 'other' }, steps: [] }
    this.#turns.set(turnId, turn)
    this.#insert(turn)
    return turn
  }

  #ensureStep(turnId: string, stepId: string): Step {
    const { steps } = this.#ensureTurn(turnId)
    const known = steps.findLast(step => step.stepId === stepId)
    if (known) return known
    const ordinal = Number(stepId.slice(turnId.length + 1)) || 0
    const step: Step = { kind: 'step', stepId, turnId, ordinal, state: 'running', frames: [] }
    steps.push(step)
    return step
  }
}

/** The text with the chunk at its place; undefined when text is missing before it, or another one is there. */
function appended(text: string, offset: number, chunk: string): string | undefined {
  if (offset > text.length) return undefined
  const known = text.slice(offset, offset + chunk.length)
  return chunk.startsWith(known) ? text + chunk.slice(known.length) : undefined
}

export const idOf = (item: Item): string => (item.kind === 'turn' ? item.turnId : item.kind === 'marker' ? item.markerId : item.refId)

export const turnId = (ordinal: number): string => `t${ordinal}`

/** The number in a turn id; undefined when it is none. */
export const ordinalOf = (id: string): number | undefined => (/^t\d{1,15}$/.test(id) ? Number(id.slice(1)) : undefined)
