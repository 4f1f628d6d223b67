/**
 * `npm run bench [-- --runs 5 --only turns]`: figures of the whole server beside the floor measured in the same run.
 * Medians; machines differ, so read ratios. Exit code 0 also when a budget does not hold: this measures, tests judge.
 */
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { busySessions } from './busy-sessions.ts'
import { compaction } from './compaction.ts'
import { fanOut, journal, replay } from './events.ts'
import { files } from './fs.ts'
import { longHistory } from './history.ts'
import { restReads, startUp } from './http-and-start.ts'
import { isolation } from './isolation.ts'
import { latency } from './latency.ts'
import { longTurn } from './long-turn.ts'
import { manyProviders } from './providers.ts'
import { searches } from './search.ts'
import { manySessions } from './sessions.ts'
import { manySockets } from './sockets.ts'
import { print, type Row } from './table.ts'
import { terminals } from './terminals.ts'
import { turns } from './turns.ts'

const scenarios: Readonly<Record<string, (runs: number) => Promise<Row[]>>> = {
  start: startUp,
  rest: restReads,
  providers: manyProviders,
  turns,
  'busy-sessions': busySessions,
  isolation,
  latency,
  'long-turn': longTurn,
  history: longHistory,
  sessions: manySessions,
  sockets: manySockets,
  compaction,
  fs: files,
  search: searches,
  terminals,
  fanout: fanOut,
  replay,
  journal
}

const { values } = parseArgs({ options: { runs: { type: 'string', default: '5' }, only: { type: 'string', multiple: true } } })
const runs = Math.max(1, Number(values.runs) || 5)
const rows: Row[] = []
for (const [name, run] of Object.entries(scenarios)) {
  if (values.only && !values.only.includes(name)) continue
  process.stderr.write(`measuring ${name}\n`)
  rows.push(...(await run(runs)))
}
process.stdout.write(`\nNode ${process.version}, ${cpus().length} processors, ${runs} runs, medians\n\n`)
print(rows)
process.exit(0)
