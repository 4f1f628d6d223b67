/** The text of a skill with the arguments of its call. */
import { asData } from '../history/index.ts'
import type { Skill, SkillCall } from './service.ts'

/** Words between blanks; quotes of both kinds hold words together. */
export function splitArguments(args: string): string[] {
  return [...args.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(found => found[1] ?? found[2] ?? found[3] ?? '')
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/**
 * Fills `$name` (declared arguments), `$ARGUMENTS[n]`, `$n` (from zero), `$ARGUMENTS`, `${SVC_SKILL_DIR}` and `${SVC_SESSION_ID}`, in one pass. What
 * is filled in is escaped as XML text. Where the text takes no arguments, those that were given follow it.
 */
function expand(
  body: string,
  skill: Pick<Skill, 'arguments' | 'dir'>,
  { args = '', session }: Pick<SkillCall, 'args' | 'session'>
): string {
  const words = splitArguments(args)
  let used = false
  const word = (index: number) => {
    used = true
    return escaped(words[index] ?? '')
  }
  const text = body.replace(
    /\$\{(SVC_SKILL_DIR|SVC_SESSION_ID)\}|\$ARGUMENTS\[(\d+)\]|\$ARGUMENTS\b|\$(\d+)|\$([A-Za-z_][\w-]*)/g,
    (written, variable?: string, listed?: string, place?: string, name?: string) => {
      if (variable === 'SVC_SKILL_DIR') return skill.dir
      if (variable === 'SVC_SESSION_ID') return session.id
      if (listed !== undefined) return word(Number(listed))
      if (place !== undefined) return word(Number(place))
      if (name === undefined) {
        used = true
        return escaped(args)
      }
      const index = skill.arguments.indexOf(name)
      return index < 0 ? written : word(index)
    }
  )
  return used || args.trim() === '' ? text : `${text}\n\nARGUMENTS: ${escaped(args)}`
}

/** What the model reads. */
export function block(skill: Skill, body: string, call: SkillCall): string {
  const attributes = { name: skill.name, trigger: call.trigger, source: skill.source, dir: skill.dir, args: call.args ?? '' }
  const written = Object.entries(attributes).map(([name, value]) => `${name}="${escaped(value)}"`)
  const front =
    call.trigger === 'user-slash'
      ? `The user activated the ${skill.command ? 'command' : 'skill'} "${skill.name}". Follow it.`
      : `The skill "${skill.name}" was loaded, as you asked. Follow it.`
  const before = skill.instructions === undefined ? '' : `<plugin-instructions>\n${skill.instructions}\n</plugin-instructions>\n`
  return `${front}\n<skill-loaded ${written.join(' ')}>\n${asData(`${before}${expand(body, skill, call)}`)}\n</skill-loaded>`
}

/** What the file of the skill says in a block. */
export const ownText = (block: string): string =>
  block.replace(/^[\s\S]*?<skill-loaded [^>]*>\n(?:<plugin-instructions>[\s\S]*?<\/plugin-instructions>\n)?/, '')
