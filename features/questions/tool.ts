/** The AskUserQuestion tool. */
import type { InteractionEnd } from '../interactions/index.ts'
import { type Tool, ToolRefusal, type ToolResult } from '../tools/index.ts'
import { problemOf } from './answers.ts'
import { type AskArguments, askParameters, type QuestionAnswer } from './contract.ts'
import type { QuestionAsk } from './kind.ts'

export interface AskPorts {
  /** Resolves with the end of the question. */
  readonly ask: (ask: QuestionAsk, signal: AbortSignal) => Promise<InteractionEnd<QuestionAnswer>>
}

export function createAskUserQuestion({ ask }: AskPorts): Tool<typeof askParameters> {
  return {
    name: 'AskUserQuestion',
    description:
      'Asks the user to choose, with one to four questions of two to four options each. Use it when the task can go different ways and the ' +
      'user has to choose between them: requirements that are unclear, a decision between approaches, something only the user knows. Do not ask for ' +
      'what you can find out yourself, for permission to go on, or whether a plan is good (ExitPlanMode asks that). Put the option that you ' +
      'would take first and say so in its label. The user can always answer in words of their own, so give no option "other". The answers ' +
      'come back as text per question.',
    parameters: askParameters,
    source: 'builtin',
    prepare({ questions }: AskArguments, { agent, turn_id, tool_call_id }) {
      const problem = problemOf(questions)
      if (problem !== undefined) throw new ToolRefusal(problem)
      return {
        description: questions.length === 1 ? `Asking: ${questions[0]?.question}` : `Asking ${questions.length} questions`,
        accesses: [],
        async run(_progress, signal) {
          return resultOf(await ask({ agent, turn_id, tool_call_id, questions }, signal))
        }
      }
    }
  }
}

/** What the model hears. */
export function resultOf(end: InteractionEnd<QuestionAnswer>): ToolResult {
  const none = (note: string) => ({ output: JSON.stringify({ answers: {}, note }) })
  if (end.how !== 'answered')
    return none(
      end.how === 'expired'
        ? 'Nobody answered in time. Decide by yourself where you can, and say what you decided.'
        : 'The question could not be put to the user.'
    )
  const { answer } = end
  if (!('answers' in answer)) return none('The user dismissed the question without an answer. Do not ask it again.')
  return { output: JSON.stringify({ answers: answer.answers, ...(answer.note ? { note: answer.note } : {}) }) }
}
