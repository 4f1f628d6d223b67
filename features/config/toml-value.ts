/** How keys and values are written in TOML. */
import { stringify } from 'smol-toml'
import { isTable } from './tables.ts'

export function keyText(key: string | number): string {
  const name = String(key)
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : scalar(name)
}

/** A value on one line; an array of tables gets one line per element. */
export function inline(value: unknown, newline: string): string {
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every(isTable)) {
      return `[${newline}${value.map(item => `  ${inline(item, newline)}`).join(`,${newline}`)}${newline}]`
    }
    return `[${value.map(item => inline(item, newline)).join(', ')}]`
  }
  if (!isTable(value)) return scalar(value)
  const fields = Object.entries(value).filter(([, item]) => item !== undefined)
  if (fields.length === 0) return '{}'
  return `{ ${fields.map(([key, item]) => `${keyText(key)} = ${inlineFlat(item)}`).join(', ')} }`
}

/** Inside an inline table no line may break. */
function inlineFlat(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(inlineFlat).join(', ')}]` : inline(value, ' ')
}

function scalar(value: unknown): string {
  const text = stringify({ k: value })
  return text.slice(text.indexOf('=') + 1).trim()
}
