/** What a server asks the user in the middle of a call (MCP, Elicitation): its form as questions, and their answers as it wants them. */
import { checker, shortened, Time } from '../../kernel/index.ts'
import type { QuestionAnswer, QuestionAsk } from '../questions/index.ts'

type Question = QuestionAsk['questions'][number]

interface Choice {
  readonly const: string
  readonly title?: string
}
/** A field of a form: text, number, yes or no, one of several, some of several. */
interface Field {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly format?: string
  readonly enum?: readonly string[]
  readonly enumNames?: readonly string[]
  readonly oneOf?: readonly Choice[]
  readonly items?: { readonly enum?: readonly string[]; readonly anyOf?: readonly Choice[] }
}
export interface Form {
  readonly message: string
  readonly requestedSchema?: { readonly properties?: Readonly<Record<string, Field>>; readonly required?: readonly string[] }
}

type Value = string | number | boolean | string[]
export type Elicited =
  | { readonly action: 'accept'; readonly content: Record<string, Value> }
  | { readonly action: 'decline' }
  | { readonly action: 'cancel' }

/** Asks the user; undefined: nobody answered. */
export type Ask = (questions: readonly Question[]) => Promise<QuestionAnswer | undefined>

/** Questions of one request. */
const atOnce = 4
/** How often a field is asked for whose answer does not fit. */
const attempts = 3
const [yes, no, accept, decline, cancel, skip] = ['Yes', 'No', 'Accept', 'Decline', 'Cancel', 'Leave it out']

/** Goes through the form with the user, four fields at a time. */
export async function fillIn(server: string, { message, requestedSchema }: Form, ask: Ask): Promise<Elicited> {
  const { properties = {}, required = [] } = requestedSchema ?? {}
  const said = shortened(`The MCP server ${server} asks: ${message}`, 1000)
  let open = Object.entries(properties).map(([name, field]) => ({ name, field, needed: required.includes(name), why: '', tries: 0 }))
  if (open.length === 0) {
    const answer = await ask([{ question: said, options: [{ label: accept }, { label: decline }] }])
    const chosen = answer && 'answers' in answer ? answer.answers[said] : undefined
    return chosen === accept ? { action: 'accept', content: {} } : { action: chosen === decline ? 'decline' : 'cancel' }
  }
  const content: Record<string, Value> = {}
  for (let first = true; open.length > 0; first = false) {
    const now = open.slice(0, atOnce)
    const asked = now.map((each, at) => questionOf(each, `${first && at === 0 ? `${said}\n` : ''}${each.why}`))
    const answer = await ask(asked)
    if (!answer || !('answers' in answer)) return { action: 'cancel' }
    const again: typeof open = []
    for (const [at, each] of now.entries()) {
      const text = answer.answers[asked[at]?.question ?? '']
      const isChoice = choicesOf(each.field)?.some(({ label }) => label === text)
      if (!isChoice && text === decline) return { action: 'decline' }
      if (!isChoice && text === cancel) return { action: 'cancel' }
      if (text === undefined || text === skip) {
        if (each.needed) return { action: 'decline' }
        continue
      }
      const value = valueIn(each.field, text)
      if (value !== undefined) content[each.name] = value
      else if (each.tries + 1 < attempts) again.push({ ...each, tries: each.tries + 1, why: `“${shortened(text, 100)}” does not fit. ` })
      else return { action: 'cancel' }
    }
    open = [...again, ...open.slice(atOnce)]
  }
  return { action: 'accept', content }
}

function questionOf(asked: { readonly name: string; readonly field: Field; readonly needed: boolean }, before: string): Question {
  const { name, field, needed } = asked
  const choices = choicesOf(field)
  const labels = choices?.map(({ label }) => label) ?? []
  const listed = labels.length > 4 ? ` One of: ${labels.join(', ')}.` : ''
  const label = `${name}${field.title === undefined ? '' : ` (${field.title})`}`
  const what = shortened(`${label}${field.description === undefined ? '' : `: ${field.description}`}${bounds(field)}${listed}`, 900)
  const options =
    labels.length >= 2 && labels.length <= 4
      ? labels
      : [...new Set([...byDefault(field, choices), ...(needed ? [] : [skip]), decline, cancel])].slice(0, 4)
  return {
    question: before + what,
    header: shortened(name, 80),
    options: options.map(each => ({ label: each })),
    ...(field.type === 'array' ? { multi_select: true } : {})
  }
}

