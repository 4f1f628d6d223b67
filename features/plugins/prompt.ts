/** What plugins say to the model: sections of the system prompt, and the skills that a session begins with. */
import type { PromptText } from '../agent/index.ts'
import type { Skills } from '../skills/index.ts'
import type { ActivePlugin } from './plugins.ts'

/** Of all plugins together. */
const sectionsBytes = 64 * 1024

/** A plugin whose section does not fit any more is left out whole. */
export function sections(plugins: readonly ActivePlugin[]): PromptText {
  const texts: string[] = []
  const left: string[] = []
  let bytes = 0
  for (const { contents } of plugins) {
    if (contents.systemPrompt === undefined) continue
    const text = `## ${contents.displayName}\n${contents.systemPrompt}`
    bytes += Buffer.byteLength(text)
    if (bytes > sectionsBytes) {
      bytes -= Buffer.byteLength(text)
      left.push(contents.id)
    } else texts.push(text)
  }
  const text = texts.length === 0 ? '' : `# Plugins\n\n${texts.join('\n\n')}`
  const message = `the sections of these plugins do not fit into the system prompt (${sectionsBytes} bytes together): ${left.join(', ')}`
  return {
    text,
    variables: { plugin_sections: text },
    warnings: left.length === 0 ? [] : [{ code: 'plugin-sections-oversized', message }]
  }
}

/** Texts of the skills with which sessions begin. */
export async function sessionStart(
  plugins: readonly ActivePlugin[],
  skills: Skills,
  session: { readonly id: string; readonly cwd: string }
): Promise<{ readonly text: string; readonly plugins: readonly string[] } | undefined> {
  const texts: string[] = []
  const named: string[] = []
  for (const { contents } of plugins) {
    if (contents.sessionStart === undefined) continue
    const skill = await skills.find(session.cwd, contents.sessionStart)
    // A skill of this name that is not of the plugin is not what the plugin means.
    if (!skill || !contents.skills.some(({ path }) => skill.path === path || skill.path.startsWith(`${path}/`))) continue
    texts.push(await skills.render(skill, { session, trigger: 'session-start' }))
    named.push(contents.id)
  }
  return texts.length === 0 ? undefined : { text: texts.join('\n\n'), plugins: named }
}
