/** Custom prompts: a text with variables in place of the system prompt. The user's own is `SYSTEM.md` in the home. */
import { join } from 'node:path'
import { isMissing, readBounded, stampAt } from '../../../kernel/index.ts'

/** Variables that are empty while nobody fills them; other names stay as they are written. */
const known = [
  ...['product_name', 'reply_style_guide', 'role_additional', 'os', 'windows_notes', 'shell', 'now', 'cwd', 'cwd_listing', 'agents_md'],
  ...['additional_dirs_info', 'additional_dirs_section', 'skills', 'skills_section', 'plugin_sections', 'base_prompt']
]

/** One pass: what a value says is never taken for a variable. */
export function fillTemplate(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\$\{(\w+)\}/g, (written, name: string) => {
    if (Object.hasOwn(values, name)) return values[name] ?? ''
    return known.includes(name) ? '' : written
  })
}

const mostBytes = 1024 * 1024

const systemFile = (home: string) => join(home, 'SYSTEM.md')

/** Undefined when there is none, or nothing in it. Rejects when it cannot be read, or is larger than 1 MiB. */
export async function readSystemFile(home: string): Promise<string | undefined> {
  const bytes = await readBounded(systemFile(home), mostBytes, 'SYSTEM.md').catch((error: unknown) => {
    if (isMissing(error)) return ''
    throw error
  })
  return bytes.toString().trim() || undefined
}

/** Another one for every content; empty when there is no such file. */
export const systemFileStamp = (home: string): Promise<string> => stampAt(systemFile(home))
