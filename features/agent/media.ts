/** What a prompt says, as titles, `last_prompt` and events show it. */
import type { Origin, WirePart } from '../history/index.ts'

/** Texts joined by newlines, with `[image]`, `[video]`, `[audio]` in place of media: source of titles and `last_prompt`. */
function metadataText(content: readonly WirePart[]): string {
  return content
    .flatMap(part =>
      part.type === 'text' ? [String(part.text)] : ['image', 'video', 'audio'].includes(part.type) ? [`[${part.type}]`] : []
    )
    .join('\n')
}

/** A prompt as its user wrote it: without the skills that ride in front of it. */
export function ownParts(content: readonly WirePart[], origin: Origin | undefined): readonly WirePart[] {
  const skills = origin?.skillActivations
  return Array.isArray(skills) ? content.slice(skills.length) : content
}

/** What the user sent, for whoever shows it: without those skills, and a skill or command by its call. */
export function sentParts(content: readonly WirePart[], origin: Origin | undefined): readonly WirePart[] {
  const called = calledBy(origin)
  return called === undefined ? ownParts(content, origin) : [{ type: 'text', text: called }, ...content.slice(1)]
}

/** What the user wrote or called, as titles and `last_prompt` show it: a text, `/skill arguments`. */
export function inputText(content: readonly WirePart[], origin: Origin | undefined): string {
  return calledBy(origin) ?? metadataText(ownParts(content, origin))
}

/** `/skill arguments`; undefined for what is no call. */
function calledBy(origin: Origin | undefined): string | undefined {
  const called = origin?.kind === 'skill_activation' ? [origin.skillName, origin.skillArgs] : undefined
  const command = origin?.kind === 'plugin_command' ? [`${origin.pluginId}:${origin.commandName}`, origin.commandArgs] : undefined
  const words = called ?? command
  return words && `/${words.filter(Boolean).join(' ')}`
}
