/** The skills as the system prompt lists them for the model. */
import { headOf } from '../../kernel/index.ts'
import { asData } from '../history/index.ts'
import type { Skill } from './service.ts'
import { forModel } from './tool.ts'

const descriptionChars = 250
/** More of them would crowd out the work. */
const maxListed = 200

const scopes = [
  ['project', 'Of this project'],
  ['user', 'Of the user'],
  ['extra', 'Of plugins and further directories'],
  ['builtin', 'Built in']
] as const

/** `list`: the entries; `section`: with its heading, empty when there are none. */
export function listing(skills: readonly Skill[]): { readonly list: string; readonly section: string } {
  const listed = skills.filter(forModel).slice(0, maxListed)
  if (listed.length === 0) return { list: '', section: '' }
  const groups = scopes.flatMap(([source, title]) => {
    const own = listed.filter(skill => skill.source === source)
    return own.length === 0 ? [] : [`## ${title}\n${own.map(entry).join('\n')}`]
  })
  const list = groups.join('\n\n')
  const section = `# Skills
Instructions for kinds of tasks. When one fits, load it with the tool Skill before you begin; do not guess what it says.

${list}`
  return { list, section }
}

function entry({ name, description, when_to_use, path }: Skill): string {
  const short = (text: string) => {
    const line = text.replace(/\s+/g, ' ')
    return line.length > descriptionChars ? `${headOf(line, descriptionChars)}…` : line
  }
  const when = when_to_use === undefined ? '' : `\n  When to use: ${short(when_to_use)}`
  return asData(`- ${name}: ${short(description)}${when}\n  Path: ${path}`)
}
