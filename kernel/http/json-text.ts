/** JSON text of replies and events, with the texts of large objects that their owners have at hand. */

const texts = new WeakMap<object, string>()

/**
 * Tells the JSON text of an object, exactly as `JSON.stringify` would make it. Where the object is sent, as the data of a reply or as a
 * field of an event, the text is taken instead of making it again. The object must not change any more.
 */
export function withJsonText<T extends object>(value: T, text: string): T {
  texts.set(value, text)
  return value
}

/** As `JSON.stringify`; looks for told texts at the value itself and at its fields. */
export function jsonText(value: Readonly<Record<string, unknown>>): string {
  return texts.get(value) ?? (holdsTold(value) ? fieldByField(value) : JSON.stringify(value))
}

function holdsTold(value: Readonly<Record<string, unknown>>): boolean {
  for (const key in value) {
    const field = value[key]
    if (typeof field === 'object' && field !== null && texts.has(field)) return true
  }
  return false
}

function fieldByField(value: Readonly<Record<string, unknown>>): string {
  const fields: string[] = []
  for (const [key, field] of Object.entries(value)) {
    const text = (typeof field === 'object' && field !== null && texts.get(field)) || JSON.stringify(field)
    if (text !== undefined) fields.push(`${JSON.stringify(key)}:${text}`)
  }
  return `{${fields.join(',')}}`
}
