/**
 * Permission rules on command lines. Allowing is read narrowly: a wildcard never stands for anything that makes the shell do more than
 * run the one command the rule names. Denying and asking are read widely: any command of the line counts.
 */
import { matchText } from '../tools/index.ts'
import { commandsIn } from './commands-in.ts'
import { readShell } from './shell-text.ts'

/**
 * Whether a rule covers the whole line: the line as it is, or each of its simple commands. Operators, output redirections (except to
 * `/dev/null` and between descriptors), substitutions, comments and here documents must stand in the rule itself. `*` alone covers all.
 */
export function coversLine(pattern: string, line: string): boolean {
  if (/^\*+$/.test(pattern)) return true
  const { commands, fixed } = readShell(line)
  if (matchText(pattern, line, at => fixed[at] === 1)) return true
  return commands.length > 0 && commands.every(({ from, to }) => matchText(pattern, line.slice(from, to), at => fixed[from + at] === 1))
}

/** Whether a rule names the line or any command in it, also behind assignments, wrappers like `sudo`, quotes and substitutions. */
export function namesCommand(pattern: string, line: string): boolean {
  if (matchText(pattern, line)) return true
  for (const command of commandsIn(line)) if (matchText(pattern, command)) return true
  return false
}
