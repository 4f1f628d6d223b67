/** What the model is told of plan mode, and when. */
import type { Injection } from '../agent/index.ts'
import type { PlanState } from './state.ts'

const full = (
  file: string
) => `Plan mode is on. Look, think and ask, and change nothing yet: no edits, no commands that change files, settings or anything elsewhere, no \
commits, whatever was said before. The one file that you write is the plan, ${file}; it needs no approval.
1. Study what the task touches by reading and searching. Look for what is there already and can be used.
2. Where the task can be read in different ways, or a choice is the user's, ask (AskUserQuestion).
3. Write the plan into the file and keep it up to date while you learn: what is to be done and why, step by step, with the files and functions it \
touches, what it builds on, risks, and how the result will be checked. Short enough to be read, exact enough to be carried out; the approach that you \
recommend, not every one that there is.
4. Call ExitPlanMode: the user reviews what is in the file.
Every turn ends with a question (AskUserQuestion) or with ExitPlanMode. Do not ask in a text whether the plan is good: ExitPlanMode does.`

const again = (file: string) =>
  `The plan file ${file} holds a plan from before. Read it first: bring it up to date when the task goes on from it, replace it when the task is another one.`

const short = (file: string) =>
  `Plan mode is still on: change nothing but the plan file ${file}. When the plan is ready, call ExitPlanMode.`

const over = 'Plan mode is off: files may be changed again, and commands run, under the usual rules.'

const forSubagent =
  'The agent that gave you this task is in plan mode: look around and report, change nothing. Writing and editing files is refused.'
const subagentFree = 'Plan mode is off: you may change files again, under the usual rules.'

/** A short reminder after so many answers, a full one after so many. */
const shortAfter = 2
const fullAfter = 5

export interface Occasion {
  readonly state: PlanState & { readonly active: boolean }
  readonly file: string
  /** The newest reminder is gone from what the model sees. */
  readonly lost: boolean
  /** Whether the file has a text. */
  written(): Promise<boolean>
}

export async function reminderOf({ state, file, lost, written }: Occasion): Promise<Injection | undefined> {
  if (!state.active) return state.told ? { text: over, facts: { form: 'exit' } } : undefined
  if (state.due || lost || state.sinceFull >= fullAfter) {
    const back = !state.told && (await written())
    return { text: back ? `${again(file)}\n\n${full(file)}` : full(file), facts: { form: 'full' } }
  }
  return state.sinceAny >= shortAfter ? { text: short(file), facts: { form: 'short' } } : undefined
}

/** For an agent that works for one that plans. `last`: the form of its newest reminder. */
export function subagentReminder(planning: boolean, last: unknown): Injection | undefined {
  if (planning) return last === 'subagent' ? undefined : { text: forSubagent, facts: { form: 'subagent' } }
  return last === 'subagent' ? { text: subagentFree, facts: { form: 'exit' } } : undefined
}
