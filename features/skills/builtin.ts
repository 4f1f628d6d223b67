/** Skills that come with the server: about its own files. */
import type { Skill } from './service.ts'

const skill = (name: string, description: string, body: string): Skill => ({
  name,
  description,
  path: `builtin://${name}`,
  dir: '',
  source: 'builtin',
  type: 'prompt',
  arguments: [],
  body
})

export const builtinSkills: readonly Skill[] = [
  skill(
    'write-skill',
    'How to write a skill for this agent: where its file goes, its front matter, its arguments.',
    `A skill is a Markdown file that the user (as /name) or you call by name.

1. Ask what it is for, unless that is clear, and for whom: the project (\`.svc-code/skills/<name>/SKILL.md\` below the project root) or all projects of the
   user (\`~/.agents/skills/<name>/SKILL.md\`).
2. Write \`SKILL.md\` with front matter: \`name\` and \`description\` (one sentence: what it does and when it fits), and if needed \`whenToUse\`,
   \`arguments\` (a list of names), \`type\` (\`prompt\`, or \`flow\` for what only the user starts, or \`reference\` for text that others point at),
   \`disableModelInvocation: true\`.
3. The body says what to do, in the order in which it is done, in the imperative. A dollar sign before the name of a declared argument stands for that
   argument, before ARGUMENTS for all of them; arguments that the text does not take follow it. Scripts and longer texts lie beside the file.
4. Keep it short. Say how to check that the work is done.

The skill is there with the next prompt; nothing needs to be restarted.`
  ),
  skill(
    'write-instructions',
    'Write or improve AGENTS.md, the instruction file of this project, from what the project shows.',
    `Write AGENTS.md in the project root, or improve the one that is there.

1. Look first: README, build and package files, how tests and checks are run, the folders, an existing AGENTS.md and files of that kind for other tools.
2. Write down only what an agent cannot see at once and needs often: the commands to build, test (also one single test) and lint; how the code is laid
   out, in a few lines; rules of the project that differ from what is usual; traps.
3. Run the commands that you write down. Leave out advice that holds everywhere, and lists of files.
4. Keep it under a page. Show the user what changed.`
  )
]
