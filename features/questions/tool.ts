/** The AskUserQuestion tool. */
import { type InteractionEnd, unattendedFailure } from '../interactions/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { newTask, TaskRefused, type Tasks } from '../tasks/index.ts'
import { type Tool, ToolRefusal, type ToolResult } from '../tools/index.ts'
import { problemOf } from './answers.ts'
import { type AskArguments, askParameters, type QuestionAnswer } from './contract.ts'
import type { QuestionAsk } from './kind.ts'

export interface AskPorts {
  /** Resolves with the end of the question. */
  readonly ask: (ask: QuestionAsk, signal: AbortSignal) => Promise<InteractionEnd<QuestionAnswer>>
  /** For questions that nobody waits for. */
  readonly tasks: () => Tasks | undefined
}

export function createAskUserQuestion({ ask, tasks }: AskPorts): Tool<typeof askParameters> {
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
    prepare({ questions, background = false }: AskArguments, { agent, turn_id, tool_call_id }) {
      const problem = problemOf(questions) ?? (background ? noBackground(agent, tasks()) : undefined)
      if (problem !== undefined) throw new ToolRefusal(problem)
      const asked: QuestionAsk = { agent, turn_id, tool_call_id, questions }
      const description = questions.length === 1 ? `Asking: ${questions[0]?.question}` : `Asking ${questions.length} questions`
      return {
        description,
        accesses: background ? [newTask] : [],
        limit_ms: 0, // questions expire
        async run(_progress, signal) {
          const service = background ? tasks() : undefined
          if (service) return await askBeside(service, asked, description, ask)
          const end = await ask(asked, signal)
          if (end.how === 'withdrawn') signal.throwIfAborted() // what ended the call is what the model hears
          return resultOf(end)
        }
      }
    }
  }
}

function noBackground(agent: AgentHost, tasks: Tasks | undefined): string | undefined {
  return tasks ? tasks.refusal(agent) : 'Nothing can run in the background on this server. Ask without `background`.'
}

/** As a task in the background: its output is what the model would have heard. */
async function askBeside(tasks: Tasks, asked: QuestionAsk, description: string, ask: AskPorts['ask']): Promise<ToolResult> {
  const { agent, tool_call_id, questions } = asked
  try {
    const task = await tasks.start(agent, {
      kind: 'question',
      description,
      background: true,
      facts: () => ({
        kind: 'question',
        questionCount: questions.length,
        ...(tool_call_id === undefined ? {} : { toolCallId: tool_call_id })
      }),
      ...(tool_call_id === undefined ? {} : { tool_call_id }),
      async run({ signal, output }) {
        const end = await ask(asked, signal)
        output(String(resultOf(end).output))
        if (end.how === 'answered') return { status: 'completed' }
        return end.how === 'expired' ? { status: 'timed_out' } : { status: 'failed', reason: unanswered[end.how] }
      }
    })
    return { output: tasks.backgroundResult(task.view) }
  } catch (error) {
    if (error instanceof TaskRefused) throw new ToolRefusal(error.message)
    throw error
  }
}

const unanswered = {
  expired: 'Nobody answered in time. Decide by yourself where you can, and say what you decided.',
  unattended: 'Nobody is there to answer. Decide by yourself where you can, and say what you decided.',
  withdrawn: 'The question could not be put to the user.'
}

/** What the model hears. */
function resultOf(end: InteractionEnd<QuestionAnswer>): ToolResult {
  const none = (note: string) => ({ output: JSON.stringify({ answers: {}, note }) })
  if (end.how === 'unattended' && end.fail) {
    return { ...none('Nobody was there to answer.'), is_error: true, stop_turn: true, fail_turn: unattendedFailure('a question') }
  }
  if (end.how !== 'answered') return none(unanswered[end.how])
  const { answer } = end
  if (!('answers' in answer)) return none('The user dismissed the question without an answer. Do not ask it again.')
  if (Object.keys(answer.answers).length === 0 && !answer.note) return none('The user skipped every question. Do not ask again.')
  return { output: JSON.stringify({ answers: answer.answers, ...(answer.note ? { note: answer.note } : {}) }) }
}
