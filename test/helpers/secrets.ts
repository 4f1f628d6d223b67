/** Seeded secrets and the search for them: as they are, and in the forms that texts, URLs, JSON and headers give them. */
import { randomBytes } from 'node:crypto'

/** One place where a secret was found. */
export interface Leak {
  /** Answer, frame or file. */
  readonly where: string
  /** Name of the seed. */
  readonly secret: string
  /** What was found: `head` and `tail` are the first and last 12 characters. */
  readonly form: string
  /** The text around it. */
  readonly text: string
}

/** Characters of a secret that count as the secret: upstreams like to quote the beginning of a key. */
const PART = 12
const AROUND = 60
/** Every form is longer. */
const START = 8

interface Needle {
  readonly needle: string
  readonly secret: string
  readonly form: string
}

export class Secrets {
  readonly #values = new Map<string, string>()
  /** By their first characters: one pass over a text finds them all. */
  readonly #needles = new Map<string, Needle[]>()

  /** A new secret that no pattern of known keys fits. `awkward`: with characters that URLs, JSON and TOML write differently. */
  seed(name: string, awkward: '' | 'awkward' = ''): string {
    const [head = '', tail = ''] = [randomName(), randomName()]
    return this.add(name, `${head}${awkward ? '+/"\\=&' : ''}${tail}`)
  }

  /** A secret that somebody else made. */
  add(name: string, value: string): string {
    if (value.length < PART) throw new Error(`${name} is too short to be told from other text`)
    if (this.#values.has(name)) throw new Error(`${name} is seeded already`)
    this.#values.set(name, value)
    for (const [form, needle] of formsOf(value)) {
      const start = needle.slice(0, START)
      this.#needles.set(start, [...(this.#needles.get(start) ?? []), { needle, secret: name, form }])
    }
    return value
  }

  /** Its value. */
  get(name: string): string {
    const value = this.#values.get(name)
    if (value === undefined) throw new Error(`${name} was not seeded`)
    return value
  }

  /** Every secret but the allowed ones that stands in the text, once each. */
  find(where: string, text: string, allowed: readonly string[] = []): Leak[] {
    const found = new Map<string, Leak>()
    for (let at = 0; at + START <= text.length; at++) {
      for (const { needle, secret, form } of this.#needles.get(text.slice(at, at + START)) ?? []) {
        if (found.has(secret) || allowed.includes(secret) || !text.startsWith(needle, at)) continue
        const around = text.slice(Math.max(0, at - AROUND), at + needle.length + AROUND).replace(/[^ -~]+/g, ' ')
        found.set(secret, { where, secret, form, text: around })
      }
    }
    return [...found.values()]
  }
}

const SHOWN = 40

/** One line per leak. */
export function leakList(leaks: readonly Leak[]): string {
  const lines = leaks.slice(0, SHOWN).map(({ where, secret, form, text }) => `${where}: ${secret} (${form}): ${text}`)
  return [`${leaks.length} leaks`, ...lines].join('\n')
}

/** 24 letters and digits. */
function randomName(): string {
  return [...randomBytes(24)].map(byte => 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'[byte % 62]).join('')
}

function formsOf(value: string): (readonly [form: string, needle: string])[] {
  const parts = [
    ['head', value.slice(0, PART)],
    ['tail', value.slice(-PART)]
  ] as const
  const forms = parts.flatMap(([name, part]) => [
    [name, part] as const,
    [`${name}, in a URL`, encodeURIComponent(part)] as const,
    [`${name}, in JSON`, JSON.stringify(part).slice(1, -1)] as const,
    [`${name}, in hex`, Buffer.from(part).toString('hex')] as const,
    ...[0, 1, 2].flatMap(shift => base64Of(part, shift).map(needle => [`${name}, in base64`, needle] as const))
  ])
  return forms.filter(([, needle], n) => forms.findIndex(([, other]) => other === needle) === n)
}

/** The characters that a text has in base64 when `shift` bytes (of three) stand before it, whatever comes before and after. */
function base64Of(part: string, shift: number): string[] {
  const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(part)])
  const whole = bytes.subarray(0, bytes.length - (bytes.length % 3))
  const text = whole.toString('base64').slice(shift === 0 ? 0 : 4)
  return [text, text.replaceAll('+', '-').replaceAll('/', '_')]
}
