/** Results of a benchmark run: medians of several runs, printed as a table. */

export interface Row {
  readonly what: string
  /** Median of our figure. */
  readonly ours: number
  readonly floor?: number
  readonly unit: string
  readonly budget: string
  /** Whether the budget holds; absent where there is none. */
  readonly holds?: boolean
  readonly spread?: readonly [number, number]
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

/** Runs a measurement `runs` times after one warm-up; resolves to all figures. */
export async function repeat(runs: number, measure: () => Promise<number>): Promise<number[]> {
  await measure()
  const values: number[] = []
  for (let n = 0; n < runs; n++) values.push(await measure())
  return values
}

export function spread(values: readonly number[]): readonly [number, number] {
  return [Math.min(...values), Math.max(...values)]
}

export function print(rows: readonly Row[]): void {
  const cells = rows.map(row => [
    row.what,
    shown(row.ours),
    row.spread ? `${shown(row.spread[0])}..${shown(row.spread[1])}` : '',
    row.floor === undefined ? '' : shown(row.floor),
    row.floor ? `${(row.ours / row.floor).toFixed(2)}x` : '',
    row.unit,
    row.budget,
    row.holds === undefined ? '' : row.holds ? 'yes' : 'NO'
  ])
  const all = [['measurement', 'median', 'min..max', 'floor', 'ratio', 'unit', 'budget', 'holds'], ...cells]
  const widths = (all[0] ?? []).map((_, column) => Math.max(...all.map(line => (line[column] ?? '').length)))
  for (const line of all)
    process.stdout.write(
      `${line
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd()}\n`
    )
}

function shown(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
