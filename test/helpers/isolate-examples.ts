/**
 * For `node --import`: the pack that an example's own test imports runs in a process of its own; what else the module exports is the module's.
 */
import { register } from 'node:module'

const helper = new URL('./isolated.js', import.meta.url).href
const hooks = `
export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context)
  const file = new URL(resolved.url)
  if (!file.pathname.endsWith('/pack.js') || !file.pathname.includes('/examples/') || !context.parentURL?.endsWith('.test.js')) return resolved
  return { url: 'isolated:' + file.href, shortCircuit: true }
}
export async function load(url, context, next) {
  if (!url.startsWith('isolated:')) return next(url, context)
  const file = JSON.stringify(url.slice('isolated:'.length))
  const source = \`export * from \${file}
import { fileURLToPath } from 'node:url'
import { isolated } from ${JSON.stringify(helper)}
export default await isolated(fileURLToPath(\${file}))\`
  return { format: 'module', source, shortCircuit: true }
}`
register(`data:text/javascript,${encodeURIComponent(hooks)}`)
