/** Effective value of a domain: default < file < environment, with a way back when one of them is not valid. */
import { problems } from '../../kernel/index.ts'
import type { ConfigDiagnostic, ConfigSection } from './service.ts'
import { freeze, isTable, overlay, own, type Table } from './tables.ts'

export interface Effective {
  readonly value: unknown
  readonly diagnostics: readonly ConfigDiagnostic[]
}

/** The value of a section over a file; invalid parts fall back and are reported without their values. */
export function effective(section: ConfigSection, file: Table, env: NodeJS.ProcessEnv): Effective {
  const diagnostics: ConfigDiagnostic[] = []
  const report = (message: string) => diagnostics.push({ domain: section.name, message })
  let value: unknown = section.default
  const stored = own(file, section.name)
  if (stored !== undefined) {
    const merged = withDefault(section, stored)
    const [first] = problems(section.schema, merged)
    if (!first) {
      value = merged
      for (const { path, message } of section.review?.(merged) ?? []) report(`config.toml: ${pathOf(section.name, path)}: ${message}`)
    } else {
      if (section.salvage) value = section.salvage(merged)
      const instead = section.salvage ? 'only what is valid is used' : 'the default is used instead'
      report(`config.toml: ${pathOf(section.name, first.path)}: ${first.message}; ${instead}`)
    }
    for (const [key, replacement] of Object.entries(section.retired ?? {})) {
      if (isTable(stored) && Object.hasOwn(stored, key)) report(`config.toml: ${section.name}.${key} is no longer read; use ${replacement}`)
    }
  }
  const environment = section.overlay?.(env)
  if (environment !== undefined) {
    const merged = overlay(value, environment)
    const [first] = problems(section.schema, merged)
    if (first) report(`environment: ${pathOf(section.name, first.path)}: ${first.message}; the environment is ignored here`)
    else value = merged
  }
  return { value: freeze(overlay(undefined, value)), diagnostics }
}

/** A file value completed with the section's default. */
export function withDefault(section: ConfigSection, stored: unknown): unknown {
  return overlay(section.default, stored)
}

/** A header or variable has a name of words; anything else in its place may be a key that was put there by mistake. */
const wordsOnly = /^[A-Za-z][A-Za-z0-9]{0,19}(?:[-_][A-Za-z0-9]{1,19})*(?:\.\d+)?$/

/** Joined with dots, for whoever has to find the value. */
export function pathOf(...parts: readonly string[]): string {
  return parts
    .filter(part => part !== '')
    .join('.')
    .replace(/((?:^|\.)(?:custom_headers|headers|env)\.)(.+)$/s, (whole, table: string, name: string) =>
      wordsOnly.test(name) ? whole : `${table}[redacted]`
    )
}
