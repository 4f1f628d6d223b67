/** The text of a skill with the arguments of its call. */
import { asData } from '../history/index.ts'
import type { Skill, SkillCall } from './service.ts'

/** Words between blanks; quotes of both kinds hold words together. */
export function splitArguments(args: string): string[] {
  return [...args.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(found => found[1] ?? found[2] ?? found[3] ?? '')
}

/** No tag of the block begins or ends in it; what else stands there the model is to use as it is, such as in a message of a commit. */
const untagged = (text: string) => text.replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const attribute = (text: string) => untagged(text.replaceAll('&', '&amp;')).replaceAll('"', '&quot;')

/**
 * Fills `$name` (declared arguments), `$ARGUMENTS[n]`, `$n` (from zero), `$ARGUMENTS`, `${SVC_SKILL_DIR}` and `${SVC_SESSION_ID}`, in one pass. What
 * is filled in has no tags. Of declared names the longest counts, so that `$file-$mode` is two of them. Where the text takes no arguments, those that were given follow it.
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
    return untagged(words[index] ?? '')
  }
  const declared = skill.arguments.toSorted((a, b) => b.length - a.length).join('|') || '(?!)'
  const text = body.replace(
    new RegExp(`\\$\\{(SVC_SKILL_DIR|SVC_SESSION_ID)\\}|\\$ARGUMENTS\\[(\\d+)\\]|\\$ARGUMENTS\\b|\\$(\\d+)|\\$(${declared})(?!\\w)`, 'g'),
    (_, variable?: string, listed?: string, place?: string, name?: string) => {
      if (variable === 'SVC_SKILL_DIR') return skill.dir
      if (variable === 'SVC_SESSION_ID') return session.id
      if (listed !== undefined) return word(Number(listed))
      if (place !== undefined) return word(Number(place))
      if (name === undefined) {
        used = true
        return untagged(args)
      }
      return word(skill.arguments.indexOf(name))
    }
  )
  return used || args.trim() === '' ? text : `${text}\n\nARGUMENTS: ${untagged(args)}`
}

/** What the model reads. */
export function block(skill: Skill, body: string, call: SkillCall): string {
  const attributes = { name: skill.name, trigger: call.trigger, source: skill.source, dir: skill.dir, args: call.args ?? '' }
  const written = Object.entries(attributes).map(([name, value]) => `${name}="${attribute(value)}"`)
  const front = {
    'user-slash': `The user activated the ${skill.command ? 'command' : 'skill'} "${skill.name}".`,
    'session-start': `A plugin of the user lets every conversation begin with the skill "${skill.name}".`,
    'model-tool': `The skill "${skill.name}" was loaded, as you asked.`,
    'nested-skill': `The skill "${skill.name}" was loaded, as you asked.`
  }[call.trigger]
  const before = skill.instructions === undefined ? '' : `<plugin-instructions>\n${skill.instructions}\n</plugin-instructions>\n`
  return `${front} Follow it.\n<skill-loaded ${written.join(' ')}>\n${asData(`${before}${expand(body, skill, call)}`)}\n</skill-loaded>`
}

/** What the file of the skill says in a block. */
export const ownText = (block: string): string =>
  block.replace(/^[\s\S]*?<skill-loaded [^>]*>\n(?:<plugin-instructions>[\s\S]*?<\/plugin-instructions>\n)?/, '')
