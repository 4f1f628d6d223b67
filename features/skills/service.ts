/** Skills: texts that users and the model call by name, and who brings them. */
import { extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { Session } from '../sessions/index.ts'

/** `prompt` and `inline`: for users and the model; `flow`: for users; `reference`: for other skills to point at. */
export const skillTypes = ['prompt', 'inline', 'flow', 'reference'] as const
export type SkillType = (typeof skillTypes)[number]

/** Where a skill comes from. */
export interface SkillOrigin {
  readonly source: 'project' | 'user' | 'extra' | 'builtin'
  /** Stands before the text of the skill: what its plugin says about all of its skills. */
  readonly instructions?: string
}

export interface Skill extends SkillOrigin {
  /** Case does not matter. */
  readonly name: string
  readonly description: string
  /** Absolute path of its file; `builtin://<name>`. */
  readonly path: string
  /** Directory of the file. */
  readonly dir: string
  readonly type: SkillType
  /** The model does not see it. */
  readonly disable_model_invocation?: boolean
  readonly when_to_use?: string
  /** Names of its arguments, in order. */
  readonly arguments: readonly string[]
  /** It is part of another one and not listed to the model. */
  readonly sub?: boolean
  readonly has_sub_skills?: boolean
  /** It is a command of a plugin: for users only, and told as such. */
  readonly command?: { readonly plugin_id: string; readonly name: string }
  /** Built-in ones: what it says. Others are read from their file when they are used. */
  readonly body?: string
}

/** Directories and skills of a pack (plugins). They rank above built-in skills and below all others. */
export interface SkillSource {
  readonly name: string
  /** Awaited before the others are called: takes in what changed meanwhile; cheap while nothing did. */
  refresh?(): Promise<unknown>
  /** Absolute directories, or files that are one skill each; the first wins. Called whenever skills are looked at: does no I/O. */
  places(): readonly { readonly path: string; readonly file?: boolean; readonly instructions?: string }[]
  /** Commands, called as `/<plugin>:<name>`: Markdown files, with or without front matter. As `places`. */
  commands?(): readonly { readonly plugin_id: string; readonly name: string; readonly path: string }[]
}
export const SkillSources = extensionPoint<SkillSource>(
  'skill-sources',
  undefined,
  { name: 'string', places: 'function' },
  { refresh: () => Promise.resolve() }
)

export interface Skills {
  /** The skills for a working directory, sorted by name: of several with one name the most specific. */
  list(cwd: string): Promise<readonly Skill[]>
  find(cwd: string, name: string): Promise<Skill | undefined>
  /** The text that a model gets: front line, and the skill with its arguments filled in. */
  render(skill: Skill, call: SkillCall): Promise<string>
}
export const Skills = serviceToken<Skills>('skills')

export interface SkillCall {
  readonly session: Pick<Session, 'id'>
  readonly args?: string | undefined
  readonly trigger: 'user-slash' | 'model-tool' | 'nested-skill' | 'session-start'
}
