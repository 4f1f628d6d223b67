/** Module hook: `svc-code/kernel`, `svc-code/kernel/testing` and `svc-code/features/<pack>` mean this installation. */

interface Resolved {
  url: string
  shortCircuit?: boolean
}
type Next = (specifier: string, context: unknown) => Promise<Resolved>

export async function resolve(specifier: string, context: unknown, next: Next): Promise<Resolved> {
  const match = /^svc-code\/(kernel|kernel\/testing|features\/([a-z0-9-]+))$/.exec(specifier)
  if (!match) return next(specifier, context)
  const own = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const file = match[1] === 'kernel' ? 'kernel/index' : match[1] === 'kernel/testing' ? 'kernel/testing' : `features/${match[2]}/index`
  return { url: new URL(`../../${file}.${own}`, import.meta.url).href, shortCircuit: true }
}
