/** Lines of Bash judged by the whole chain, under rules as a careful user writes them. In tables each row is one line. */
import { decide } from '../../../../features/permissions/chain.ts'
import type { PermissionMode } from '../../../../features/permissions/contract.ts'
import { rulesOf } from '../../../../features/permissions/rules.ts'
import { readLine } from '../../../../features/tools-shell/rules/read-line.ts'

const around = { cwd: '/srv/app', home: '/srv/home', agent_dir: '/srv/home/a' }
type Rules = Parameters<typeof rulesOf>[0]

export async function judge(config: Rules, line: string, mode: PermissionMode = 'manual', shell = '/bin/bash'): Promise<string> {
  const execution = { description: line, ...(await readLine(line, { shell, cwd: around.cwd, around })), run: async () => ({ output: '' }) }
  const call = { tool: 'Bash', mode, rules: rulesOf(config), remembered: [], unsure: false, execution }
  const opinion = await decide({ ...call, ...around, workTree: async () => undefined })
  return opinion.kind
}

export const bash = (...patterns: readonly string[]) => patterns.map(match => ({ tool: 'Bash', match }))

/** The lines of a text. */
export const rows = (text: string) =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

/** Lines by the pattern of a rule. */
export type Table = Readonly<Record<string, readonly string[]>>

/** The lines of a table that are judged otherwise. */
export async function wrong(table: Table, rules: (pattern: string) => Rules, verdict: string): Promise<string[]> {
  const found: string[] = []
  for (const [pattern, lines] of Object.entries(table))
    for (const line of lines) {
      const said = await judge(rules(pattern), line)
      if (said !== verdict) found.push(`${pattern}: ${said} ${line}`)
    }
  return found
}