/** The default by the names that the user chooses from; none where nothing stands for it, or too much to be an option. */
function byDefault(field: Field, choices: Choices = []): readonly string[] {
  const values = [field.default ?? []].flat()
  const text = values.map(each => choices.find(({ value }) => value === each)?.label ?? String(each)).join(', ')
  return text === '' || text.length > 200 ? [] : [text]
}

/** Also whether the month has the day: reading a date lets it go on into the next one. */
function isTime(text: string): boolean {
  return checker(Time).Check(text) && new Date(`${text.slice(0, 10)}T00:00:00Z`).toISOString().startsWith(text.slice(0, 10))
}

/** Texts of a format: how one looks, and whether this is one. */
const formats: ReadonlyMap<string, { readonly words: string; readonly fits: (text: string) => boolean }> = new Map([
  ['email', { words: 'an e-mail address', fits: (text: string) => /^[^\s@]+@[^\s@]+$/.test(text) }],
  ['uri', { words: 'a URI', fits: (text: string) => URL.canParse(text) }],
  ['date', { words: 'a date as 2026-01-31', fits: (text: string) => isTime(`${text}T00:00:00Z`) }],
  ['date-time', { words: 'a time as 2026-01-31T12:00:00Z', fits: isTime }]
])

/** What fits, in words. */
function bounds({ type, format = '', minimum, maximum, minLength, maxLength, minItems, maxItems }: Field): string {
  const range = [minimum === undefined ? '' : `from ${minimum}`, maximum === undefined ? '' : `to ${maximum}`]
  const words =
    type === 'number' || type === 'integer'
      ? [type === 'integer' ? 'a whole number' : 'a number', ...range]
      : type === 'array'
        ? [amount(minItems, maxItems, 'of them')]
        : [formats.get(format)?.words ?? '', amount(minLength, maxLength, 'characters')]
  const said = words.filter(Boolean).join(' ')
  return said === '' ? '' : ` (${said})`
}

function amount(least: number | undefined, most: number | undefined, unit: string): string {
  if (least === undefined && most === undefined) return ''
  return `${least === undefined ? `at most ${most}` : most === undefined ? `at least ${least}` : `${least} to ${most}`} ${unit}`
}

const isWithin = (count: number, least = 0, most = Number.POSITIVE_INFINITY) => count >= least && count <= most

/** What a field may be, by what the user chooses from. */
type Choices = readonly { readonly label: string; readonly value: Value }[]

/** Undefined: any text. */
function choicesOf(field: Field): Choices | undefined {
  if (field.type === 'boolean')
    return [
      { label: yes, value: true },
      { label: no, value: false }
    ]
  const named = field.oneOf ?? field.items?.anyOf
  if (named) return named.map(({ const: value, title = value }) => ({ label: title, value }))
  return (field.enum ?? field.items?.enum)?.map((value, at) => ({ label: field.enumNames?.[at] ?? value, value }))
}

/** Undefined: it does not fit. */
function valueIn(field: Field, text: string): Value | undefined {
  const choices = choicesOf(field)
  if (field.type === 'array') {
    const chosen = chosenIn(text, choices ?? [])
    return chosen && isWithin(chosen.length, field.minItems, field.maxItems) ? chosen : undefined
  }
  if (choices) return choices.find(({ label, value }) => label === text || value === text)?.value
  const { minimum = Number.NEGATIVE_INFINITY, maximum, format = '' } = field
  if (field.type !== 'number' && field.type !== 'integer')
    return isWithin([...text].length, field.minLength, field.maxLength) && (formats.get(format)?.fits(text) ?? true) ? text : undefined
  const value = text.trim() === '' ? Number.NaN : Number(text)
  const fits = Number.isFinite(value) && isWithin(value, minimum, maximum) && (field.type === 'number' || Number.isInteger(value))
  return fits ? value : undefined
}

/** The values of an answer that lists choices, by label or value, with commas between them; a choice may have commas itself. */
function chosenIn(text: string, choices: Choices): string[] | undefined {
  const names = choices.flatMap(({ label, value }) => [label, String(value)].map(name => ({ name, value: String(value) })))
  names.sort((a, b) => b.name.length - a.name.length) // the longest one that fits is meant
  const values: string[] = []
  for (let rest = text; ; ) {
    const found = names.find(({ name }) => rest === name || rest.startsWith(`${name}, `))
    if (!found) return undefined
    values.push(found.value)
    if (rest === found.name) return values
    rest = rest.slice(found.name.length + 2)
  }
}
