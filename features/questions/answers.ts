/** Questions as clients get them, and what their answers mean. Pure. */
import type { AskArguments, ItemAnswer, QuestionItem } from './contract.ts'

/** The items of a request, with their ids. */
export function itemsOf(questions: AskArguments['questions']): QuestionItem[] {
  return questions.map(({ question, header, options, multi_select }, item) => ({
    id: `q_${item}`,
    question,
    ...(header === undefined || header === '' ? {} : { header }),
    options: options.map(({ label, description }, option) => ({
      id: `opt_${item}_${option}`,
      label,
      ...(description === undefined || description === '' ? {} : { description })
    })),
    ...(multi_select === undefined ? {} : { multi_select }),
    allow_other: true
  }))
}

/** What is wrong with the questions, as a sentence for the model; undefined: nothing. */
export function problemOf(questions: AskArguments['questions']): string | undefined {
  const texts = questions.map(({ question }) => question)
  if (new Set(texts).size < texts.length) return 'Two questions have the same text. Each must be asked once.'
  const repeated = questions.find(({ options }) => new Set(options.map(({ label }) => label)).size < options.length)
  return repeated && `Two options of "${repeated.question}" have the same label. Labels must differ.`
}

/**
 * Question text to answer text. Labels are joined with commas, a text of the user follows; ids that the request does not have stand for
 * themselves, skipped items are absent.
 */
export function textsOf(items: readonly QuestionItem[], answers: Readonly<Record<string, ItemAnswer>>): Record<string, string> {
  const texts: [string, string][] = []
  for (const [id, answer] of Object.entries(answers)) {
    const item = items.find(each => each.id === id)
    const label = (option: string) => item?.options.find(each => each.id === option)?.label ?? option
    const text = textOf(answer, label)
    if (text !== undefined) texts.push([item?.question ?? id, text])
  }
  return Object.fromEntries(texts)
}

function textOf(answer: ItemAnswer, label: (option: string) => string): string | undefined {
  switch (answer.kind) {
    case 'single':
      return label(answer.option_id)
    case 'multi':
      return answer.option_ids.map(label).join(', ')
    case 'other':
      return answer.text
    case 'multi_with_other':
      return [...answer.option_ids.map(label), answer.other_text].join(', ')
    case 'skipped':
      return undefined
  }
}
